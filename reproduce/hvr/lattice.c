/* A fluid in a periodic box by the lattice-Boltzmann method: the stand-in for 470.lbm, which
 * uses the same 19 directions and the same collision (Qian, d'Humieres and Lallemand, 1992).
 *
 *     lattice SIDE STEPS THREADS
 *
 * Two arrays of 19 numbers of 8 bytes for each of SIDE^3 cells: each step reads one of them
 * and writes the neighbours' places in the other. The program checks that the
 * mass, which collisions and streaming keep, is what it was.
 */
#include <math.h>
#include <string.h>

#include "crew.h"

enum { DIRECTIONS = 19 };

static long side;
static double *cells[2];

/* What a direction of a cell becomes, written to its neighbour's place. All of a direction is a
 * constant, so that no instruction is spent on which it is. */
#define STREAM(d, weight, cx, cy, cz)                                                     \
    do {                                                                                  \
        const double cu = 3 * (cx * u[0] + cy * u[1] + cz * u[2]);                        \
        const double rest = weight * mass * (still + cu + 0.5 * cu * cu);                 \
        to[(xs[cx + 1] + ys[cy + 1] + zs[cz + 1]) * DIRECTIONS + d] = f[d] + omega * (rest - f[d]); \
    } while (0)

/* Collides what is in a cell f of the one array, and streams it into the other. */
static inline void collide(const double *f, double *to, const long *xs, const long *ys, const long *zs)
{
    const double omega = 1.2; /* relaxation, between 0 and 2 */
    const double far = 1.0 / 36, near = 1.0 / 18;
    const double mass = f[0] + f[1] + f[2] + f[3] + f[4] + f[5] + f[6] + f[7] + f[8] + f[9] + f[10] +
                        f[11] + f[12] + f[13] + f[14] + f[15] + f[16] + f[17] + f[18];
    const double part = 1 / mass;
    const double u[3] = {
        (f[1] - f[2] + f[7] - f[8] + f[9] - f[10] + f[11] - f[12] + f[13] - f[14]) * part,
        (f[3] - f[4] + f[7] - f[8] - f[9] + f[10] + f[15] - f[16] + f[17] - f[18]) * part,
        (f[5] - f[6] + f[11] - f[12] - f[13] + f[14] + f[15] - f[16] - f[17] + f[18]) * part,
    };
    const double still = 1 - 1.5 * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    STREAM(0, 1.0 / 3, 0, 0, 0);
    STREAM(1, near, 1, 0, 0);
    STREAM(2, near, -1, 0, 0);
    STREAM(3, near, 0, 1, 0);
    STREAM(4, near, 0, -1, 0);
    STREAM(5, near, 0, 0, 1);
    STREAM(6, near, 0, 0, -1);
    STREAM(7, far, 1, 1, 0);
    STREAM(8, far, -1, -1, 0);
    STREAM(9, far, 1, -1, 0);
    STREAM(10, far, -1, 1, 0);
    STREAM(11, far, 1, 0, 1);
    STREAM(12, far, -1, 0, -1);
    STREAM(13, far, 1, 0, -1);
    STREAM(14, far, -1, 0, 1);
    STREAM(15, far, 0, 1, 1);
    STREAM(16, far, 0, -1, -1);
    STREAM(17, far, 0, 1, -1);
    STREAM(18, far, 0, -1, 1);
}

/* Places of a coordinate less 1, itself and plus 1, in units of `step` cells. */
static void around(long *places, long at, long step)
{
    places[0] = (at == 0 ? side - 1 : at - 1) * step;
    places[1] = at * step;
    places[2] = (at == side - 1 ? 0 : at + 1) * step;
}

/* Step 0 goes from the first array to the second, step 1 back. */
static void step_cells(int step, long first, long last)
{
    const double *from = cells[step];
    double *to = cells[1 - step];
    long xs[3], ys[3], zs[3];
    for (long x = first; x < last; x++) {
        around(xs, x, side * side);
        for (long y = 0; y < side; y++) {
            around(ys, y, side);
            for (long z = 0; z < side; z++) {
                around(zs, z, 1);
                collide(from + (xs[1] + ys[1] + zs[1]) * DIRECTIONS, to, xs, ys, zs);
            }
        }
    }
}

static double mass_of(const double *array)
{
    double sum = 0;
    for (long i = 0; i < side * side * side * DIRECTIONS; i++)
        sum += array[i];
    return sum;
}

int main(int count, char **words)
{
    if (count != 4) {
        fprintf(stderr, "usage: lattice SIDE STEPS THREADS\n");
        return 2;
    }
    side = crew_number("SIDE", words[1], 8, 256);
    const int steps = (int)crew_number("STEPS", words[2], 1, 1000000);
    const int threads = (int)crew_number("THREADS", words[3], 1, MOST_THREADS);
    const size_t numbers = (size_t)(side * side * side) * DIRECTIONS;
    for (int k = 0; k < 2; k++) {
        cells[k] = malloc(numbers * sizeof *cells[k]);
        if (cells[k] == NULL) {
            fprintf(stderr, "no memory for %zu numbers\n", numbers);
            return 1;
        }
    }
    /* A fluid at rest, denser in one octant. */
    for (long i = 0; i < side * side * side; i++) {
        const long x = i / (side * side), y = i / side % side, z = i % side;
        const double dense = 2 * x < side && 2 * y < side && 2 * z < side ? 1.05 : 1.0;
        for (int d = 0; d < DIRECTIONS; d++)
            cells[0][i * DIRECTIONS + d] = dense / (d == 0 ? 3 : d < 7 ? 18 : 36);
    }
    memcpy(cells[1], cells[0], numbers * sizeof *cells[1]);
    const double before = mass_of(cells[0]);
    crew_run(step_cells, 2, steps, side, threads);
    const double after = mass_of(cells[0]);
    printf("mass %.9g, then %.9g\n", before, after);
    return fabs(after / before - 1) < 1e-9 ? 0 : 1;
}
