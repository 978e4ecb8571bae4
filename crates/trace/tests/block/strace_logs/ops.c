// Reads and writes files in every way that the reader of strace's logs knows, and writes down what it
// did: one line "process op path offset length" for each request, in order. Offsets are what the kernel
// says before the call (lseek(fd, 0, SEEK_CUR), which record.sh takes out of the log) or the call's own;
// lengths are the results. The log must lead to the same list, with other numbers for the processes.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 1 << 16 };
static char *list; // shared by all processes
static char data[1 << 16];
static __thread int process;

static void say(const char *form, ...) {
    va_list args;
    va_start(args, form);
    vsprintf(list + strlen(list), form, args);
    va_end(args);
}

static void must(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "ops: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static long long here(int fd) { return lseek(fd, 0, SEEK_CUR); }

static void did(const char *op, const char *path, long long at, long long n) {
    must(n >= 0, path);
    if (n > 0)
        say("%d %s /tmp/ops/%s %lld %lld\n", process, op, path, at, n);
}

static void gone(const char *path, long long from) {
    say("%d delete /tmp/ops/%s %lld\n", process, path, from);
}

static void reads(int fd, const char *path, size_t n) {
    long long at = here(fd);
    did("read", path, at, read(fd, data, n));
}

static void writes(int fd, const char *path, size_t n) {
    long long at = here(fd);
    did("write", path, at, write(fd, data, n));
}

static int makes(const char *path, int flags) {
    int fd = open(path, flags | O_CREAT, 0600);
    must(fd >= 0, path);
    return fd;
}

static void offsets(void) {
    struct iovec two[2] = {{data, 3}, {data + 100, 4}};
    int fd = makes("a", O_RDWR | O_TRUNC);
    gone("a", 0);
    writes(fd, "a", 4096);
    writes(fd, "a", 6000);
    lseek(fd, 100, SEEK_SET);
    reads(fd, "a", 50);
    lseek(fd, -96, SEEK_END);
    reads(fd, "a", 4096);
    reads(fd, "a", 4096);
    lseek(fd, 0, SEEK_SET);
    long long at = here(fd);
    did("read", "a", at, readv(fd, two, 2));
    at = here(fd);
    did("write", "a", at, writev(fd, two, 2));
    did("read", "a", 4090, pread(fd, data, 50, 4090));
    did("write", "a", 65536, pwrite(fd, "end)\"\n", 6, 65536));
    did("read", "a", 8192, preadv(fd, two, 2, 8192));
    did("read", "a", 8200, preadv2(fd, two, 2, 8200, 0));
    at = here(fd);
    did("read", "a", at, preadv2(fd, two, 2, -1, 0));
    did("write", "a", 65542, pwritev2(fd, two, 2, 0, RWF_APPEND));
    at = here(fd);
    did("write", "a", at, pwritev2(fd, two, 2, -1, 0));
    close(fd);
}

static void appending(void) {
    int fd = makes("log", O_WRONLY | O_APPEND | O_EXCL);
    did("write", "log", 0, write(fd, data, 10));
    lseek(fd, 0, SEEK_SET);
    did("write", "log", 10, write(fd, data, 11));
    // Linux: at the end, whatever the offset.
    did("write", "log", 21, pwrite(fd, data, 12, 5));
    fcntl(fd, F_SETFL, 0);
    did("write", "log", 5, pwrite(fd, data, 2, 5));
    close(fd);
}

static void duplicates(void) {
    int fd = open("a", O_RDONLY);
    int one = dup(fd), two = dup2(fd, 20), three = dup3(fd, 21, O_CLOEXEC);
    int four = fcntl(fd, F_DUPFD, 30), five = fcntl(fd, F_DUPFD_CLOEXEC, 30);
    int all[] = {fd, one, two, three, four, five};
    for (int i = 0; i < 6; i++)
        reads(all[i], "a", 10 + i);
    close(fd), close(one);
    reads(two, "a", 7);
    syscall(SYS_close_range, 20, 100, 0);
}

static void inside_the_kernel(void) {
    int from = open("a", O_RDONLY), to = makes("b", O_RDWR | O_EXCL), pipes[2];
    off_t off = 512;
    long long n, at = here(from), there = here(to);
    n = sendfile(to, from, NULL, 300), did("read", "a", at, n), did("write", "b", there, n);
    there = here(to);
    n = sendfile(to, from, &off, 200), did("read", "a", 512, n), did("write", "b", there, n);
    at = here(from);
    off = 4096;
    n = copy_file_range(from, NULL, to, &off, 1000, 0);
    did("read", "a", at, n), did("write", "b", 4096, n);
    must(pipe(pipes) == 0, "pipe");
    off = 1024;
    n = splice(from, &off, pipes[1], NULL, 400, 0), did("read", "a", 1024, n);
    there = here(to);
    n = splice(pipes[0], NULL, to, NULL, 400, 0), did("write", "b", there, n);
    tee(pipes[0], pipes[1], 0, 0);
    close(from), close(to), close(pipes[0]), close(pipes[1]);
}

static void mappings(void) {
    int fd = open("a", O_RDONLY);
    struct stat st;
    fstat(fd, &st);
    must(mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 4096) != MAP_FAILED, "mmap");
    did("map", "a", 4096, 8192);
    must(mmap(NULL, 65536, PROT_READ, MAP_SHARED, fd, 61440) != MAP_FAILED, "mmap");
    did("map", "a", 61440, st.st_size - 61440);
    close(fd);
}

