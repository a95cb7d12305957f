# SPDX-License-Identifier: MIT
# `cmake --build BUILD --target manual` makes BUILD/manual/html and BUILD/manual/man, where Python 3 has Sphinx; the
# pages of man are then installed, too.
find_package(Python3 COMPONENTS Interpreter)
set(python ${Python3_EXECUTABLE})
if(EXISTS ${PROJECT_BINARY_DIR}/manual/venv/bin/python)
    set(python ${PROJECT_BINARY_DIR}/manual/venv/bin/python)
endif()
set(without 1)
if(python)
    execute_process(COMMAND ${python} -c "import sphinx, myst_parser" RESULT_VARIABLE without ERROR_QUIET)
endif()
if(without EQUAL 0)
    add_custom_target(manual VERBATIM
        COMMAND ${python} ${CMAKE_CURRENT_LIST_DIR}/make ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/manual
        COMMENT "The manual: manual/html/index.html, and man -M manual/man")
endif()
if(TIDEPOOL_INSTALL)
    foreach(section 3 7)
        install(DIRECTORY ${PROJECT_BINARY_DIR}/manual/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
            COMPONENT dev OPTIONAL FILES_MATCHING PATTERN "*.${section}")
    endforeach()
endif()
