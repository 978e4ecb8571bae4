/* scan FILE TIMES: reads a file from its beginning to its end, TIMES times, and prints the
 * sum of its bytes. Region 1 holds all readings but the first. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mark.h"

static int scan(const char *path, uint64_t *sum)
{
    static unsigned char buffer[65536];
    ssize_t n;
    int file = open(path, O_RDONLY);
    if (file < 0)
        return -1;
    while ((n = read(file, buffer, sizeof buffer)) > 0)
        for (ssize_t i = 0; i < n; i++)
            *sum += buffer[i];
    close(file);
    return n < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    uint64_t sum = 0;
    if (times < 1 || times > 1000000) {
        fprintf(stderr, "scan FILE TIMES: allowed: 1 to 1000000 times\n");
        return 2;
    }
    for (unsigned long round = 0; round < times; round++) {
        if (round == 1)
            PIEBALD_MARK(PIEBALD_START, 1);
        if (scan(argv[1], &sum) != 0) {
            perror(argv[1]);
            return 1;
        }
    }
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    printf("%llu\n", (unsigned long long)sum);
    return 0;
}
