// SPDX-License-Identifier: GPL-2.0
/*
 * Which colours do this process's huge pages have? Run in the guest, by huge.sh.
 *
 *   huge KIND MIB COLORS LEAST    COLORS: a hexadecimal mask of the colours that are expected;
 *                                 LEAST: so many blocks of 2 MiB at least are huge pages
 *
 * KIND:
 *   anon      anonymous memory for which huge pages are asked
 *   shared    the same, shared
 *   child     of a child
 *   cow       of a parent, whose child writes to all: the child's copies
 *   collapse  memory in single pages, which the kernel is asked to put together
 *   recolor   memory whose pages are to move to their colours: huge pages that have them stay as they are
 *   stay      as anon; says "touched", and is looked at when standard input ends
 *
 * Colour = bits 21 and 22 of the physical address, as huge.sh sets the map. Prints how many huge pages of each
 * colour there are, and how many single ones; fails if a page has another colour than expected or is missing.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "pagemap.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define PER_HUGE (HUGE / PAGE)
#define NR_COLORS 4

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static void die(const char *what)
{
	fprintf(stderr, "huge: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* Memory that begins where a huge page may. */
static volatile char *map(size_t len, int flags, int advice)
{
	char *at = mmap(NULL, len + HUGE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	at += (HUGE - (uintptr_t)at % HUGE) % HUGE;
	if (madvise(at, len, advice))
		die("madvise");
	return at;
}

/* No page is empty: when the kernel takes a huge page apart, it gives one frame to all that are. */
static void touch(volatile char *at, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		at[i] = (char)(i / PAGE % 255 + 1);
}

static int check(volatile char *at, size_t len, unsigned int expected, unsigned int least)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY), flags = open("/proc/kpageflags", O_RDONLY);
	unsigned int huge[NR_COLORS] = { 0 }, single[NR_COLORS] = { 0 };
	unsigned int missing = 0, outside = 0, all = 0;

	if (pagemap < 0 || flags < 0)
		die("/proc/self/pagemap, /proc/kpageflags");
	for (size_t i = 0; i < len; i += PAGE) {
		uint64_t entry = settled_entry_of(pagemap, ((uintptr_t)at + i) / PAGE);
		uint64_t pfn = entry & ((1ULL << 55) - 1);
		unsigned int color = pfn / PER_HUGE % NR_COLORS;

		if (!(entry >> 63) || !pfn) {
			missing++;
			continue;
		}
		outside += !(expected >> color & 1);
		/* KPF_THP: of its parts, one stands for it. */
		if (!(entry_of(flags, pfn) >> 22 & 1))
			single[color]++;
		else if (pfn % PER_HUGE == 0)
			huge[color]++;
	}
	printf("huge pages by color:");
	for (unsigned int c = 0; c < NR_COLORS; c++) {
		printf(" %u", huge[c]);
		all += huge[c];
	}
	printf(" | single pages:");
	for (unsigned int c = 0; c < NR_COLORS; c++)
		printf(" %u", single[c]);
	printf(" | outside %u missing %u\n", outside, missing);
	close(pagemap);
	close(flags);
	return outside || missing || all < least;
}

static int in_child(volatile char *at, size_t len, unsigned int expected, unsigned int least)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		if (!at)
			at = map(len, MAP_PRIVATE, MADV_HUGEPAGE);
		touch(at, len);
		exit(check(at, len, expected, least));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

static void say(const char *file)
{
	char text[32];
	int fd = open(file, O_WRONLY);

	snprintf(text, sizeof(text), "%d", getpid());
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

/* KiB of this process's memory that are mapped as huge pages. */
static long mapped_huge(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib = -1;

	if (!file)
		die("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "AnonHugePages: %ld kB", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

int main(int argc, char **argv)
{
	volatile char *at;
	unsigned int expected, least;
	size_t len;
	char word;

	if (argc != 5)
		return 2;
	len = strtoul(argv[2], NULL, 10) << 20;
	expected = strtoul(argv[3], NULL, 16);
	least = strtoul(argv[4], NULL, 10);
	if (!strcmp(argv[1], "child"))
		return in_child(NULL, len, expected, least);
	if (!strcmp(argv[1], "collapse")) {
		at = map(len, MAP_PRIVATE, MADV_NOHUGEPAGE);
		touch(at, len);
		if (madvise((void *)at, len, MADV_HUGEPAGE))
			die("madvise");
		/* Refused as a rule; what counts is where its pages are. */
		if (!madvise((void *)at, len, MADV_COLLAPSE))
			printf("put together; ");
		return check(at, len, expected, least);
	}
	at = map(len, strcmp(argv[1], "shared") ? MAP_PRIVATE : MAP_SHARED, MADV_HUGEPAGE);
	touch(at, len);
	if (!strcmp(argv[1], "cow"))
		return check(at, len, expected, 0) || in_child(at, len, expected, least);
	if (!strcmp(argv[1], "recolor")) {
		long before = mapped_huge();

		say("/proc/piebald/recolor");
		printf("mapped as huge pages: %ld KiB before, %ld after; ", before, mapped_huge());
		if (before < (long)(least * HUGE >> 10) || mapped_huge() != before)
			return 1;
	}
	if (!strcmp(argv[1], "stay")) {
		puts("touched");
		fflush(stdout);
		while (read(0, &word, 1) > 0)
			;
	}
	return check(at, len, expected, least);
}
