/* SPDX-License-Identifier: MIT */
/* Nodes of memory (NUMA): each is near some of the processors. */
#ifndef TIDEPOOL_RUNTIME_BASE_NODE_H
#define TIDEPOOL_RUNTIME_BASE_NODE_H

enum { TIDE_NODES_MAX = 16 }; /* beyond, several are taken for one */

/* How many there are, 1 at least; the same for the life of the process. */
unsigned tide_nodes(void);

/* By such a list of their numbers: "0", "0-1", "0,2-3". What is none says one. */
unsigned tide_nodes_of_list(const char *list);

/* Which the calling thread runs near just now, from 0 on. By no system call where the kernel lends
 * its answer; 0 where the program is locked and it does not. */
unsigned tide_node(void);

#endif