static void cuts(void) {
    int fd = makes("c", O_RDWR | O_EXCL);
    writes(fd, "c", 40960);
    must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 32768, 65536) == 0, "punch");
    gone("c", 32768);
    must(ftruncate(fd, 10000) == 0, "ftruncate"), gone("c", 10000);
    must(fallocate(fd, 0, 0, 20000) == 0, "fallocate");
    must(truncate("c", 500) == 0, "truncate"), gone("c", 500);
    must(rename("b", "d") == 0, "rename");
    must(rename("c", "d") == 0, "rename"), gone("b", 0);
    writes(fd, "c", 9);
    must(unlink("d") == 0, "unlink"), gone("c", 0);
    close(fd);
}

static void asynchronous(void) {
    aio_context_t context = 0;
    struct io_event events[4];
    int fd = open("a", O_RDWR);
    struct iovec two[2] = {{data, 600}, {data + 1000, 24}};
    struct iocb jobs[4] = {
        {.aio_lio_opcode = IOCB_CMD_PREAD, .aio_fildes = fd, .aio_buf = (long)data, .aio_nbytes = 4096, .aio_offset = 16384},
        {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (long)"a, {b}", .aio_nbytes = 6, .aio_offset = 30},
        {.aio_lio_opcode = IOCB_CMD_PREADV, .aio_fildes = fd, .aio_buf = (long)two, .aio_nbytes = 2, .aio_offset = 8192},
        {.aio_lio_opcode = IOCB_CMD_PWRITEV, .aio_fildes = fd, .aio_buf = (long)two, .aio_nbytes = 2, .aio_offset = 12288},
    };
    struct iocb *list[] = {&jobs[0], &jobs[1], &jobs[2], &jobs[3]};
    must(syscall(SYS_io_setup, 8, &context) == 0, "io_setup");
    must(syscall(SYS_io_submit, context, 4, list) == 4, "io_submit");
    must(syscall(SYS_io_getevents, context, 4, 4, events, NULL) == 4, "io_getevents");
    for (int i = 0; i < 4; i++)
        must(events[i].res > 0, "aio");
    did("read", "a", 16384, 4096), did("write", "a", 30, 6);
    did("read", "a", 8192, 624), did("write", "a", 12288, 624);
    close(fd);
}

static void *thread(void *fd) {
    process = 3;
    reads(*(int *)fd, "a", 21);
    *(int *)fd = open("a", O_RDONLY);
    return NULL;
}

static void processes(const char *self) {
    int fd = open("a", O_RDONLY), closes = open("a", O_RDONLY | O_CLOEXEC), turn[2];
    must(pipe(turn) == 0, "pipe");
    reads(fd, "a", 11);
    pid_t child = fork();
    if (child == 0) {
        process = 1;
        reads(fd, "a", 12);
        reads(closes, "a", 13);
        write(turn[1], "x", 1);
        _exit(0);
    }
    read(turn[0], data, 1);
    waitpid(child, NULL, 0);
    reads(fd, "a", 14);
    reads(closes, "a", 15);
    // The child runs another program before its parent goes on.
    char number[20];
    sprintf(number, "%d", fd);
    child = vfork();
    if (child == 0) {
        execl(self, self, "again", number, NULL);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    must(status == 0, "exec");
    reads(fd, "a", 16);
    pthread_t other;
    int theirs = fd;
    must(pthread_create(&other, NULL, thread, &theirs) == 0, "thread");
    pthread_join(other, NULL);
    reads(theirs, "a", 22);
    reads(fd, "a", 23);
    close(fd), close(closes), close(theirs), close(turn[0]), close(turn[1]);
}

static void messages(void) {
    // Words of the program among those of strace, where both go to standard error.
    static const char said[] = "working, (1) of \"2\"\nworking = 5\n";
    write(2, said, sizeof said - 1);
    write(2, "no line feed ", 13);
    write(2, "read(3, \"x\n", 11);
}

int main(int count, char **args) {
    if (count == 3) { // run anew: only the list and a descriptor are left
        list = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, 9, 0);
        process = 2;
        reads(atoi(args[2]), "a", 17);
        reads(atoi(args[2]), "a", 18);
        int own = open("a", O_RDONLY);
        reads(own, "a", 19);
        return 0;
    }
    int memory = memfd_create("list", 0);
    must(memory >= 0 && ftruncate(memory, ROOM) == 0 && dup2(memory, 9) == 9, "memfd");
    close(memory);
    list = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, 9, 0);
    memset(data, 'x', sizeof data);
    offsets();
    appending();
    messages();
    if (count == 1) {
        duplicates();
        inside_the_kernel();
        mappings();
        cuts();
        asynchronous();
    } else {
        processes(args[0]);
    }
    messages();
    int fd = open("a", O_RDONLY);
    lseek(fd, 60000, SEEK_SET);
    reads(fd, "a", 20000);
    if (write(1, list, strlen(list)) < 0)
        return 1;
    return 0;
}
