# SPDX-License-Identifier: MIT
"""`conan create .github/packaging/conan` in a clone makes a package of that clone, and tries it."""
import pathlib
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class Tidepool(ConanFile):
    name = "tidepool"
    license = "MIT"
    description = "Temporary arrays for long-running hot loops"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}
    package_type = "library"
    languages = "C"

    def set_version(self):
        header = pathlib.Path(self.recipe_folder, "../../../include/tidepool/version.h").read_text()
        self.version = ".".join(re.findall(r"VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header))

    def export_sources(self):
        top = pathlib.Path(self.recipe_folder, "../../..").resolve()
        for part in ("CMakeLists.txt", "LICENSE", "runtime/*", "profiler/*", "jit/*", "include/tidepool/*", ".github/*"):
            copy(self, part, top, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        for part in ("TESTS", "BENCH", "EXAMPLES"):
            toolchain.cache_variables[f"TIDEPOOL_BUILD_{part}"] = False
        toolchain.blocks.remove("output_dirs")  # by which libexec is bin, where the command tidepool is
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", self.source_folder, str(pathlib.Path(self.package_folder, "licenses")))

    def package_info(self):
        # The package's own CMake files know both libraries and where the sites' compiler is.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/Tidepool"]
        self.cpp_info.libs = ["tidepool"] if self.options.shared else [":libtidepool.a"]
        self.cpp_info.system_libs = ["pthread"]
        if not self.options.shared:
            self.cpp_info.exelinkflags = [f"-Wl,-rpath,{self.package_folder}/libexec/tidepool:{self.package_folder}/lib"]
