// SPDX-License-Identifier: GPL-2.0
/*
 * Which colours do this process's frames have? Run in the guest, by run.sh.
 *
 *   frames KIND AMOUNT COLORS    COLORS: a hexadecimal mask of the colours that are expected
 *
 * KIND, and what AMOUNT is:
 *   anon MIB     anonymous memory            huge MIB    the same, with huge pages asked for
 *   plain MIB    anonymous memory of those without colours, which need not have all that are expected:
 *                it comes in the kernel's order
 *   shared MIB   shared anonymous memory     thread MIB  anonymous memory of a second thread
 *   fork MIB     anonymous memory of a child
 *   cow MIB      memory of a parent that the child writes to: copies
 *   stay MIB     anonymous memory that says "touched", and is looked at when standard input ends
 *   moved MIB    anonymous memory that was there before the process came into the group /cgroup/moved
 *   parted MIB   the same, which a child has too when its move is asked for first, and not the second time
 *   swapped MIB  anonymous memory that was on the disk in between
 *   merged MIB   anonymous memory, many pages of it equal, that the kernel is asked to merge
 *   bound MIB    anonymous memory under a memory policy that names the machine's node
 *   keep MIB     the same, which says "touched" and is kept until standard input ends
 *   large MIB    anonymous memory that has to be all in huge pages, by faults and by asking for them
 *   holes MIB    anonymous memory of which half of the pages, of all colours, is given back, as "stay"
 *                otherwise; looked at is what is left, for pages of other colours alone
 *   read PATH    a file's pages, read        mapped PATH the same, by faults alone
 *   fresh PATH   a file's pages, read, none of which was in memory before
 *   single PATH  a file's pages, read in no order and so one by one
 *   written PATH a file of 4 MiB that is written
 *   within PATH  a file's pages, read, which need not have all of the colours
 *   random PATH  a file's pages, by faults in no order: reads all, prints colours of those that stayed
 *
 * Colour = bits 12-15 of the physical address, as run.sh sets the map. Prints how many pages
 * of each colour there are; fails if a page has another colour than expected, is missing, belongs
 * to a huge page, was merged with another or lies in a frame that has failed, and if a colour that is expected has less than half its share.
 *
 *   frames storm COUNT 0         COUNT children, 16 at a time, that touch a few pages and end
 *   frames hog MIB 0             touches so much memory, four times over, and ends
 *   frames fail MIB 0            touches so much memory, and has up to 64 frames beside it fail that nobody has; gives it back, and has as many of these fail
 *   frames first COUNT 0         runs before all others of its processor (SCHED_FIFO), so many thousand million
 *                                steps
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pagemap.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define NR_COLORS 16
/* As many frames fail at most. */
#define FAILING 64

static void die(const char *what)
{
	fprintf(stderr, "frames: %s: %s\n", what, strerror(errno));
	exit(2);
}

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

static volatile char *map(size_t len, int flags, int fd)
{
	void *at = mmap(NULL, len, fd < 0 ? PROT_READ | PROT_WRITE : PROT_READ, flags, fd, 0);

	if (at == MAP_FAILED)
		die("mmap");
	return at;
}

static void touch(volatile char *at, size_t len, int writes)
{
	static volatile char sink;

	for (size_t i = 0; i < len; i += PAGE) {
		if (writes)
			at[i] = (char)(i / PAGE + 1);
		else
			sink += at[i];
	}
}

/* Is it enough that pages have no other colours than those that are expected? */
static int any_share;

/* Pages of this process that the kernel has merged (kpageflags says that of all anonymous ones). */
static unsigned int nr_merged(void)
{
	char text[16] = "";
	int fd = open("/proc/self/ksm_merging_pages", O_RDONLY);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		die("/proc/self/ksm_merging_pages");
	close(fd);
	return (unsigned int)atoi(text);
}

/* Pages of a range that are there and have other colours than expected. */
static unsigned int nr_outside(volatile char *at, size_t len, unsigned int expected)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY);
	unsigned int outside = 0;

	if (pagemap < 0)
		die("/proc/self/pagemap");
	for (size_t i = 0; i < len; i += PAGE) {
		uint64_t entry = entry_of(pagemap, ((uintptr_t)at + i) / PAGE);

		if (entry >> 63)
			outside += !(expected >> (entry & ((1ULL << 55) - 1)) % NR_COLORS & 1);
	}
	close(pagemap);
	return outside;
}

