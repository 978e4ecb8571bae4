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

/* A cell and its neighbours, one step back or forth along each axis. */
struct place {
    long here, near[3];
};

static struct place place(long x, long y, long z, long step)
{
    const long nx = (x + step + side) % side, ny = (y + step + side) % side;
    const long nz = (z + step + side) % side;
    return (struct place){ (x * side + y) * side + z,
                           { (nx * side + y) * side + z, (x * side + ny) * side + z,
                             (x * side + y) * side + nz } };
}

/* Component k of the curl of a field, with the signs of forward differences. */
static double curl(double *const *field, int k, const struct place *p)
{
    const int a = (k + 1) % 3, b = (k + 2) % 3;
    return field[b][p->near[a]] - field[b][p->here] - (field[a][p->near[b]] - field[a][p->here]);
}

/* Step 0 advances the magnetic field, step 1 the electric one. */
static void advance(int step, long first, long last)
{
    for (long x = first; x < last; x++)
        for (long y = 0; y < side; y++)
            for (long z = 0; z < side; z++) {
                const struct place p = place(x, y, z, step == 0 ? 1 : -1);
                for (int k = 0; k < 3; k++)
                    if (step == 0)
                        magnetic[k][p.here] -= courant * curl(electric, k, &p);
                    else
                        electric[k][p.here] -= courant * curl(magnetic, k, &p);
            }
}

static double energy(void)
{
    double sum = 0;
    for (long x = 0; x < side; x++)
        for (long y = 0; y < side; y++)
            for (long z = 0; z < side; z++) {
                const struct place p = place(x, y, z, 1);
                for (int k = 0; k < 3; k++) {
                    const double e = electric[k][p.here], h = magnetic[k][p.here];
                    sum += e * e + h * (h - courant * curl(electric, k, &p));
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
