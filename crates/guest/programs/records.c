/* records BYTES TIMES: sorts an array of BYTES of records of 64 bytes by merging, bottom up,
 * TIMES times, as the mergesort of SRM-buffer's evaluation does (its section 5), and checks
 * the result. The memory in use is twice BYTES. Region 1 holds all rounds but the first, the
 * drawing of the records included. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mark.h"

struct record {
    uint64_t key, rest[7];
};

static void merge(const struct record *from, struct record *to, size_t low, size_t middle,
                  size_t high)
{
    size_t left = low, right = middle;
    for (size_t k = low; k < high; k++) {
        if (left < middle && (right == high || from[left].key <= from[right].key))
            to[k] = from[left++];
        else
            to[k] = from[right++];
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Sorts `a`; returns the array that holds the result. */
static struct record *sort(struct record *a, struct record *spare, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width)
            merge(a, spare, low, least(low + width, n), least(low + 2 * width, n));
        struct record *swap = a;
        a = spare;
        spare = swap;
    }
    return a;
}

static uint64_t draw(struct record *a, size_t n, uint64_t state)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        a[i] = (struct record){.key = state >> 16, .rest = {[6] = ~(state >> 16)}};
        sum += state >> 16;
    }
    return sum;
}

static int is_sorted(const struct record *a, size_t n, uint64_t sum)
{
    for (size_t i = 0; i < n; i++) {
        if ((i > 0 && a[i - 1].key > a[i].key) || a[i].rest[6] != ~a[i].key)
            return 0;
        sum -= a[i].key;
    }
    return sum == 0;
}

int main(int argc, char **argv)
{
    size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 0) / sizeof(struct record);
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (n < 2 || n > (1u << 24) || times < 1 || times > 1000000) {
        fprintf(stderr, "records BYTES TIMES: allowed: 128 to 1073741824, 1 to 1000000\n");
        return 2;
    }
    struct record *a = malloc(n * sizeof *a), *spare = malloc(n * sizeof *spare);
    if (!a || !spare) {
        fprintf(stderr, "records: no memory for %zu records\n", n);
        return 1;
    }
    PIEBALD_MARK(PIEBALD_START, 2);
    for (unsigned long round = 0; round <= times; round++) {
        if (round == 1)
            PIEBALD_MARK(PIEBALD_START, 1);
        uint64_t sum = draw(a, n, round);
        if (!is_sorted(sort(a, spare, n), n, sum)) {
            fprintf(stderr, "records: the result is wrong\n");
            return 1;
        }
    }
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    return 0;
}
