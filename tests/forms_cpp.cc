// SPDX-License-Identifier: MIT
// Every form of scope, compiled as C++.
#define FORMS_TABLE    forms_cpp
#define FORMS_LANGUAGE "c++"
#include "forms_table.h"
