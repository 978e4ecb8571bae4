/* Looks words up in a table of 5 MiB, in an order that no cache can foresee. */
#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 5 << 17, LOOKUPS = 2000000 };

static unsigned long seed = 42;

static unsigned long draw(void) {
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return seed >> 33;
}

int main(void) {
    unsigned long *table = malloc(ENTRIES * sizeof *table), sum = 0;
    if (!table)
        return 1;
    for (unsigned long i = 0; i < ENTRIES; i++)
        table[i] = draw();
    for (unsigned long i = 0; i < LOOKUPS; i++)
        sum += table[(draw() + sum) % ENTRIES];
    printf("%lu\n", sum);
    return 0;
}
