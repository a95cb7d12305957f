// SPDX-License-Identifier: MIT
// The same in C++.
#include "tests/copies/copied.inc"
