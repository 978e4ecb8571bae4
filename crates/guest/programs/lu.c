/* lu ROWS TIMES: copies a dense matrix and factorises the copy with partial pivoting, TIMES
 * times, as SciMark2's LU does, and checks the factors. The memory in use is 16 bytes by ROWS
 * squared. Region 1 holds TIMES factorisations; one comes before it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

static void factorise(double **row, int *order, int n)
{
    for (int j = 0; j < n; j++) {
        int best = j;
        for (int i = j + 1; i < n; i++)
            if (fabs(row[i][j]) > fabs(row[best][j]))
                best = i;
        double *swap = row[j];
        row[j] = row[best];
        row[best] = swap;
        int was = order[j];
        order[j] = order[best];
        order[best] = was;
        double reciprocal = 1.0 / row[j][j];
        for (int i = j + 1; i < n; i++) {
            double factor = row[i][j] *= reciprocal;
            for (int k = j + 1; k < n; k++)
                row[i][k] -= factor * row[j][k];
        }
    }
}

static void copy_and_factorise(const double *a, double *lu, double **row, int *order, int n)
{
    memcpy(lu, a, sizeof *lu * n * n);
    for (int i = 0; i < n; i++) {
        row[i] = lu + (size_t)i * n;
        order[i] = i;
    }
    factorise(row, order, n);
}

/* Are row i of L U and row order[i] of A the same, summed over their columns? */
static int is_right(const double *a, double **row, const int *order, int n)
{
    double *sums = malloc(n * sizeof *sums);
    int right = sums != NULL;
    for (int i = 0; i < n && right; i++) {
        sums[i] = 0.0;
        for (int k = i; k < n; k++)
            sums[i] += row[i][k];
    }
    for (int i = 0; i < n && right; i++) {
        double found = sums[i], expected = 0.0;
        for (int k = 0; k < i; k++)
            found += row[i][k] * sums[k];
        for (int k = 0; k < n; k++)
            expected += a[(size_t)order[i] * n + k];
        right = fabs(found - expected) < 1e-6 * n;
    }
    free(sums);
    return right;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 0;
    long times = argc > 2 ? atol(argv[2]) : 0;
    if (n < 2 || n > 4000 || times < 1 || times > 100000) {
        fprintf(stderr, "lu ROWS TIMES: allowed: 2 to 4000, 1 to 100000\n");
        return 2;
    }
    double *a = malloc(sizeof *a * n * n), *lu = malloc(sizeof *lu * n * n);
    double **row = malloc(n * sizeof *row);
    int *order = malloc(n * sizeof *order);
    if (!a || !lu || !row || !order) {
        fprintf(stderr, "lu: no memory for %d rows\n", n);
        return 1;
    }
    uint64_t x = 1;
    for (int i = 0; i < n * n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        a[i] = (double)(x >> 40) / (double)(1 << 24) - 0.5;
    }
    PIEBALD_MARK(PIEBALD_START, 2);
    copy_and_factorise(a, lu, row, order, n);
    PIEBALD_MARK(PIEBALD_START, 1);
    for (long i = 0; i < times; i++)
        copy_and_factorise(a, lu, row, order, n);
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    if (!is_right(a, row, order, n)) {
        fprintf(stderr, "lu: the factors are wrong\n");
        return 1;
    }
    return 0;
}
