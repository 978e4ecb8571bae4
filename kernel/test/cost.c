// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation costs in guest instructions, kernel and program together. Run in the guest,
 * by cost.sh, under a clock that advances by one nanosecond per instruction.
 *
 *   cost NAME       prints NAME, what the first round of faults costs, in which a process takes
 *                   memory that it has not had before (new), and the mean of some rounds after:
 *                   fault (first touch of a page, and its return), fork (with exit and wait),
 *                   write (a new page of a file in tmpfs, and its return), read (4 KiB that are
 *                   in memory)
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4096
#define FORKS 100
#define ROUNDS 8

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

static void measure(const char *name, int (*run)(void))
{
	long long start = now(), n = run();

	if (run == fault)
		printf(" new %.0f", (double)(now() - start) / n);
	n = 0;
	start = now();
	for (int round = 0; round < ROUNDS; round++)
		n += run();
	printf(" %s %.0f", name, (double)(now() - start) / n);
}

int main(int argc, char **argv)
{
	printf("%s:", argc > 1 ? argv[1] : "?");
	measure("fault", fault);
	measure("fork", forks);
	measure("write", writes);
	measure("read", reads);
	printf("\n");
	return 0;
}
