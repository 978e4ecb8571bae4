// SPDX-License-Identifier: GPL-2.0
/*
 * Which memory nodes and colours do this process's pages have? Run in a guest with two nodes, by nodes.sh.
 *
 *   nodes KIND MIB COLORS NODE   COLORS: a hexadecimal mask of the colours that are allowed; NODE: where the pages
 *                                are to lie: 0, 1, "both" (a quarter on each at least) or "any"
 *
 * KIND:
 *   local       anonymous memory, touched on a processor of the node
 *   far         the same, touched on a processor of the other node: by a policy of the process or a cpuset
 *   bind        under a policy that binds the process to the node
 *   prefer      under one that prefers the node      many        the same by MPOL_PREFERRED_MANY
 *   interleave  under one that alternates            weighted    the same by weights
 *   area        an area of memory that is bound to the node (mbind)
 *   shared      shared memory of which an area is bound to the node
 *   move        memory of the other node that is moved (move_pages)
 *   remap       the same (mbind with MPOL_MF_MOVE)
 *   migrate     the same (migrate_pages)
 *   mixed       memory of the other node that is moved at once with as much that the process has got since it came
 *               into the group /cgroup/small, whose colours are COLORS and used up on the node
 *   enter       under a policy that prefers the other node, set before the process enters the group /cgroup/second
 *   private     a private mapping of a file in tmpfs, which is written, on a processor of the node
 *   balance     memory of the other node, used from the node until the kernel has moved some there
 *   failing     memory of the node of which some frames are taken out of use (MADV_SOFT_OFFLINE)
 *   stay        says "touched", and is looked at when standard input ends: the pages are where they were
 *   file        a file /disk/nodes that is written   tmpfs       the same in /tmp
 *
 * Colour = bits 12-15 of the physical address. Prints pages by node and by colour; fails if one has another colour, is
 * missing, or lies elsewhere.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pagemap.h"

#define PAGE 4096UL
#define NR_COLORS 16
#define NR_NODES 2

enum { PREFERRED = 1, BIND = 2, INTERLEAVE = 3, MANY = 5, WEIGHTED = 6 };
#define MF_STRICT 1
#define MF_MOVE 2
#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE 101
#endif
/* Frames that fail. */
#define FAILING 16
/* Seconds until the kernel must have moved some pages by itself. */
#define PATIENCE 120
/* How often pages are moved, a millisecond apart: what reclaim or compaction looks at just then does not move. */
#define MOMENTS 1000

