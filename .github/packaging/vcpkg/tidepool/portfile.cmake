# SPDX-License-Identifier: MIT
# An overlay port: `vcpkg install tidepool --overlay-ports=.github/packaging/vcpkg` in a clone builds that clone.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../../.." ABSOLUTE)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DTIDEPOOL_BUILD_TESTS=OFF -DTIDEPOOL_BUILD_BENCH=OFF
    -DTIDEPOOL_BUILD_EXAMPLES=OFF -DCMAKE_INSTALL_LIBEXECDIR=tools)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(PACKAGE_NAME Tidepool CONFIG_PATH lib/cmake/Tidepool)
vcpkg_fixup_pkgconfig()
# vcpkg links one kind of library; the headers and the tools are those of the release.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
    file(GLOB shared "${CURRENT_PACKAGES_DIR}/lib/libtidepool.so*" "${CURRENT_PACKAGES_DIR}/debug/lib/libtidepool.so*")
    file(REMOVE ${shared})
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share"
     "${CURRENT_PACKAGES_DIR}/debug/tools")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
