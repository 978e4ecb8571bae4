// Stand-in for 437.leslie3d: a compressible flow on a regular grid.
//
//   flow CELLS STEPS
//
// Five conserved fields (mass, momentum, energy) on CELLS^3 cells with periodic
// faces, advanced by MacCormack's predictor and corrector, which is the method of
// 437.leslie3d. Each half step sweeps the whole grid once for the primitive fields
// and once per direction for the fluxes; the sweep of a direction has that direction
// next to the innermost one, so that only a few rows live from one use to the next
// and everything else streams. Ends with status 1 unless mass, momentum and energy
// are conserved to rounding, as differences of fluxes must conserve them.

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS = 5, MAX_CELLS = 256 };

static const double GAMMA = 1.4;     // ratio of specific heats of air
static const double VISCOSITY = 0.01; // in units of cell length times velocity
static const double STEP = 0.2;      // time step in cell lengths per velocity unit

static int cells;
static size_t total;
static double *state[FIELDS], *guess[FIELDS], *change[FIELDS];
static double *velocity[3], *pressure;

static size_t at(int k, int j, int i) { return ((size_t)k * cells + j) * cells + i; }

static double *field(void) {
    double *memory = malloc(total * sizeof *memory);
    if (memory == NULL) {
        fprintf(stderr, "flow: no memory for %zu cells\n", total);
        exit(1);
    }
    return memory;
}

static void begin(void) {
    for (int k = 0; k < cells; k++)
        for (int j = 0; j < cells; j++)
            for (int i = 0; i < cells; i++) {
                size_t c = at(k, j, i);
                double x = 2 * M_PI * i / cells, y = 2 * M_PI * j / cells, z = 2 * M_PI * k / cells;
                // The Taylor-Green vortex, at a Mach number of about 0.1.
                double u = 0.1 * sin(x) * cos(y) * cos(z), v = -0.1 * cos(x) * sin(y) * cos(z);
                double p = 1 / GAMMA + 0.01 / 16 * (cos(2 * x) + cos(2 * y)) * (cos(2 * z) + 2);
                state[0][c] = 1;
                state[1][c] = u;
                state[2][c] = v;
                state[3][c] = 0;
                state[4][c] = p / (GAMMA - 1) + 0.5 * (u * u + v * v);
            }
}

static void primitive(double *const *q) {
    for (size_t c = 0; c < total; c++) {
        double inverse = 1 / q[0][c];
        double u = q[1][c] * inverse, v = q[2][c] * inverse, w = q[3][c] * inverse;
        velocity[0][c] = u;
        velocity[1][c] = v;
        velocity[2][c] = w;
        pressure[c] = (GAMMA - 1) * (q[4][c] - 0.5 * (u * u + v * v + w * w) * q[0][c]);
    }
}

// Fluxes through the faces between a row of cells and the next row in `direction`.
// The flux itself is that of the near cell (predictor) or the far one (corrector).
static void row_flux(double *const *q, int direction, size_t row, size_t next, int far,
                     double flux[FIELDS][MAX_CELLS]) {
    for (int i = 0; i < cells; i++) {
        size_t here = row + i, there = next + i;
        if (direction == 0)
            there = row + (i + 1 < cells ? i + 1 : 0);
        size_t from = far ? there : here;
        double normal = velocity[direction][from];
        flux[0][i] = q[0][from] * normal;
        for (int axis = 0; axis < 3; axis++)
            flux[1 + axis][i] = q[1 + axis][from] * normal -
                                VISCOSITY * (velocity[axis][there] - velocity[axis][here]);
        flux[1 + direction][i] += pressure[from];
        flux[4][i] = (q[4][from] + pressure[from]) * normal;
    }
}

static void sweep(double *const *q, int direction, int far) {
    static double last[FIELDS][MAX_CELLS], flux[FIELDS][MAX_CELLS];
    for (int outer = 0; outer < cells; outer++) {
        for (int line = 0; line < cells; line++) {
            int before = line > 0 ? line - 1 : cells - 1, after = line + 1 < cells ? line + 1 : 0;
            size_t row = direction == 2 ? at(line, outer, 0) : at(outer, line, 0);
            if (direction == 0) {
                row_flux(q, 0, row, row, far, flux);
                for (int f = 0; f < FIELDS; f++)
                    for (int i = 0; i < cells; i++)
                        change[f][row + i] = flux[f][i > 0 ? i - 1 : cells - 1] - flux[f][i];
                continue;
            }
            size_t previous = direction == 2 ? at(before, outer, 0) : at(outer, before, 0);
            size_t next = direction == 2 ? at(after, outer, 0) : at(outer, after, 0);
            if (line == 0)
                row_flux(q, direction, previous, row, far, last);
            row_flux(q, direction, row, next, far, flux);
            for (int f = 0; f < FIELDS; f++)
                for (int i = 0; i < cells; i++)
                    change[f][row + i] += last[f][i] - flux[f][i];
            memcpy(last, flux, sizeof last);
        }
    }
}

static void half_step(double *const *q, int far) {
    primitive(q);
    for (int direction = 0; direction < 3; direction++)
        sweep(q, direction, far);
}

static void step(void) {
    half_step(state, 1);
    for (int f = 0; f < FIELDS; f++)
        for (size_t c = 0; c < total; c++)
            guess[f][c] = state[f][c] + STEP * change[f][c];
    half_step(guess, 0);
    for (int f = 0; f < FIELDS; f++)
        for (size_t c = 0; c < total; c++)
            state[f][c] = 0.5 * (state[f][c] + guess[f][c] + STEP * change[f][c]);
}

static void sums(double sum[FIELDS]) {
    for (int f = 0; f < FIELDS; f++) {
        sum[f] = 0;
        for (size_t c = 0; c < total; c++)
            sum[f] += state[f][c];
    }
}

static int number(const char *text, int low, int high) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "flow: \"%s\": a number from %d to %d is needed\n", text, low, high);
        exit(2);
    }
    return (int)value;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: flow CELLS STEPS\n", stderr);
        return 2;
    }
    cells = number(argv[1], 8, MAX_CELLS);
    int steps = number(argv[2], 1, 1000000);
    total = (size_t)cells * cells * cells;
    for (int f = 0; f < FIELDS; f++)
        state[f] = field(), guess[f] = field(), change[f] = field();
    for (int axis = 0; axis < 3; axis++)
        velocity[axis] = field();
    pressure = field();
    begin();
    double before[FIELDS], after[FIELDS];
    sums(before);
    printf("%d x %d x %d cells, %zu MiB\n", cells, cells, cells, 19 * total * sizeof(double) >> 20);
    fflush(stdout);
    for (int s = 0; s < steps; s++)
        step();
    sums(after);
    static const char *const names[FIELDS] = {"mass", "momentum x", "momentum y", "momentum z", "energy"};
    int status = 0;
    for (int f = 0; f < FIELDS; f++) {
        int kept = fabs(after[f] - before[f]) < 1e-12 * (double)total * steps; // false for NaN too
        printf("%s: %.9f, before %.9f%s\n", names[f], after[f], before[f], kept ? "" : ": not conserved");
        if (!kept)
            status = 1;
    }
    return status;
}
