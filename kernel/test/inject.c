// SPDX-License-Identifier: GPL-2.0
/*
 * Does something again and again, and each time lets the next allocation of it fail: the first one,
 * then the second, until it makes no more. Run in a kernel with fault injection, by inject.sh.
 *
 *   inject write FILE TEXT [UNDO]   writes TEXT; where that succeeded in spite of the failure,
 *                                   writes UNDO before the next time
 *   inject load FILE PARAMETERS     loads a module, and unloads it again
 *   inject fork                     a child, which ends
 *   inject touch                    64 new pages of memory
 *   inject read FILE                64 pages of a file that is not in memory
 *
 * Prints how many allocations were made to fail and how often the whole failed for it. Fails if it
 * still fails when no allocation is left.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 64
/* So many one by one; then, as most are the pages of a table, a sixteenth more each time. */
#define EACH 60
#define MOST 20000

static char **words;	/* of the command line, from the operation on */
static int control;	/* /proc/thread-self/fail-nth */

static void die(const char *what)
{
	fprintf(stderr, "inject: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void fail_at(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(control, text, len, 0) != len)
		die("fail-nth");
}

/* Allocations that are left until one fails; 0: one has failed. */
static int left(void)
{
	char text[16] = "";

	if (pread(control, text, sizeof(text) - 1, 0) <= 0)
		die("fail-nth");
	return atoi(text);
}

/* What is done under failure: true if it succeeded. What has to be there before, is. */
static int at;	/* a file or module */
static char *memory;

static bool put(const char *text)
{
	return write(at, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool do_write(void)
{
	return put(words[2]);
}

static bool do_load(void)
{
	return !syscall(SYS_finit_module, at, words[2], 0);
}

static pid_t child;

static bool do_fork(void)
{
	child = fork();
	if (!child)
		_exit(0);
	return child > 0;
}

static bool do_touch(void)
{
	for (int i = 0; i < PAGES; i++)
		memory[i * PAGE] = 1;
	return true;
}

static bool do_read(void)
{
	return pread(at, memory, PAGES * PAGE, 0) == PAGES * PAGE;
}

static void open_file(int flags)
{
	at = open(words[1], flags);
	if (at < 0)
		die(words[1]);
}

static void map(void)
{
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		die("mmap");
}

static void before_write(void)
{
	open_file(O_WRONLY);
}

static void after_write(bool done)
{
	close(at);
	if (!done || !words[3])
		return;
	open_file(O_WRONLY);
	if (!put(words[3]))
		die("undo");
	close(at);
}

static void before_load(void)
{
	open_file(O_RDONLY);
}

static void after_load(bool done)
{
	close(at);
	if (done && syscall(SYS_delete_module, "piebald", 0))
		die("delete_module");
}

static void after_fork(bool done)
{
	if (done)
		waitpid(child, NULL, 0);
}

static void after_touch(bool done)
{
	(void)done;
	munmap(memory, PAGES * PAGE);
}

static void before_read(void)
{
	int drop = open("/proc/sys/vm/drop_caches", O_WRONLY);

	if (write(drop, "1", 1) != 1)
		die("drop_caches");
	close(drop);
	open_file(O_RDONLY);
	map();
	memset(memory, 1, PAGES * PAGE);
}

static void after_read(bool done)
{
	after_touch(done);
	close(at);
}

static void nothing(void)
{
}

static const struct operation {
	const char *name;
	int words;	/* at least */
	void (*before)(void);
	bool (*run)(void);
	void (*after)(bool done);
} operations[] = {
	{ "write", 3, before_write, do_write, after_write },
	{ "load", 3, before_load, do_load, after_load },
	{ "fork", 1, nothing, do_fork, after_fork },
	{ "touch", 1, map, do_touch, after_touch },
	{ "read", 2, before_read, do_read, after_read },
};

int main(int argc, char **argv)
{
	const struct operation *operation = NULL;
	int tried = 0, failed = 0;

	words = argv + 1;
	for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
		if (argc > 1 && !strcmp(argv[1], operations[i].name) && argc - 1 >= operations[i].words)
			operation = &operations[i];
	if (!operation) {
		fprintf(stderr, "inject: see the beginning of inject.c\n");
		return 2;
	}
	control = open("/proc/thread-self/fail-nth", O_RDWR);
	if (control < 0)
		die("no fault injection: fail-nth");
	for (int n = 1; n <= MOST; n += n < EACH ? 1 : n / 16) {
		bool done, over;
		int error;

		operation->before();
		fail_at(n);
		done = operation->run();
		error = errno;
		over = left();
		fail_at(0);
		operation->after(done);
		if (over) {
			printf("%d allocations failed, %d times all of it; fewer than %d are made\n",
			       tried, failed, n);
			if (!done)
				printf("and without a failure: %s\n", strerror(error));
			return !done || n == 1;
		}
		tried++;
		failed += !done;
	}
	printf("more than %d allocations\n", MOST);
	return 1;
}
