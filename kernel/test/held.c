// SPDX-License-Identifier: GPL-2.0
/*
 * Who holds the frames of some colours, as the kernel's own files say: /proc/kpageflags and
 * /proc/kpagecgroup. Run in the guest, by groups.sh.
 *
 *   held COLORS GROUP        COLORS: a hexadecimal mask; GROUP: a directory of cgroup2. Prints numbers of frames
 *                            by name: all, of the group, of others, of slabs, page tables, hugetlbfs and
 *                            reserved ones; of the group outside the colours; and charged to the group,
 *                            of all colours, but for slabs and page tables
 *   held inside COLORS GROUP fails if the group has frames outside the colours, but for a few blocks of a
 *                            file system's own, or none inside
 *   held compare COLORS GROUP FILE
 *                            FILE: the set's file frames. Fails if it says other numbers; some frames come
 *                            and go while the two are read
 *   held none COLORS GROUP   fails if the group has more than a few frames inside
 *
 * Colour = bits 12-15 of the physical address, as run.sh sets the map.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NR_COLORS 16
#define AT_ONCE 1024
/* Frames that may differ between two looks at a memory that is in use. */
#define SLACK 96
/* Blocks of a file system's own (ext4's extents) cannot move, so they have any color, and are charged too. */
#define OF_FILE_SYSTEM 8
/* Bits of kpageflags (Documentation/admin-guide/mm/pagemap.rst). */
#define LRU 5
#define SLAB 7
#define BUDDY 10
#define MMAP 11
#define ANON 12
#define HUGE 17
#define NOPAGE 20
#define PGTABLE 26
#define RESERVED 32

struct held {
	long total, own, foreign, slab, page_tables, hugetlb, reserved, outside, charged;
};

static void die(const char *what)
{
	fprintf(stderr, "held: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int has(uint64_t flags, int bit)
{
	return flags >> bit & 1;
}

static void count(struct held *held, uint64_t flags, uint64_t group, int inside, uint64_t own)
{
	int of_users = has(flags, LRU) || has(flags, MMAP) || has(flags, ANON);

	if (has(flags, NOPAGE))
		return;
	/* On the kernel's lists or on the way there; memory.stat may lag behind by 64 pages and more a processor. */
	held->charged += group == own && !has(flags, SLAB) && !has(flags, PGTABLE);
	of_users = of_users && !has(flags, HUGE) && !has(flags, SLAB) && !has(flags, PGTABLE);
	held->outside += !inside && of_users && group == own;
	if (!inside)
		return;
	held->total++;
	held->slab += has(flags, SLAB);
	held->page_tables += has(flags, PGTABLE);
	held->hugetlb += has(flags, HUGE);
	held->reserved += has(flags, RESERVED);
	held->own += of_users && group == own;
	held->foreign += of_users && group != own;
}

static void look(unsigned int colors, const char *group, struct held *held)
{
	static uint64_t flags[AT_ONCE], groups[AT_ONCE];
	int by_flags = open("/proc/kpageflags", O_RDONLY), by_group = open("/proc/kpagecgroup", O_RDONLY);
	uint64_t pfn = 0;
	struct stat info;
	ssize_t n;

	if (by_flags < 0 || by_group < 0 || stat(group, &info))
		die(group);
	while ((n = read(by_flags, flags, sizeof(flags))) > 0) {
		if (read(by_group, groups, n) != n)
			die("/proc/kpagecgroup");
		for (ssize_t i = 0; i < n / 8; i++, pfn++)
			count(held, flags[i], groups[i], colors >> pfn % NR_COLORS & 1, info.st_ino);
	}
	close(by_flags);
	close(by_group);
}

/* A number of the set's file. */
static long said(const char *path, const char *name)
{
	char word[64];
	FILE *file = fopen(path, "r");
	long number;

	if (!file)
		die(path);
	while (fscanf(file, "%63s %ld", word, &number) == 2)
		if (!strcmp(word, name)) {
			fclose(file);
			return number;
		}
	fclose(file);
	fprintf(stderr, "held: %s: no %s\n", path, name);
	exit(2);
}

static int differs(const char *name, long walked, long set)
{
	printf("%s: %ld walked, %ld said\n", name, walked, set);
	return labs(walked - set) > SLACK;
}

static int compare(const struct held *held, const char *file)
{
	static const char *const parts[] = {
		"free", "own", "sharing", "others", "dying", "pinned", "kernel",
	};
	long sum = 0, total = said(file, "total"), known = 0;
	int bad = 0;

	for (unsigned int i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		sum += said(file, parts[i]);
	printf("sum of the parts: %ld of %ld\n", sum, total);
	/* Each reading walks anew, so parts that are read one after the other may differ a little. */
	bad |= labs(sum - total) > SLACK;
	known = said(file, "others") + said(file, "dying") + said(file, "sharing") + said(file, "pinned");
	bad |= differs("total", held->total, total);
	bad |= differs("own", held->own, said(file, "own"));
	bad |= differs("foreign", held->foreign, known);
	bad |= differs("slab", held->slab, said(file, "slab"));
	bad |= differs("page_tables", held->page_tables, said(file, "page_tables"));
	bad |= differs("hugetlb", held->hugetlb, said(file, "hugetlb"));
	bad |= differs("reserved", held->reserved, said(file, "reserved"));
	return bad;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[1] : "";
	struct held held = { 0 };

	if (argc < 3) {
		fprintf(stderr, "usage: held [inside|none|compare] COLORS GROUP [FILE]\n");
		return 2;
	}
	look(strtoul(argv[*what ? 2 : 1], NULL, 16), argv[*what ? 3 : 2], &held);
	printf("total %ld\nown %ld\nforeign %ld\nslab %ld\npage_tables %ld\nhugetlb %ld\nreserved %ld\noutside %ld\ncharged %ld\n",
	       held.total, held.own, held.foreign, held.slab, held.page_tables, held.hugetlb,
	       held.reserved, held.outside, held.charged);
	if (!strcmp(what, "inside"))
		return held.outside > OF_FILE_SYSTEM || !held.own;
	if (!strcmp(what, "none"))
		return held.own > SLACK / 8;
	if (!strcmp(what, "compare") && argc > 4)
		return compare(&held, argv[4]);
	return *what != 0;
}