/* Compares the frames of a range with what is expected. */
static int check(volatile char *at, size_t len, unsigned int expected)
{
	int pagemap = open("/proc/self/pagemap", O_RDONLY), flags = open("/proc/kpageflags", O_RDONLY);
	unsigned int count[NR_COLORS] = { 0 }, missing = 0, outside = 0, huge = 0, rare = 0, failed = 0;
	unsigned int merged = nr_merged();

	unsigned int nr = __builtin_popcount(expected);

	if (pagemap < 0 || flags < 0)
		die("/proc/self/pagemap, /proc/kpageflags");
	for (size_t i = 0; i < len; i += PAGE) {
		uint64_t entry = settled_entry_of(pagemap, ((uintptr_t)at + i) / PAGE);
		uint64_t pfn = entry & ((1ULL << 55) - 1);

		if (!(entry >> 63) || !pfn) {
			missing++;
			continue;
		}
		count[pfn % NR_COLORS]++;
		outside += !(expected >> pfn % NR_COLORS & 1);
		failed += entry_of(flags, pfn) >> 19 & 1;
		huge += (entry_of(flags, pfn) >> 22 & 1) || (entry_of(flags, pfn) >> 17 & 1);
	}
	for (unsigned int c = 0; c < NR_COLORS; c++) {
		rare += (expected >> c & 1) && count[c] * nr * 2 < len / PAGE;
		printf("%s%u", c ? " " : "pages by color: ", count[c]);
	}
	printf(" | outside %u missing %u huge %u merged %u rare colors %u failed %u looks at moving pages %u\n",
	       outside, missing, huge, merged, rare, failed, on_the_way);
	close(pagemap);
	close(flags);
	return outside || missing || huge || merged || failed || (rare && !any_share);
}

static int anon(size_t len, unsigned int expected, int flags, int advice)
{
	volatile char *at = map(len, MAP_ANONYMOUS | flags, -1);

	if (advice && madvise((void *)at, len, advice))
		die("madvise");
	touch(at, len, 1);
	return check(at, len, expected);
}

static void wait_for_end(void)
{
	char word;

	puts("touched");
	fflush(stdout);
	while (read(0, &word, 1) > 0)
		;
}

static int stay(size_t len, unsigned int expected)
{
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);

	touch(at, len, 1);
	wait_for_end();
	return check(at, len, expected);
}

/* The pages that are left lie where compaction put them, in none of the colours that others own. */
static int holes(size_t len, unsigned int expected)
{
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	unsigned int before, after;

	touch(at, len, 1);
	/*
	 * Drawn: every other page would be those of half of the colours, and compaction, which after blocks
	 * without a free frame looks at every 32nd frame alone, would look at one of the others.
	 */
	srandom(1);
	for (size_t i = 0; i < len; i += PAGE)
		if (random() % 2 && madvise((void *)(at + i), PAGE, MADV_DONTNEED))
			die("madvise");
	before = nr_outside(at, len, expected);
	wait_for_end();
	after = nr_outside(at, len, expected);
	printf("pages outside: %u before, %u after\n", before, after);
	return after > before;
}


static void say(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		die(file);
	close(fd);
}

/* Memory of a process that has come into a group with colours since. */
static volatile char *old_memory(size_t len)
{
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	char text[64];

	touch(at, len, 1);
	snprintf(text, sizeof(text), "%d", getpid());
	say("/cgroup/moved/cgroup.procs", text);
	return at;
}

static int move(volatile char *at, size_t len, unsigned int expected)
{
	char text[64];

	snprintf(text, sizeof(text), "%d", getpid());
	say("/proc/piebald/recolor", text);
	for (size_t i = 0; i < len; i += PAGE)
		if (at[i] != (char)(i / PAGE + 1))
			return 1;
	return check(at, len, expected);
}

static int moved(size_t len, unsigned int expected)
{
	volatile char *at = old_memory(len);

	if (!check(at, len, expected))
		return 1; /* they were there before */
	return move(at, len, expected);
}

/* While a child has the pages as well they stay. */
static int parted(size_t len, unsigned int expected)
{
	volatile char *at = old_memory(len);
	int gate[2], status;
	char byte;
	pid_t pid;

	if (pipe(gate))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		close(gate[1]);
		_exit(read(gate[0], &byte, 1) != 0);
	}
	if (!move(at, len, expected))
		return 1;
	close(gate[1]);
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	return move(at, len, expected);
}

