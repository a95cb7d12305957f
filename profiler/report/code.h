/* SPDX-License-Identifier: MIT */
/* The machine code of a record's sites, made anew from what it was made of. */
#ifndef TIDEPOOL_PROFILER_REPORT_CODE_H
#define TIDEPOOL_PROFILER_REPORT_CODE_H

#include "profiler/report/history.h"

enum { TIDE_CODE_SITES = 24 }; /* the first ones in the document; the rest keep their spec */

/* Where there is a stager of the same build, sites that were compiled get their code as assembler
 * text (`machine`), each once. A page that is drawn again makes only what is new. */
void tide_code_make(tide_history *history);

#endif
