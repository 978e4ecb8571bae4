/* Looks at the counters of the machine model through perf_event_open, as a program of the guest.
 *
 *   counters touch LINES TIMES   goes over LINES lines of 64 bytes TIMES times, counted; then a
 *                                child does, whose counts must come to its parent
 *   counters quiet               a child that sleeps while its parent goes over 1 MiB counts nothing of it
 *   counters refused             what the unit cannot do is refused, with the right errors
 *   counters draw STEPS EACH     reads STEPS words of 4 MiB, drawn uniformly, and all counters after
 *                                each EACH of them
 *
 * Prints what was counted, one line per event: whose, name and number. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNIT "/sys/bus/event_source/devices/piebald_model"
#define MOST 16
#define DRAWN (4 << 17) /* words of 4 MiB */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint32_t type(void)
{
	FILE *file = fopen(UNIT "/type", "r");
	unsigned int number;

	if (!file || fscanf(file, "%u", &number) != 1)
		die(UNIT "/type");
	fclose(file);
	return number;
}

static int open_event(uint64_t config, uint64_t period, int exclude_user, pid_t pid)
{
	struct perf_event_attr attr = {
		.type = type(), .size = sizeof(attr), .config = config,
		.sample_period = period, .inherit = 1, .exclude_user = exclude_user,
	};

	return syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static int fds[MOST], events;
static char names[MOST][64];

static void open_all(void)
{
	DIR *folder = opendir(UNIT "/events");
	struct dirent *entry;

	if (!folder)
		die(UNIT "/events");
	while ((entry = readdir(folder)) && events < MOST) {
		char path[400];
		unsigned int config;
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), UNIT "/events/%s", entry->d_name);
		file = fopen(path, "r");
		if (!file || fscanf(file, "event=%x", &config) != 1)
			die(path);
		fclose(file);
		snprintf(names[events], sizeof(names[0]), "%.63s", entry->d_name);
		fds[events] = open_event(config, 0, 0, 0);
		if (fds[events] < 0)
			die(entry->d_name);
		events++;
	}
	closedir(folder);
}

static void read_all(uint64_t *counts)
{
	for (int i = 0; i < events; i++)
		if (read(fds[i], &counts[i], 8) != 8)
			die(names[i]);
}

static volatile uint64_t sum;

static void touch(char *memory, long lines, long times)
{
	for (long n = 0; n < times; n++)
		for (long i = 0; i < lines; i++)
			sum += *(volatile char *)(memory + 64 * i);
}

static char *lines_of(long lines)
{
	char *memory = mmap(NULL, 64 * lines, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	return memory;
}

static void in_child(void (*work)(char *, long, long), char *memory, long lines, long times)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		die("fork");
	if (!child) {
		work(memory, lines, times);
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		die("child");
}

static void print_rise(const char *who, const uint64_t *before, const uint64_t *after)
{
	for (int i = 0; i < events; i++)
		printf("%s %s %llu\n", who, names[i], (unsigned long long)(after[i] - before[i]));
}

static int refused(const char *what, int fd, int wanted)
{
	int found = fd < 0 ? errno : 0;

	if (found == wanted)
		return 0;
	printf("%s: %s, wanted %s\n", what, strerror(found), strerror(wanted));
	return 1;
}

static void draw(char *memory, long steps, long each)
{
	uint64_t counts[MOST], state = 1;

	for (long i = 1; i <= steps; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		sum += *(volatile uint64_t *)(memory + (state >> 32) % DRAWN * 8);
		if (i % each == 0)
			read_all(counts);
	}
}

int main(int argc, char **argv)
{
	uint64_t before[MOST], after[MOST];
	long lines, times;
	char *memory;

	if (argc == 2 && !strcmp(argv[1], "refused"))
		return refused("an event that does not exist", open_event(255, 0, 0, 0), EINVAL) |
		       refused("sampling", open_event(0, 1000, 0, 0), EOPNOTSUPP) |
		       refused("the kernel alone", open_event(0, 0, 1, 0), EINVAL);
	if (argc == 2 && !strcmp(argv[1], "quiet")) {
		pid_t child = fork();
		uint64_t slept;
		int fd;

		if (!child) {
			pause();
			_exit(0);
		}
		/* It has to be asleep. */
		usleep(20000);
		fd = open_event(0, 0, 0, child);
		if (fd < 0)
			die("child's event");
		touch(lines_of(16384), 16384, 4);
		if (read(fd, &slept, 8) != 8)
			die("read");
		kill(child, 9);
		wait(NULL);
		printf("asleep instructions %llu\n", (unsigned long long)slept);
		return 0;
	}
	if (argc == 4 && !strcmp(argv[1], "draw") && atol(argv[3]) > 0) {
		memory = lines_of(DRAWN / 8);
		open_all();
		draw(memory, atol(argv[2]), atol(argv[3]));
		read_all(before);
		draw(memory, atol(argv[2]), atol(argv[3]));
		read_all(after);
		print_rise("drawn", before, after);
		return 0;
	}
	if (argc != 4 || strcmp(argv[1], "touch") || (lines = atol(argv[2])) < 1 ||
	    (times = atol(argv[3])) < 1) {
		fprintf(stderr, "counters touch LINES TIMES | quiet | refused | draw STEPS EACH\n");
		return 2;
	}
	memory = lines_of(lines);
	open_all();
	touch(memory, lines, times);
	read_all(before);
	touch(memory, lines, times);
	read_all(after);
	print_rise("own", before, after);
	read_all(before);
	in_child(touch, memory, lines, times);
	read_all(after);
	print_rise("child", before, after);
	return 0;
}
