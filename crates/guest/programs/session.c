/* session FOLDER PROMPT QUERY BEFORE TIMES COMMAND [ARGUMENT...]: a client of a program that
 * answers on its standard output what is asked on its standard input, and prints a prompt when it
 * is ready for more, such as a single PostgreSQL backend.
 *
 * The command runs as the owner of FOLDER, in it. It is asked QUERY, a line, BEFORE times, and
 * then TIMES times in region 1; the last time before is watched as well (region 2). Beside a
 * target, compiled without marks, it is asked once where launch says "once" (PIEBALD_HOW), and
 * until it is told to end where it says "forever". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mark.h"

static const char *prompt;
static int to, from;

/* Who has no name in this system gets one, since programs ask for it. */
static void name(uid_t uid, gid_t gid)
{
    FILE *users;
    if (access("/etc/passwd", F_OK) == 0)
        return;
    users = fopen("/etc/passwd", "w");
    if (!users)
        return;
    fprintf(users, "root:x:0:0::/:/bin/sh\n");
    if (uid != 0)
        fprintf(users, "owner:x:%u:%u::/:/bin/sh\n", (unsigned)uid, (unsigned)gid);
    fclose(users);
}

static void become(const char *folder, const struct stat *owner, char **command)
{
    if (chdir(folder) != 0) {
        perror(folder);
        _exit(126);
    }
    if (getuid() == 0 && (setgroups(0, NULL) != 0 || setgid(owner->st_gid) != 0 ||
                          setuid(owner->st_uid) != 0)) {
        perror("session: the folder's owner");
        _exit(126);
    }
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

/* Starts the command between two pipes. */
static pid_t start(const char *folder, const struct stat *owner, char **command)
{
    int in[2], out[2];
    pid_t child;
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0)
        return -1;
    child = fork();
    if (child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        become(folder, owner, command);
    }
    close(in[0]);
    close(out[1]);
    to = in[1];
    from = out[0];
    return child;
}

/* Reads until the prompt is the last that was printed; 0 if nothing comes any more. */
static int ready(void)
{
    static char buffer[65536];
    size_t wanted = strlen(prompt), have = 0;
    ssize_t n;
    while ((n = read(from, buffer + have, sizeof buffer - have)) > 0) {
        have += (size_t)n;
        if (have >= wanted && memcmp(buffer + have - wanted, prompt, wanted) == 0)
            return 1;
        if (have > wanted) {
            memmove(buffer, buffer + have - wanted, wanted);
            have = wanted;
        }
    }
    return 0;
}

static int ask(const char *query)
{
    size_t length = strlen(query);
    return write(to, query, length) == (ssize_t)length && write(to, "\n", 1) == 1 && ready();
}

static int all(const char *query, unsigned long before, unsigned long times)
{
    if (!ready())
        return 0;
#ifdef PIEBALD_UNMARKED
    const char *how = getenv("PIEBALD_HOW");
    while (how && strcmp(how, "forever") == 0)
        if (!ask(query))
            return 0;
    if (how && strcmp(how, "once") == 0)
        return ask(query);
#endif
    for (unsigned long nth = 0; nth < before + times; nth++) {
        if (nth + 1 == before)
            PIEBALD_MARK(PIEBALD_START, 2);
        if (nth == before)
            PIEBALD_MARK(PIEBALD_START, 1);
        if (!ask(query))
            return 0;
    }
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    return 1;
}

int main(int argc, char **argv)
{
    struct stat owner;
    int status;
    pid_t child;
    unsigned long before = argc > 6 ? strtoul(argv[4], NULL, 10) : 0;
    unsigned long times = argc > 6 ? strtoul(argv[5], NULL, 10) : 0;
    if (before < 1 || before > 1000000 || times < 1 || times > 1000000) {
        fprintf(stderr, "session FOLDER PROMPT QUERY BEFORE TIMES COMMAND [ARGUMENT...]: "
                        "allowed: 1 to 1000000 times\n");
        return 2;
    }
    if (stat(argv[1], &owner) != 0) {
        perror(argv[1]);
        return 1;
    }
    name(owner.st_uid, owner.st_gid);
    signal(SIGPIPE, SIG_IGN);
    prompt = argv[2];
    child = start(argv[1], &owner, argv + 6);
    if (child < 0) {
        perror("session");
        return 1;
    }
    if (!all(argv[3], before, times)) {
        fprintf(stderr, "session: %s: no answer\n", argv[6]);
        return 1;
    }
    close(to);
    while (waitpid(child, &status, 0) < 0)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
