// SPDX-License-Identifier: GPL-2.0
/*
 * What an operation costs in guest instructions, kernel and program together, and in what else the
 * modelled machine counts where there are its counters (piebald_model). Run in the guest, by cost.sh, under
 * a clock that advances by one nanosecond per instruction.
 *
 *   cost NAME [CMD...]       by one process
 *   cost -p N NAME           by N processes at once, each on a processor of its own
 *   cost -a FILE NAME        fork alone, with 0 and with 1 in a file, 40 times by turns
 *
 * Prints NAME, what the first round of faults costs, in which a process takes memory that it has
 * not had before (new), and the mean of some rounds after: fault (first touch of a page, and its
 * return), fork (with exit and wait), write (a new page of a file in tmpfs, and its return), read
 * (4 KiB that are in memory), build (CMD, which must succeed; fewer rounds). Each number of
 * instructions is followed by cycles, misses of the last level, locked instructions and stores to lines that
 * another processor wrote last, or by - for each. One process alone also has instructions of single faults, without the
 * return of the page: their median, the 99th of 100, and the worst (single), of those in which no other task
 * ran; of the others how many they are, and the worst (switched). With -a: forks with 0, with 1, how many percent more
 * that is, and half of its 95 % interval (Student's t of the paired differences).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
#define PAGES 4096
#define FORKS 100
#define ROUNDS 8
#define BUILDS 2
/* Of several processes at once, which are emulated in turn, each does so many times less. */
#define LESS 8

static char buffer[PAGE];
/* Processes at once; 0: this one alone. */
static int several;
static int pages = PAGES;

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
	char *at = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		die("mmap");
	for (int i = 0; i < pages; i++)
		((volatile char *)at)[i * PAGE] = 1;
	munmap(at, pages * PAGE);
	return pages;
}

static int forks(void)
{
	int n = several ? FORKS / LESS : FORKS;

	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return n;
}

/* The file that this process writes. */
static char written[32] = "/tmp/cost";

static int writes(void)
{
	int fd = open(written, O_RDWR | O_CREAT | O_TRUNC, 0600);

	for (int i = 0; i < pages; i++)
		if (write(fd, buffer, PAGE) != PAGE)
			die("write");
	close(fd);
	unlink(written);
	return pages;
}

static int reads(void)
{
	static int fd = -1;

	if (fd < 0) {
		fd = open("/tmp/read", O_RDWR | O_CREAT, 0600);
		if (write(fd, buffer, PAGE) != PAGE)
			die("write");
	}
	for (int i = 0; i < pages; i++)
		if (pread(fd, buffer, PAGE, 0) != PAGE)
			die("pread");
	return pages;
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

/* What is counted: instructions by the clock, or for several processes by the model. */
enum { INSTRUCTIONS, CYCLES, MISSES, LOCKED, SHARED, COUNTS };
/* The modelled counters' numbers in kernel/model.c, and their files, -1: there are none. */
static const int numbers[COUNTS] = { 0, 1, 5, 10, 11 };
static int files[COUNTS] = { -1, -1, -1, -1, -1 };

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
	for (int i = several ? INSTRUCTIONS : CYCLES; i < COUNTS; i++) {
		files[i] = counter(type, numbers[i]);
		if (files[i] < 0)
			die("perf_event_open");
	}
}

struct sums {
	long long n, of[COUNTS];
};

static void read_sums(struct sums *sums, int sign)
{
	for (int i = 0; i < COUNTS; i++) {
		long long value = 0;

		if (files[i] >= 0 && read(files[i], &value, 8) != 8)
			die("counters");
		if (i == INSTRUCTIONS && !several)
			value = now();
		sums->of[i] += sign * value;
	}
}

static void print_sums(const char *name, const struct sums *sums)
{
	printf(" %s %.0f", name, (double)sums->of[INSTRUCTIONS] / sums->n);
	for (int i = CYCLES; i < COUNTS; i++) {
		if (files[CYCLES] < 0)
			printf(" -");
		else
			printf(i == CYCLES ? " %.0f" : " %.2f", (double)sums->of[i] / sums->n);
	}
}

static struct sums measure(int (*run)(void), int rounds)
{
	struct sums sums = { 0 };

	read_sums(&sums, -1);
	for (int round = 0; round < rounds; round++)
		sums.n += run();
	read_sums(&sums, 1);
	return sums;
}

static int compare(const void *a, const void *b)
{
	unsigned int one = *(const unsigned int *)a, other = *(const unsigned int *)b;

	return (one > other) - (one < other);
}

/* How often another task had the processor. */
static long switches(void)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage))
		die("getrusage");
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

/* The counter of cycles goes on by one for each instruction, whoever runs. */
static void single_faults(void)
{
	static unsigned int took[ROUNDS * PAGES];
	unsigned int worst = 0;
	int n = 0, switched = 0;

	for (int round = 0; round < ROUNDS; round++) {
		char *at = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (at == MAP_FAILED)
			die("mmap");
		for (int i = 0; i < PAGES; i++) {
			long before = switches();
			unsigned long long from = __builtin_ia32_rdtsc();
			unsigned int one;

			((volatile char *)at)[i * PAGE] = 1;
			one = __builtin_ia32_rdtsc() - from;
			if (switches() == before) {
				took[n++] = one;
				continue;
			}
			switched++;
			if (one > worst)
				worst = one;
		}
		munmap(at, PAGES * PAGE);
	}
	qsort(took, n, sizeof(*took), compare);
	printf(" single %u %u %u switched %d %u", took[n / 2], took[n * 99LL / 100], took[n - 1], switched, worst);
}

