/* SPDX-License-Identifier: MIT */
/* A plugin with the static library in it. */
#include "tests/copies/copied.inc"
