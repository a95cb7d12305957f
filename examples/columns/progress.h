/* SPDX-License-Identifier: MIT */
/* A progress bar on stderr, if that is a terminal and the work takes a while. */
#ifndef COLUMNS_PROGRESS_H
#define COLUMNS_PROGRESS_H

void progress_start(void);
void progress_stop(void); /* wipes it */

#endif