static void die(const char *what)
{
	fprintf(stderr, "nodes: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* nodes.sh's guest has one processor on each node. */
static void run_on(int node)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(node, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void policy(int mode, unsigned long nodes)
{
	if (syscall(SYS_set_mempolicy, mode, &nodes, 8 * sizeof(nodes)))
		die("set_mempolicy");
}

static void bind_area(void *at, size_t len, unsigned long nodes, unsigned int flags)
{
	for (int tries = 0; syscall(SYS_mbind, at, len, BIND, &nodes, 8 * sizeof(nodes), flags); tries++) {
		if (errno != EIO || tries == MOMENTS)
			die("mbind");
		usleep(1000);
	}
}

static volatile char *map(size_t len, int flags, int fd)
{
	void *at = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void touch(volatile char *at, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		at[i] = (char)(i / PAGE + 1);
}

static int is_whole(volatile char *at, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		if (at[i] != (char)(i / PAGE + 1))
			return 0;
	return 1;
}

/* The node of each page, or with a node, moves them there. */
static void pages_of(volatile char *at, size_t len, const int *to, int *status)
{
	size_t n = len / PAGE;
	void **pages = calloc(n, sizeof(*pages));

	for (size_t i = 0; i < n; i++)
		pages[i] = (void *)(at + i * PAGE);
	if (syscall(SYS_move_pages, 0, n, pages, to, status, MF_MOVE))
		die("move_pages");
	free(pages);
}

static size_t count_on(volatile char *at, size_t len, int node)
{
	int *status = calloc(len / PAGE, sizeof(*status));
	size_t n = 0;

	pages_of(at, len, NULL, status);
	for (size_t i = 0; i < len / PAGE; i++)
		n += status[i] == node;
	free(status);
	return n;
}

static int check(volatile char *at, size_t len, unsigned int colors, const char *where)
{
	size_t n = len / PAGE, on[NR_NODES], by_color[NR_COLORS] = { 0 }, outside = 0, missing = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY), wrong;

	if (pagemap < 0)
		die("/proc/self/pagemap");
	for (size_t i = 0; i < n; i++) {
		uint64_t entry = settled_entry_of(pagemap, (uintptr_t)at / PAGE + i);
		uint64_t pfn = entry & ((1ULL << 55) - 1);

		if (!(entry >> 63) || !pfn) {
			missing++;
			continue;
		}
		by_color[pfn % NR_COLORS]++;
		outside += !(colors >> pfn % NR_COLORS & 1);
	}
	close(pagemap);
	/* Pages that are being moved are on no node for that time. */
	for (int tries = 0; tries < 1000; tries++) {
		for (int node = 0; node < NR_NODES; node++)
			on[node] = count_on(at, len, node);
		if (on[0] + on[1] + missing >= n)
			break;
		usleep(1000);
	}
	if (!strcmp(where, "both"))
		wrong = on[0] < n / 4 || on[1] < n / 4;
	else
		wrong = strcmp(where, "any") && on[atoi(where)] != n;
	printf("pages by node: %zu %zu by color:", on[0], on[1]);
	for (int c = 0; c < NR_COLORS; c++)
		printf(" %zu", by_color[c]);
	printf(" | outside %zu missing %zu\n", outside, missing);
	return wrong || outside || missing || !is_whole(at, len);
}

static volatile char *touched(size_t len)
{
	volatile char *at = map(len, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	touch(at, len);
	return at;
}

static int move(size_t len, unsigned int colors, const char *where, int node)
{
	volatile char *at;
	size_t n = len / PAGE;
	int *to = calloc(n, sizeof(*to)), *status = calloc(n, sizeof(*status));

	run_on(!node);
	at = touched(len);
	for (size_t i = 0; i < n; i++)
		to[i] = node;
	for (int tries = 0; tries < MOMENTS && count_on(at, len, node) < n; tries++) {
		if (tries)
			usleep(1000);
		pages_of(at, len, to, status);
	}
	return check(at, len, colors, where);
}

static int failing(size_t len, unsigned int colors, const char *where, int node)
{
	volatile char *at;

	run_on(node);
	at = touched(len);
	for (int i = 0; i < FAILING; i++)
		if (madvise((void *)(at + i * PAGE), PAGE, MADV_SOFT_OFFLINE))
			die("madvise");
	return check(at, len, colors, where);
}

static int balance(size_t len, unsigned int colors, int node)
{
	volatile char *at, sum = 0;
	size_t moved = 0;

	run_on(!node);
	at = touched(len);
	run_on(node);
	/* The kernel looks at a process that has used its processor for a while. */
	for (time_t end = time(NULL) + PATIENCE; !moved && time(NULL) < end; moved = count_on(at, len, node))
		for (int rounds = 0; rounds < 1000; rounds++)
			for (size_t i = 0; i < len; i += PAGE)
				sum += at[i];
	printf("%zu of %zu pages were moved; ", moved, len / PAGE);
	return check(at, len, colors, "any") || !moved;
}

static int stay(size_t len, unsigned int colors, const char *where)
{
	volatile char *at = touched(len);
	char word;

	puts("touched");
	fflush(stdout);
	while (read(0, &word, 1) > 0)
		;
	return check(at, len, colors, where);
}

static int file(const char *path, size_t len, unsigned int colors, const char *where, int flags)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	static char page[PAGE];
	volatile char *at;

	if (fd < 0 || unlink(path))
		die(path);
	/* By write(), as a fault on a file may read around it. */
	for (size_t i = 0; flags & MAP_SHARED && i < len; i += PAGE) {
		page[0] = (char)(i / PAGE + 1);
		if (write(fd, page, PAGE) != PAGE)
			die(path);
	}
	if (flags & MAP_PRIVATE && ftruncate(fd, len))
		die(path);
	at = map(len, flags, fd);
	touch(at, len);
	return check(at, len, colors, where);
}

static int migrate(size_t len, unsigned int colors, const char *where, int node)
{
	unsigned long from = 1UL << !node, to = 1UL << node;
	volatile char *at;
	long left = 1;

	run_on(!node);
	at = touched(len);
	for (int tries = 0; tries < MOMENTS && left; tries++) {
		if (tries)
			usleep(1000);
		left = syscall(SYS_migrate_pages, 0, 8 * sizeof(from), &from, &to);
		if (left < 0)
			die("migrate_pages");
	}
	return check(at, len, colors, where);
}

static int mixed(size_t len, unsigned int colors, int node)
{
	volatile char *early, *late;
	size_t n = len / PAGE;
	void **pages = calloc(2 * n, sizeof(*pages));
	int *to = calloc(2 * n, sizeof(*to)), *status = calloc(2 * n, sizeof(*status));
	int fd = open("/cgroup/small/cgroup.procs", O_WRONLY);

	run_on(!node);
	early = touched(len);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die("/cgroup/small/cgroup.procs");
	late = touched(len);
	for (size_t i = 0; i < n; i++) {
		pages[2 * i] = (void *)(late + i * PAGE);
		pages[2 * i + 1] = (void *)(early + i * PAGE);
		to[2 * i] = to[2 * i + 1] = node;
	}
	/* How many stay; of these no more is said. */
	if (syscall(SYS_move_pages, 0, 2 * n, pages, to, status, MF_MOVE) < 0)
		die("move_pages");
	printf("of the group's %zu pages %zu moved, of the others' %zu; ", n, count_on(late, len, node),
	       count_on(early, len, node));
	return count_on(early, len, node) != n || count_on(late, len, node) == n ||
	       check(late, len, colors, "any");
}

static int enter(size_t len, unsigned int colors, const char *where, int node)
{
	int fd = open("/cgroup/second/cgroup.procs", O_WRONLY);

	policy(PREFERRED, 1UL << !node);
	if (fd < 0 || write(fd, "0", 1) != 1)
		die("/cgroup/second/cgroup.procs");
	return check(touched(len), len, colors, where);
}

int main(int argc, char **argv)
{
	const char *kind = argc == 5 ? argv[1] : "", *where = argc == 5 ? argv[4] : "";
	size_t len = argc == 5 ? strtoul(argv[2], NULL, 10) << 20 : 0;
	unsigned int colors = argc == 5 ? strtoul(argv[3], NULL, 16) : 0;
	int node = atoi(where);
	volatile char *at;

	if (!strcmp(kind, "local")) {
		run_on(node);
		return check(touched(len), len, colors, where);
	}
	if (!strcmp(kind, "far")) {
		run_on(!node);
		return check(touched(len), len, colors, where);
	}
	if (!strcmp(kind, "bind"))
		policy(BIND, 1UL << node);
	else if (!strcmp(kind, "prefer"))
		policy(PREFERRED, 1UL << node);
	else if (!strcmp(kind, "many"))
		policy(MANY, 1UL << node);
	else if (!strcmp(kind, "interleave"))
		policy(INTERLEAVE, 3);
	else if (!strcmp(kind, "weighted"))
		policy(WEIGHTED, 3);
	else if (!strcmp(kind, "move"))
		return move(len, colors, where, node);
	else if (!strcmp(kind, "failing"))
		return failing(len, colors, where, node);
	else if (!strcmp(kind, "balance"))
		return balance(len, colors, node);
	else if (!strcmp(kind, "stay"))
		return run_on(node), stay(len, colors, where);
	else if (!strcmp(kind, "file"))
		return run_on(node), file("/disk/nodes", len, colors, where, MAP_SHARED);
	else if (!strcmp(kind, "tmpfs"))
		return run_on(node), file("/tmp/nodes", len, colors, where, MAP_SHARED);
	else if (!strcmp(kind, "private"))
		return run_on(node), file("/tmp/nodes", len, colors, where, MAP_PRIVATE);
	else if (!strcmp(kind, "migrate"))
		return migrate(len, colors, where, node);
	else if (!strcmp(kind, "mixed"))
		return mixed(len, colors, node);
	else if (!strcmp(kind, "enter"))
		return enter(len, colors, where, node);
	else if (!strcmp(kind, "area") || !strcmp(kind, "shared")) {
		at = map(len, MAP_ANONYMOUS | (*kind == 's' ? MAP_SHARED : MAP_PRIVATE), -1);
		bind_area((void *)at, len, 1UL << node, 0);
		run_on(!node);
		touch(at, len);
		return check(at, len, colors, where);
	} else if (!strcmp(kind, "remap")) {
		run_on(!node);
		at = touched(len);
		bind_area((void *)at, len, 1UL << node, MF_MOVE | MF_STRICT);
		return check(at, len, colors, where);
	} else {
		fprintf(stderr, "usage: nodes KIND MIB COLORS NODE\n");
		return 2;
	}
	if (node == 0 || node == 1)
		run_on(!node);
	return check(touched(len), len, colors, where);
}
