/* SPDX-License-Identifier: MIT */
/* Every form of scope, compiled as C that exceptions may pass through (-fexceptions). */
#define FORMS_TABLE    forms_c_exceptions
#define FORMS_LANGUAGE "c, exceptions"
#include "forms_table.h"
