// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation costs in guest instructions, kernel and program together, and in cycles of the
 * modelled machine where there are its counters (piebald_model). Run in the guest, by cost.sh, under
 * a clock that advances by one nanosecond per instruction.
 *
 *   cost NAME [CMD...]
 *
 * Prints NAME, what the first round of faults costs, in which a process takes memory that it has
 * not had before (new), and the mean of some rounds after: fault (first touch of a page, and its
 * return), fork (with exit and wait), write (a new page of a file in tmpfs, and its return), read
 * (4 KiB that are in memory), build (CMD, which must succeed; fewer rounds). Each number of
 * instructions is followed by cycles and by misses of the last level, or by - -.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4096
#define FORKS 100
#define ROUNDS 8
#define BUILDS 2

static char buffer[PAGE];

static void die(const char *what)
{
	fprintf(stderr, "cost: %s: %s\n", what, strerror(errno));
	exit(2);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int fault(void)
{
	char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < PAGES; i++)
		((volatile char *)at)[i * PAGE] = 1;
	munmap(at, PAGES * PAGE);
	return PAGES;
}

static int forks(void)
{
	for (int i = 0; i < FORKS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return FORKS;
}

static int writes(void)
{
	int fd = open("/tmp/cost", O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (int i = 0; i < PAGES; i++)
		if (write(fd, buffer, PAGE) != PAGE)
			die("write");
	close(fd);
	unlink("/tmp/cost");
	return PAGES;
}

static int reads(void)
{
	static int fd = -1;

	if (fd < 0) {
		fd = open("/tmp/read", O_RDWR | O_CREAT, 0600);
		if (write(fd, buffer, PAGE) != PAGE)
			die("write");
	}
	for (int i = 0; i < PAGES; i++)
		if (pread(fd, buffer, PAGE, 0) != PAGE)
			die("pread");
	return PAGES;
}

static char **command;

static int build(void)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		execv(command[0], command);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "cost: %s failed\n", command[0]);
		exit(2);
	}
	return 1;
}

/* The modelled counters, -1: there are none. Numbers are those of kernel/model.c. */
static int cycles = -1, misses = -1;

static int counter(int type, int config)
{
	struct perf_event_attr attr = {
		.type = type, .size = sizeof(attr), .config = config, .inherit = 1,
	};

	return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static void open_counters(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/piebald_model/type", "r");
	int type;

	if (!file)
		return;
	if (fscanf(file, "%d", &type) != 1)
		die("type");
	fclose(file);
	cycles = counter(type, 1);
	misses = counter(type, 5);
	if (cycles < 0 || misses < 0)
		die("perf_event_open");
}

struct sums {
	long long instructions, cycles, misses;
};

static struct sums sums(void)
{
	struct sums now_at = { .instructions = now() };

	if (cycles >= 0 && (read(cycles, &now_at.cycles, 8) != 8 || read(misses, &now_at.misses, 8) != 8))
		die("counters");
	return now_at;
}

static void print_sums(const char *name, struct sums from, struct sums to, long long n)
{
	printf(" %s %.0f", name, (double)(to.instructions - from.instructions) / n);
	if (cycles < 0)
		printf(" - -");
	else
		printf(" %.0f %.2f", (double)(to.cycles - from.cycles) / n,
		       (double)(to.misses - from.misses) / n);
}

static void measure(const char *name, int (*run)(void), int rounds)
{
	struct sums start = sums();
	long long n = run();

	if (run == fault)
		print_sums("new", start, sums(), n);
	n = 0;
	start = sums();
	for (int round = 0; round < rounds; round++)
		n += run();
	print_sums(name, start, sums(), n);
}

int main(int argc, char **argv)
{
	printf("%s:", argc > 1 ? argv[1] : "?");
	open_counters();
	measure("fault", fault, ROUNDS);
	measure("fork", forks, ROUNDS);
	measure("write", writes, ROUNDS);
	measure("read", reads, ROUNDS);
	if (argc > 2) {
		command = argv + 2;
		measure("build", build, BUILDS);
	}
	printf("\n");
	return 0;
}
