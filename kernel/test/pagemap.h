/* SPDX-License-Identifier: GPL-2.0 */
/* Entries of /proc/PID/pagemap, for the programs of the tests. */
#ifndef PB_TEST_PAGEMAP_H
#define PB_TEST_PAGEMAP_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Looks at pages that are being moved, at most. */
#define MOVES 5000

static uint64_t entry_of(int fd, uint64_t index)
{
	uint64_t entry;

	if (pread(fd, &entry, sizeof(entry), index * sizeof(entry)) != sizeof(entry)) {
		fprintf(stderr, "pagemap: %s\n", strerror(errno));
		exit(2);
	}
	return entry;
}

/* Looks that found a page on its way to another frame. */
static unsigned int on_the_way;

/* Of a page that the kernel is moving there is an entry like one of swap, until it has been moved. */
static uint64_t settled_entry_of(int fd, uint64_t index)
{
	uint64_t entry = entry_of(fd, index);

	while (!(entry >> 63) && entry >> 62 & 1 && on_the_way < MOVES) {
		on_the_way++;
		usleep(1000);
		entry = entry_of(fd, index);
	}
	return entry;
}

#endif
