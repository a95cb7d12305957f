/* SPDX-License-Identifier: MIT */
/* The library's script for gdb (profiler/gdb), in a section that gdb looks for and that is not
 * loaded with the program. For the static library alone: beside the shared one lies a file, which
 * gdb finds by its name. Included once. */
#ifndef TIDEPOOL_JIT_GDB_SCRIPT_H
#define TIDEPOOL_JIT_GDB_SCRIPT_H

#if defined(TIDEPOOL_STATIC) && defined(TIDE_GDB_SCRIPT)
/* 4: what follows is a name, the text of a script in Python, and a 0. */
__asm__(".pushsection .debug_gdb_scripts, \"MS\", %progbits, 1\n"
        ".byte 4\n"
        ".ascii \"tidepool-gdb.py\\n\"\n"
        ".incbin \"" TIDE_GDB_SCRIPT "\"\n"
        ".byte 0\n"
        ".popsection\n");
#endif

#endif
