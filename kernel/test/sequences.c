// SPDX-License-Identifier: GPL-2.0
/*
 * Do the frames of files and memory have the colours that SRM-buffer gives them? Run in the
 * guest, by srm.sh.
 *
 *   sequences read PATH T       reads a file; its blocks must lie in runs of T of one colour, and
 *                               runs that follow each other have different colours
 *   sequences mapped PATH T     the same, by faults on a mapping alone
 *   sequences written PATH T    writes 8 * T blocks into a file
 *   sequences small DIR N       reads the files DIR/1 to DIR/N: one colour for all of them
 *   sequences beside DIR T      reads the files DIR/a and DIR/b in turns: at no time one colour
 *                               for both
 *   sequences memory MIB 0      touches memory: its pages go round through the colours
 *   sequences sum PATH TIMES    reads a file so often and compares what it read
 *   sequences pieces PATH N     reads N pieces of 16 pages; those at the beginning of the file come
 *                               more often
 *
 * Colour = bits 12-15 of the physical address, as run.sh sets the map. What is asked for must
 * hold for 19 of 20 pages, since other processes run as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096UL
#define COLORS 16

static void die(const char *what)
{
	fprintf(stderr, "sequences: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* A file or memory, and the colours of its pages; -1 for one that is not in memory. */
struct range {
	volatile char *at;
	size_t pages;
	int *color;
};

static void look(struct range *range)
{
	static volatile char sink;
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	size_t i;

	if (pagemap < 0)
		die("/proc/self/pagemap");
	range->color = calloc(range->pages, sizeof(int));
	for (i = 0; i < range->pages; i++) {
		uint64_t entry, index = (uintptr_t)range->at / PAGE + i;

		sink += range->at[i * PAGE];
		if (pread(pagemap, &entry, sizeof(entry), index * sizeof(entry)) != sizeof(entry))
			die("pread");
		entry = entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
		range->color[i] = entry ? (int)(entry % COLORS) : -1;
	}
	close(pagemap);
}