static const struct op {
	const char *name;
	int (*run)(void);
	int rounds;
} ops[] = {
	{ "new", fault, 1 },	{ "fault", fault, ROUNDS }, { "fork", forks, ROUNDS },
	{ "write", writes, ROUNDS }, { "read", reads, ROUNDS },
};
#define OPS ((int)(sizeof(ops) / sizeof(*ops)))

/* What several processes share: how many have come so far, and what each operation took them. */
struct shared {
	atomic_int came;
	struct sums sums[][OPS];
};

static void wait_for_all(struct shared *shared, int round)
{
	atomic_fetch_add(&shared->came, 1);
	while (atomic_load(&shared->came) < several * (round + 1))
		__builtin_ia32_pause();
}

static void run_one(struct shared *shared, int number)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(number, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		die("sched_setaffinity");
	snprintf(written, sizeof(written), "/tmp/cost.%d", number);
	open_counters();
	if (files[INSTRUCTIONS] < 0) {
		fprintf(stderr, "cost: several processes are counted by piebald_model alone, which is not here\n");
		exit(2);
	}
	for (int i = 0; i < OPS; i++) {
		/* The first round of each is not counted, but for that of new memory. */
		if (ops[i].rounds > 1)
			ops[i].run();
		wait_for_all(shared, i);
		shared->sums[number][i] = measure(ops[i].run, ops[i].rounds > 1 ? ROUNDS / 2 : 1);
	}
}

static void run_several(void)
{
	struct shared *shared = mmap(NULL, sizeof(*shared) + several * sizeof(*shared->sums), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;

	if (shared == MAP_FAILED)
		die("mmap");
	reads();
	for (int number = 0; number < several; number++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid) {
			run_one(shared, number);
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		if (status) {
			fprintf(stderr, "cost: a process failed\n");
			exit(2);
		}
	open_counters();
	for (int i = 0; i < OPS; i++) {
		struct sums all = { 0 };

		for (int number = 0; number < several; number++) {
			const struct sums *its = &shared->sums[number][i];

			all.n += its->n;
			for (int k = 0; k < COUNTS; k++)
				all.of[k] += its->of[k];
		}
		print_sums(ops[i].name, &all);
	}
}

/* Pairs, and Student's t for one less. */
#define TURNS 40
#define STUDENT 2.023

static void put(const char *file, char digit)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, &digit, 1) != 1)
		die(file);
	close(fd);
}

static double forks_with(const char *file, char digit)
{
	struct sums sums;

	put(file, digit);
	forks();
	sums = measure(forks, 1);
	return (double)sums.of[INSTRUCTIONS] / sums.n;
}

static void print_turns(const char *file)
{
	double without = 0, with = 0, sum = 0, squares = 0, variance;

	for (int i = 0; i < TURNS; i++) {
		double off = forks_with(file, '0'), on = forks_with(file, '1');
		double more = 100 * (on / off - 1);

		without += off / TURNS;
		with += on / TURNS;
		sum += more;
		squares += more * more;
	}
	variance = (squares - sum * sum / TURNS) / (TURNS - 1);
	printf(" fork %.0f %.0f more %.2f half %.2f\n", without, with, sum / TURNS, STUDENT * sqrt(variance / TURNS));
}

int main(int argc, char **argv)
{
	const char *turns = NULL;
	struct sums sums;

	if (argc > 2 && !strcmp(argv[1], "-p")) {
		several = atoi(argv[2]);
		pages = PAGES / LESS;
		argc -= 2;
		argv += 2;
	}
	if (argc > 2 && !strcmp(argv[1], "-a")) {
		turns = argv[2];
		argc -= 2;
		argv += 2;
	}
	if (argc < 2 || several < 0 || several > CPU_SETSIZE) {
		fprintf(stderr, "use: cost [-p PROCESSES | -a FILE] NAME [CMD...]\n");
		return 2;
	}
	printf("%s:", argv[1]);
	fflush(stdout);
	if (turns) {
		print_turns(turns);
		return 0;
	}
	if (several) {
		run_several();
		printf("\n");
		return 0;
	}
	open_counters();
	for (int i = 0; i < OPS; i++) {
		/* Of faults the round of new memory was the first. */
		if (ops[i].rounds > 1 && ops[i].run != fault)
			ops[i].run();
		sums = measure(ops[i].run, ops[i].rounds);
		print_sums(ops[i].name, &sums);
		if (ops[i].run == fault && ops[i].rounds > 1)
			single_faults();
	}
	if (argc > 2) {
		command = argv + 2;
		build();
		sums = measure(build, BUILDS);
		print_sums("build", &sums);
	}
	printf("\n");
	return 0;
}
