/* launch VCPU HOW COMMAND [ARGUMENT...]: runs a command on one virtual processor.
 *
 * HOW: once      runs it, and ends as it does
 *      measured  runs it twice, and region 1 holds the second time
 *      forever   runs it again and again until it is told to end (SIGTERM)
 *
 * The command finds HOW in its environment as PIEBALD_HOW, which some care for (session). What it
 * prints on its standard output is dropped. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"

static volatile sig_atomic_t ended;
static volatile pid_t child;

static void end(int signal)
{
    ended = 1;
    if (child > 0)
        kill(child, signal);
}

static void become(char **command)
{
    int nothing = open("/dev/null", O_WRONLY);
    if (nothing >= 0)
        dup2(nothing, STDOUT_FILENO);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

/* Runs the command once; its exit status, or 128 + the signal that ended it. */
static int run(char **command)
{
    int status;
    child = fork();
    if (child < 0) {
        perror("launch: fork");
        return 126;
    }
    if (child == 0)
        become(command);
    while (waitpid(child, &status, 0) < 0)
        ;
    child = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int measured(char **command)
{
    PIEBALD_MARK(PIEBALD_START, 2);
    int status = run(command);
    if (status == 0) {
        PIEBALD_MARK(PIEBALD_START, 1);
        status = run(command);
        PIEBALD_MARK(PIEBALD_STOP, 1);
    }
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    return status;
}

static int forever(char **command)
{
    struct sigaction act = {.sa_handler = end};
    sigaction(SIGTERM, &act, NULL);
    while (!ended) {
        int status = run(command);
        if (!ended && status != 0) {
            fprintf(stderr, "launch: %s ended with status %d\n", command[0], status);
            return status;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    cpu_set_t set;
    if (argc < 4) {
        fprintf(stderr, "launch VCPU once|measured|forever COMMAND [ARGUMENT...]\n");
        return 2;
    }
    int vcpu = atoi(argv[1]);
    CPU_ZERO(&set);
    CPU_SET(vcpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        fprintf(stderr, "launch: no virtual processor %s\n", argv[1]);
        return 2;
    }
    char **command = argv + 3;
    setenv("PIEBALD_HOW", argv[2], 1);
    if (strcmp(argv[2], "once") == 0)
        return run(command);
    if (strcmp(argv[2], "measured") == 0)
        return measured(command);
    if (strcmp(argv[2], "forever") == 0)
        return forever(command);
    fprintf(stderr, "launch: \"%s\": allowed: once, measured, forever\n", argv[2]);
    return 2;
}