static int open_file(const char *path, struct range *range)
{
	struct stat info;
	int fd = open(path, O_RDONLY);

	if (fd < 0 || fstat(fd, &info))
		die(path);
	range->pages = (info.st_size + PAGE - 1) / PAGE;
	range->at = mmap(NULL, range->pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	if (range->at == MAP_FAILED)
		die("mmap");
	return fd;
}

static void read_all(int fd)
{
	char buffer[65536];
	ssize_t n;

	do
		n = read(fd, buffer, sizeof(buffer));
	while (n > 0);
	if (n < 0)
		die("read");
}

/* The colour that most pages of a run have, and how many do not. */
static int main_color(const struct range *range, size_t from, size_t len, size_t *others)
{
	size_t count[COLORS] = { 0 }, i;
	int best = 0, color;

	for (i = from; i < from + len && i < range->pages; i++)
		if (range->color[i] >= 0)
			count[range->color[i]]++;
	for (color = 1; color < COLORS; color++)
		if (count[color] > count[best])
			best = color;
	*others += i - from - count[best];
	return best;
}

static int runs(struct range *range, size_t len)
{
	size_t others = 0, i;
	int last = -1, same = 0;

	look(range);
	printf("%zu pages, colors:", range->pages);
	for (i = 0; i < range->pages; i += len) {
		int color = main_color(range, i, len, &others);

		printf(" %d", color);
		same += color == last;
		last = color;
	}
	printf(" | not in the run's color %zu, runs of one color %d\n", others, same);
	return !range->pages || others * 20 > range->pages || same;
}

static int file(const char *path, size_t len, int reads)
{
	struct range range;
	int fd = open_file(path, &range);

	if (reads)
		read_all(fd);
	return runs(&range, len);
}

static int written(const char *path, size_t len)
{
	static char block[PAGE];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	size_t i;

	if (fd < 0)
		die(path);
	for (i = 0; i < 8 * len; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			die("write");
	close(fd);
	return file(path, len, 0);
}

static int small(const char *folder, int files)
{
	size_t count[COLORS] = { 0 }, pages = 0, most = 0, i;
	struct range range;
	char path[256];
	int n, color;

	for (n = 1; n <= files; n++) {
		snprintf(path, sizeof(path), "%s/%d", folder, n);
		read_all(open_file(path, &range));
		look(&range);
		for (i = 0; i < range.pages; i++)
			if (range.color[i] >= 0)
				count[range.color[i]]++;
		pages += range.pages;
	}
	printf("%zu pages, by color:", pages);
	for (color = 0; color < COLORS; color++) {
		printf(" %zu", count[color]);
		most = count[color] > most ? count[color] : most;
	}
	printf("\n");
	return !pages || most * 20 < pages * 19;
}

static int beside(const char *folder, size_t len)
{
	static char buffer[65536];
	struct range range[2];
	size_t other = 0, i;
	int fd[2], which, same = 0;
	char path[256];

	for (which = 0; which < 2; which++) {
		snprintf(path, sizeof(path), "%s/%c", folder, "ab"[which]);
		fd[which] = open_file(path, &range[which]);
	}
	for (i = 0; i < range[0].pages * PAGE; i += sizeof(buffer))
		for (which = 0; which < 2; which++)
			if (read(fd[which], buffer, sizeof(buffer)) < 0)
				die("read");
	for (which = 0; which < 2; which++)
		look(&range[which]);
	for (i = 0; i < range[0].pages; i += len)
		same += main_color(&range[0], i, len, &other) ==
			main_color(&range[1], i, len, &other);
	printf("%zu pages each, runs of one color %d, not in the run's color %zu\n", range[0].pages,
	       same, other);
	return same || other * 20 > range[0].pages + range[1].pages;
}

static int memory(size_t mib)
{
	struct range range = { .pages = mib << 8 };
	size_t i, out = 0;

	range.at = mmap(NULL, range.pages * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (range.at == MAP_FAILED)
		die("mmap");
	for (i = 0; i < range.pages; i++)
		range.at[i * PAGE] = 1;
	look(&range);
	for (i = 1; i < range.pages; i++)
		out += range.color[i] != (range.color[i - 1] + 1) % COLORS;
	printf("%zu pages, not in turn %zu\n", range.pages, out);
	return out * 20 > range.pages;
}

static int sum(const char *path, int times)
{
	static unsigned char buffer[65536];
	uint64_t first = 0;

	while (times--) {
		int fd = open(path, O_RDONLY);
		uint64_t now = 1;
		ssize_t n, i;

		if (fd < 0)
			die(path);
		while ((n = read(fd, buffer, sizeof(buffer))) > 0)
			for (i = 0; i < n; i += 64)
				now = now * 6364136223846793005ULL + buffer[i] + 1;
		if (n < 0)
			die("read");
		close(fd);
		if (first && now != first)
			return 1;
		first = now;
	}
	return 0;
}

static int pieces(const char *path, size_t reads)
{
	static char buffer[16 * PAGE];
	uint64_t x = 1;
	struct stat info;
	int fd = open(path, O_RDONLY), i;

	if (fd < 0 || fstat(fd, &info) || posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
		die(path);
	while (reads--) {
		uint64_t n = info.st_size / sizeof(buffer), piece = n;

		/* The least of three draws. */
		for (i = 0; i < 3; i++) {
			uint64_t drawn;

			x = x * 6364136223846793005ULL + 1442695040888963407ULL;
			drawn = (x >> 33) % n;
			piece = drawn < piece ? drawn : piece;
		}
		if (pread(fd, buffer, sizeof(buffer), piece * sizeof(buffer)) != sizeof(buffer))
			die("pread");
	}
	return 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc == 4 ? argv[1] : "";
	size_t number = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;

	if (!strcmp(kind, "memory"))
		return memory(strtoul(argv[2], NULL, 10));
	if (!number)
		kind = "";
	if (!strcmp(kind, "read") || !strcmp(kind, "mapped"))
		return file(argv[2], number, kind[0] == 'r');
	if (!strcmp(kind, "written"))
		return written(argv[2], number);
	if (!strcmp(kind, "small"))
		return small(argv[2], number);
	if (!strcmp(kind, "beside"))
		return beside(argv[2], number);
	if (!strcmp(kind, "pieces"))
		return pieces(argv[2], number);
	if (!strcmp(kind, "sum"))
		return sum(argv[2], number);
	fprintf(stderr, "usage: sequences KIND AMOUNT NUMBER\n");
	return 2;
}
