/* Electromagnetic fields in a periodic box, by finite differences in time: the stand-in for
 * 459.GemsFDTD, which solves Maxwell's equations by the same scheme (Yee, 1966).
 *
 *     fields SIDE STEPS THREADS
 *
 * Six arrays of SIDE^3 numbers of 8 bytes; each half step streams through all of them. The
 * program checks the energy that this scheme keeps to rounding: that of the electric field,
 * and of the magnetic one as the product of its values before and after.
 */
#include <math.h>

#include "crew.h"

static const double courant = 0.5; /* the limit is 1 / sqrt(3) */

static long side;
static double *electric[3], *magnetic[3];

/* The place of a coordinate one step back or forth. */
static long beside(long at, long step)
{
    const long there = at + step;
    return there < 0 ? side - 1 : there == side ? 0 : there;
}

/* The curl of a field in a cell, with the signs of forward differences: i is the cell, x, y and z
 * are its neighbours along the axes. */
static inline void curl(double *const *f, long i, long x, long y, long z, double *out)
{
    out[0] = f[2][y] - f[2][i] - (f[1][z] - f[1][i]);
    out[1] = f[0][z] - f[0][i] - (f[2][x] - f[2][i]);
    out[2] = f[1][x] - f[1][i] - (f[0][y] - f[0][i]);
}

/* Advances the one field by the other's curl, along a row of cells that begins at `row`. */
static void advance_row(double *const *to, double *const *from, long row, long x, long y, long step)
{
    double *const t0 = to[0] + row, *const t1 = to[1] + row, *const t2 = to[2] + row;
    for (long z = 0; z < side; z++) {
        double c[3];
        curl(from, row + z, x + z, y + z, row + beside(z, step), c);
        t0[z] -= courant * c[0];
        t1[z] -= courant * c[1];
        t2[z] -= courant * c[2];
    }
}

/* Step 0 advances the magnetic field, step 1 the electric one. */
static void advance(int step, long first, long last)
{
    const long way = step == 0 ? 1 : -1;
    for (long x = first; x < last; x++)
        for (long y = 0; y < side; y++) {
            const long row = (x * side + y) * side;
            const long rows[2] = { (beside(x, way) * side + y) * side, (x * side + beside(y, way)) * side };
            if (step == 0)
                advance_row(magnetic, electric, row, rows[0], rows[1], way);
            else
                advance_row(electric, magnetic, row, rows[0], rows[1], way);
        }
}

static double energy(void)
{
    double sum = 0;
    for (long x = 0; x < side; x++)
        for (long y = 0; y < side; y++)
            for (long z = 0; z < side; z++) {
                const long i = (x * side + y) * side + z;
                double c[3];
                curl(electric, i, (beside(x, 1) * side + y) * side + z,
                     (x * side + beside(y, 1)) * side + z, (x * side + y) * side + beside(z, 1), c);
                for (int k = 0; k < 3; k++) {
                    const double e = electric[k][i], h = magnetic[k][i];
                    sum += e * e + h * (h - courant * c[k]);
                }
            }
    return sum;
}

int main(int count, char **words)
{
    if (count != 4) {
        fprintf(stderr, "usage: fields SIDE STEPS THREADS\n");
        return 2;
    }
    side = crew_number("SIDE", words[1], 8, 512);
    const int steps = (int)crew_number("STEPS", words[2], 1, 1000000);
    const int threads = (int)crew_number("THREADS", words[3], 1, MOST_THREADS);
    const size_t cells = (size_t)(side * side * side);
    for (int k = 0; k < 3; k++) {
        electric[k] = calloc(cells, sizeof *electric[k]);
        magnetic[k] = calloc(cells, sizeof *magnetic[k]);
        if (electric[k] == NULL || magnetic[k] == NULL) {
            fprintf(stderr, "no memory for %zu cells\n", cells);
            return 1;
        }
    }
    /* Two waves that cross. */
    for (long x = 0; x < side; x++)
        for (long y = 0; y < side; y++)
            for (long z = 0; z < side; z++) {
                const long i = (x * side + y) * side + z;
                electric[2][i] = sin(2 * M_PI * (double)x / (double)side);
                electric[0][i] = cos(4 * M_PI * (double)y / (double)side);
            }
    const double before = energy();
    crew_run(advance, 2, steps, side, threads);
    const double after = energy();
    printf("energy %.12g, then %.12g\n", before, after);
    return fabs(after / before - 1) < 1e-9 ? 0 : 1;
}
