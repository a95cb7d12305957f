# SPDX-License-Identifier: MIT
# Debian's packages: `cpack -G DEB` in a build folder that was configured with CMAKE_INSTALL_PREFIX=/usr makes
# libtidepool0, libtidepool-dev and tidepool-tools. The test `install-deb` installs, uses and removes them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tidepool)
set(CPACK_PACKAGE_CONTACT "The Tidepool maintainers <tidepool@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
set(CPACK_COMPONENTS_ALL runtime dev tools)
set(version ${PROJECT_VERSION})

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libtidepool${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY "=")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS tidepool-tools)
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "A scope takes typed arrays from a pool and gives them back when its
 block ends. After a few rounds the loop allocates nothing any more. This is
 the library.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libtidepool-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libtidepool${PROJECT_VERSION_MAJOR} (= ${version})")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers for C and C++, the static library, and files for CMake and
 pkg-config.")

set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME tidepool-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS "libtidepool${PROJECT_VERSION_MAJOR} (= ${version}), binutils, python3")
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command tidepool, which looks into processes that use the library,
 and the program that compiles code for their call sites.")

file(WRITE ${PROJECT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/triggers)

# Debian wants these beside each package.
foreach(part runtime dev tools)
    string(TOUPPER ${part} upper)
    set(folder ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
    install(FILES LICENSE RENAME copyright DESTINATION ${folder} COMPONENT ${part})
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/compress.cmake [[
file(GLOB_RECURSE pages ${CPACK_TEMPORARY_DIRECTORY}/*.[137])
foreach(page ${pages})
    execute_process(COMMAND gzip -9n ${page})
endforeach()
]])
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_BINARY_DIR}/compress.cmake)
include(CPack)