static int swapped(size_t len, unsigned int expected)
{
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	int pagemap = open("/proc/self/pagemap", O_RDONLY), out = 0;

	touch(at, len, 1);
	if (pagemap < 0 || madvise((void *)at, len, MADV_PAGEOUT))
		die("madvise");
	for (size_t i = 0; i < len; i += PAGE)
		out += entry_of(pagemap, ((uintptr_t)at + i) / PAGE) >> 62 == 1;
	close(pagemap);
	for (size_t i = 0; i < len; i += PAGE)
		if (at[i] != (char)(i / PAGE + 1))
			return 1;
	printf("%d pages were swapped out; ", out);
	return check(at, len, expected) || out < (int)(len / PAGE / 2);
}

static int in_child(volatile char *at, size_t len, unsigned int expected)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		if (!at)
			at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);
		touch(at, len, 1);
		exit(check(at, len, expected));
	}
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

struct job {
	size_t len;
	unsigned int expected;
	int result;
};

static void *in_thread(void *data)
{
	struct job *job = data;

	job->result = anon(job->len, job->expected, MAP_PRIVATE, 0);
	return NULL;
}

static int thread(size_t len, unsigned int expected)
{
	struct job job = { len, expected, 1 };
	pthread_t id;

	if (pthread_create(&id, NULL, in_thread, &job) || pthread_join(id, NULL))
		die("thread");
	return job.result;
}

/* Whether the kernel looks for equal pages in a mapping: the flag "mg" of /proc/self/smaps. */
static int is_mergeable(volatile char *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	unsigned long begin, end;
	char line[4096];
	int here = 0, found = 0;

	if (!file)
		die("/proc/self/smaps");
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			here = begin <= (uintptr_t)at && (uintptr_t)at < end;
		else if (here && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " mg") != NULL;
	}
	fclose(file);
	return found;
}

/* Completed scans of ksmd. */
static long full_scans(void)
{
	FILE *file = fopen("/sys/kernel/mm/ksm/full_scans", "r");
	long scans;

	if (!file || fscanf(file, "%ld", &scans) != 1)
		die("/sys/kernel/mm/ksm/full_scans");
	fclose(file);
	return scans;
}

/* run.sh has told the kernel to look for equal pages. */
static int merged(size_t len, unsigned int expected)
{
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);

	touch(at, len, 1);
	if (madvise((void *)at, len, MADV_MERGEABLE))
		die("madvise");
	/*
	 * A scan may have begun before. Of those after it one sees the page, one that it stays as it is, and one
	 * merges it.
	 */
	if (is_mergeable(at)) {
		long first = full_scans();

		for (int tries = 0; full_scans() < first + 4; tries++) {
			if (tries == 60000)
				die("ksmd");
			usleep(10000);
		}
	}
	return check(at, len, expected);
}

static void bind(void)
{
	unsigned long node0 = 1;

	if (syscall(SYS_set_mempolicy, 2 /* MPOL_BIND */, &node0, 8 * sizeof(node0)))
		die("set_mempolicy");
}

static int bound(size_t len, unsigned int expected)
{
	bind();
	return anon(len, expected, MAP_PRIVATE, 0);
}

static int keep(size_t len)
{
	bind();
	touch(map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1), len, 1);
	wait_for_end();
	return 0;
}

/* Kilobytes of this process that are in huge pages. */
static unsigned long huge_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[256];

	if (!file)
		die("/proc/self/smaps_rollup");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	fclose(file);
	return kib;
}

