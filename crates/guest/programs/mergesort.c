/* mergesort INTS TIMES: sorts that many random ints, TIMES times, and checks the result.
 *
 * The memory in use is 8 bytes per int: the array and as much again to merge into. Region
 * 1 holds the sorting alone: the numbers are drawn, and sorted once, before it begins. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mark.h"

static void merge(const int *from, int *to, size_t low, size_t middle, size_t high)
{
    size_t left = low, right = middle;
    for (size_t k = low; k < high; k++) {
        if (left < middle && (right == high || from[left] <= from[right]))
            to[k] = from[left++];
        else
            to[k] = from[right++];
    }
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Sorts `a`, bottom up; returns the array that holds the result. */
static int *sort(int *a, int *spare, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width)
            merge(a, spare, low, least(low + width, n), least(low + 2 * width, n));
        int *swap = a;
        a = spare;
        spare = swap;
    }
    return a;
}

static uint32_t draw(int *a, size_t n, uint32_t seed)
{
    uint32_t x = seed, sum = 0;
    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        a[i] = (int)(x >> 1);
        sum += x >> 1;
    }
    return sum;
}

static int is_sorted(const int *a, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0 && a[i - 1] > a[i])
            return 0;
        sum -= (uint32_t)a[i];
    }
    return sum == 0;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long times = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    if (n < 2 || n > (1u << 28) || times < 1 || times > 1000) {
        fprintf(stderr, "mergesort INTS TIMES: allowed: 2 to 268435456, 1 to 1000\n");
        return 2;
    }
    int *a = malloc(n * sizeof *a), *spare = malloc(n * sizeof *spare);
    if (!a || !spare) {
        fprintf(stderr, "mergesort: no memory for %zu ints\n", n);
        return 1;
    }
    for (unsigned long round = 0; round <= times; round++) {
        uint32_t sum = draw(a, n, 12345 + (uint32_t)round);
        if (round > 0)
            PIEBALD_MARK(PIEBALD_START, 1);
        else
            PIEBALD_MARK(PIEBALD_START, 2);
        int *sorted = sort(a, spare, n);
        if (round > 0)
            PIEBALD_MARK(PIEBALD_STOP, 1);
        if (!is_sorted(sorted, n, sum)) {
            fprintf(stderr, "mergesort: the result is wrong\n");
            return 1;
        }
    }
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    return 0;
}
