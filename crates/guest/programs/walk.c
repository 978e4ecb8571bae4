/* walk BYTES STEPS: reads that many words of an array of BYTES, each drawn uniformly, and
 * checks their sum. Region 1 holds STEPS reads; as many come before it. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "mark.h"

/* Reads `steps` words; the sum of what was read, less that of the places, is 0. */
static uint64_t walk(const uint64_t *a, uint64_t words, uint64_t steps, uint64_t *state)
{
    uint64_t difference = 0, x = *state;
    for (uint64_t i = 0; i < steps; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint64_t place = ((x >> 32) * words) >> 32;
        difference += a[place] - place;
    }
    *state = x;
    return difference;
}

int main(int argc, char **argv)
{
    uint64_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t words = bytes / sizeof(uint64_t), state = 1;
    if (bytes < 4096 || bytes > (1u << 30) || steps < 1 || steps > 10000000000u) {
        fprintf(stderr, "walk BYTES STEPS: allowed: 4096 to 1073741824, 1 to 10000000000\n");
        return 2;
    }
    uint64_t *a = malloc(bytes);
    if (!a) {
        fprintf(stderr, "walk: no memory for %llu bytes\n", (unsigned long long)bytes);
        return 1;
    }
    for (uint64_t i = 0; i < words; i++)
        a[i] = i;
    PIEBALD_MARK(PIEBALD_START, 2);
    uint64_t difference = walk(a, words, steps, &state);
    PIEBALD_MARK(PIEBALD_START, 1);
    difference += walk(a, words, steps, &state);
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    if (difference != 0) {
        fprintf(stderr, "walk: what was read is wrong\n");
        return 1;
    }
    return 0;
}