/* By faults first; then of single pages, which the kernel is asked to put together. */
static int large(size_t len)
{
	volatile char *at = map(len + HUGE, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	unsigned long by_faults, by_asking;
	int error = 0;

	at += HUGE - (uintptr_t)at % HUGE;
	if (madvise((void *)at, len, MADV_HUGEPAGE))
		die("madvise");
	touch(at, len, 1);
	by_faults = huge_kib();
	if (madvise((void *)at, len, MADV_DONTNEED) || madvise((void *)at, len, MADV_NOHUGEPAGE))
		die("madvise");
	touch(at, len, 1);
	if (huge_kib() || madvise((void *)at, len, MADV_HUGEPAGE))
		die("madvise");
	/* madvise(2): EAGAIN says that the kernel held a page just then, as compaction does, and to try again. */
	for (int tries = 0; tries < 200; tries++) {
		error = madvise((void *)at, len, MADV_COLLAPSE) ? errno : 0;
		if (error != EAGAIN)
			break;
		usleep(10000);
	}
	by_asking = huge_kib();
	printf("%lu KiB in huge pages by faults, %lu by asking (%s), of %zu\n", by_faults, by_asking,
	       error ? strerror(error) : "done", len >> 10);
	return error || by_faults < len >> 10 || by_asking < len >> 10;
}

static int file(const char *path, unsigned int expected, int reads, int advice)
{
	char buffer[65536];
	struct stat info;
	int fd = open(path, O_RDONLY);
	volatile char *at;

	if (fd < 0 || fstat(fd, &info) || posix_fadvise(fd, 0, 0, advice))
		die(path);
	while (reads && read(fd, buffer, sizeof(buffer)) > 0)
		;
	at = map(info.st_size, MAP_SHARED, fd);
	touch(at, info.st_size, 0);
	return check(at, info.st_size, expected);
}

/* Drops a file's pages. Those that the kernel is moving or looking at stay, so that it takes some tries. */
static void forget(const char *path)
{
	static unsigned char there[1 << 16];
	struct stat info;
	int fd = open(path, O_RDONLY);
	size_t pages, left;
	void *at;

	if (fd < 0 || fstat(fd, &info))
		die(path);
	pages = (info.st_size + PAGE - 1) / PAGE;
	if (pages > sizeof(there))
		pages = sizeof(there);
	for (int tries = 0; tries < 500; tries++) {
		if (posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			die(path);
		at = (void *)map(pages * PAGE, MAP_SHARED, fd);
		if (mincore(at, pages * PAGE, there))
			die("mincore");
		munmap(at, pages * PAGE);
		left = 0;
		for (size_t i = 0; i < pages; i++)
			left += there[i] & 1;
		if (!left) {
			close(fd);
			return;
		}
		usleep(10000);
	}
	fprintf(stderr, "frames: %s: %zu pages stay in memory\n", path, left);
	exit(2);
}

static int fresh(const char *path, unsigned int expected)
{
	forget(path);
	return file(path, expected, 1, POSIX_FADV_NORMAL);
}

/* Every page of a file that need not fit into memory; 7919 is prime to the number of pages. */
static int in_no_order(const char *path)
{
	struct stat info;
	int fd = open(path, O_RDONLY);
	volatile char *at, sink = 0;
	size_t pages;

	if (fd < 0 || fstat(fd, &info))
		die(path);
	pages = info.st_size / PAGE;
	at = map(info.st_size, MAP_SHARED, fd);
	if (madvise((void *)at, info.st_size, MADV_RANDOM))
		die("madvise");
	for (size_t i = 0; i < pages; i++)
		sink += at[i * 7919 % pages * PAGE];
	check(at, info.st_size, 0);
	return 0;
}

static int written(const char *path, unsigned int expected)
{
	static char buffer[65536];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (fd < 0)
		die(path);
	memset(buffer, 'x', sizeof(buffer));
	for (int i = 0; i < 64; i++)
		if (write(fd, buffer, sizeof(buffer)) != sizeof(buffer))
			die("write");
	close(fd);
	return file(path, expected, 0, POSIX_FADV_NORMAL);
}

static int storm(long count)
{
	volatile char *at = map(64 * PAGE, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	int status, running = 0, bad = 0;

	touch(at, 64 * PAGE, 1);
	while (count || running) {
		pid_t pid = count && running < 16 ? fork() : -2;

		if (pid == -1)
			die("fork");
		if (!pid) {
			touch(at, 8 * PAGE, 1);
			touch(map(8 * PAGE, MAP_ANONYMOUS | MAP_PRIVATE, -1), 8 * PAGE, 1);
			_exit(0);
		}
		if (pid > 0) {
			count--;
			running++;
			continue;
		}
		if (wait(&status) < 0)
			die("wait");
		running--;
		bad += !!status;
	}
	return bad != 0;
}

static int hog(size_t len)
{
	for (int i = 0; i < 4; i++) {
		volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);

		touch(at, len, 1);
		for (size_t j = 0; j < len; j += PAGE)
			if (at[j] != (char)(j / PAGE + 1))
				return 1;
		munmap((void *)at, len);
	}
	return 0;
}

/* Who waits for its turn behind this one waits until it ends. */
static int first(long count)
{
	const struct sched_param param = { .sched_priority = 50 };

	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
	puts("runs");
	fflush(stdout);
	for (volatile long i = 0; i < count * 1000000000L; i++)
		;
	return 0;
}

/* The kernel is told that a frame that nobody has has failed; of what it uses itself it only notes that. */
static int fail_one(int offline, int flags, uint64_t pfn)
{
	char text[32];
	int size = snprintf(text, sizeof(text), "%#llx", (unsigned long long)pfn * PAGE);

	if (entry_of(flags, pfn))
		return 0;
	/* It says no of what it cannot take away. */
	if (write(offline, text, size) < 0 && errno != EBUSY && errno != EIO && errno != EOPNOTSUPP)
		die("hard_offline_page");
	return 1;
}

/*
 * With few colours, what lies beside a frame of this process came into the pool in one block with it, if it was not given out
 * before. What the process gives back goes to its colour's stacks.
 */
static int fail(size_t len)
{
	int offline = open("/sys/devices/system/memory/hard_offline_page", O_WRONLY), beside = 0, back = 0;
	int pagemap = open("/proc/self/pagemap", O_RDONLY), flags = open("/proc/kpageflags", O_RDONLY);
	volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);
	uint64_t *frames = calloc(len / PAGE, sizeof(*frames));

	if (pagemap < 0 || flags < 0 || offline < 0 || !frames)
		die("/sys/devices/system/memory/hard_offline_page, /proc/kpageflags");
	touch(at, len, 1);
	for (size_t i = 0; i < len / PAGE; i++)
		frames[i] = entry_of(pagemap, (uintptr_t)at / PAGE + i) & ((1ULL << 55) - 1);
	for (size_t i = 0; i < len / PAGE && beside < FAILING; i++)
		beside += fail_one(offline, flags, frames[i] + 1);
	munmap((void *)at, len);
	for (size_t i = 0; i < len / PAGE && back < FAILING; i++)
		back += fail_one(offline, flags, frames[i]);
	printf("frames have failed: %d beside, %d given back\n", beside, back);
	/* How many the pool has depends on what ran before. */
	return beside + back == 0;
}

int main(int argc, char **argv)
{
	const char *kind = argc == 4 ? argv[1] : "";
	size_t len = argc == 4 ? strtoul(argv[2], NULL, 10) << 20 : 0;
	unsigned int expected = argc == 4 ? strtoul(argv[3], NULL, 16) : 0;

	if (!strcmp(kind, "anon"))
		return anon(len, expected, MAP_PRIVATE, 0);
	if (!strcmp(kind, "huge"))
		return anon(len, expected, MAP_PRIVATE, MADV_HUGEPAGE);
	if (!strcmp(kind, "shared"))
		return anon(len, expected, MAP_SHARED, 0);
	if (!strcmp(kind, "thread"))
		return thread(len, expected);
	if (!strcmp(kind, "fork"))
		return in_child(NULL, len, expected);
	if (!strcmp(kind, "cow")) {
		volatile char *at = map(len, MAP_ANONYMOUS | MAP_PRIVATE, -1);

		touch(at, len, 1);
		return in_child(at, len, expected);
	}
	if (!strcmp(kind, "stay"))
		return stay(len, expected);
	if (!strcmp(kind, "moved"))
		return moved(len, expected);
	if (!strcmp(kind, "parted"))
		return parted(len, expected);
	if (!strcmp(kind, "swapped"))
		return swapped(len, expected);
	if (!strcmp(kind, "merged"))
		return merged(len, expected);
	if (!strcmp(kind, "bound"))
		return bound(len, expected);
	if (!strcmp(kind, "keep"))
		return keep(len);
	if (!strcmp(kind, "holes"))
		return holes(len, expected);
	if (!strcmp(kind, "large"))
		return large(len);
	if (!strcmp(kind, "read") || !strcmp(kind, "mapped"))
		return file(argv[2], expected, kind[0] == 'r', POSIX_FADV_NORMAL);
	if (!strcmp(kind, "fresh"))
		return fresh(argv[2], expected);
	if (!strcmp(kind, "single"))
		return file(argv[2], expected, 1, POSIX_FADV_RANDOM);
	if (!strcmp(kind, "within")) {
		any_share = 1;
		return file(argv[2], expected, 1, POSIX_FADV_NORMAL);
	}
	if (!strcmp(kind, "plain")) {
		any_share = 1;
		return anon(len, expected, MAP_PRIVATE, 0);
	}
	if (!strcmp(kind, "random"))
		return in_no_order(argv[2]);
	if (!strcmp(kind, "written"))
		return written(argv[2], expected);
	if (!strcmp(kind, "storm"))
		return storm(strtol(argv[2], NULL, 10));
	if (!strcmp(kind, "hog"))
		return hog(len);
	if (!strcmp(kind, "fail"))
		return fail(len);
	if (!strcmp(kind, "first"))
		return first(strtol(argv[2], NULL, 10));
	fprintf(stderr, "usage: frames KIND AMOUNT COLORS\n");
	return 2;
}
