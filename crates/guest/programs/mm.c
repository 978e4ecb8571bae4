/* mm ROWS NONZEROS TIMES: multiplies a sparse matrix in compressed-row format by a vector,
 * TIMES times, as SciMark2's MM does, and checks the result. The nonzeros of a row lie evenly
 * over it. Region 1 holds TIMES products; a quarter as many, and one, come before it. */
#include <stdio.h>
#include <stdlib.h>

#include "mark.h"

static void multiply(int rows, double *y, const double *value, const int *row, const int *column,
                     const double *x)
{
    for (int r = 0; r < rows; r++) {
        double sum = 0.0;
        for (int i = row[r]; i < row[r + 1]; i++)
            sum += x[column[i]] * value[i];
        y[r] = sum;
    }
}

int main(int argc, char **argv)
{
    int rows = argc > 1 ? atoi(argv[1]) : 0, nonzeros = argc > 2 ? atoi(argv[2]) : 0;
    long times = argc > 3 ? atol(argv[3]) : 0;
    if (rows < 2 || rows > (1 << 24) || nonzeros < rows || nonzeros / rows > rows ||
        nonzeros > (1 << 26) || times < 1 || times > 1000000) {
        fprintf(stderr, "mm ROWS NONZEROS TIMES: allowed: 2 to 16777216, ROWS to 67108864 and no "
                        "more than ROWS in a row, 1 to 1000000\n");
        return 2;
    }
    int each = nonzeros / rows, all = each * rows;
    double *x = malloc(rows * sizeof *x), *y = malloc(rows * sizeof *y);
    double *value = malloc(all * sizeof *value);
    int *column = malloc(all * sizeof *column), *row = malloc((rows + 1) * sizeof *row);
    if (!x || !y || !value || !column || !row) {
        fprintf(stderr, "mm: no memory for %d nonzeros\n", all);
        return 1;
    }
    /* Whole numbers, so that sums are exact in any order. */
    double expected = 0.0, found = 0.0;
    for (int i = 0; i < rows; i++)
        x[i] = i % 7;
    for (int r = 0; r <= rows; r++)
        row[r] = r * each;
    for (int r = 0; r < rows; r++) {
        int step = rows / each, first = r % step;
        for (int i = 0; i < each; i++) {
            column[r * each + i] = first + i * step;
            value[r * each + i] = (r + i) % 5;
            expected += ((r + i) % 5) * x[first + i * step];
        }
    }
    PIEBALD_MARK(PIEBALD_START, 2);
    for (long i = 0; i <= times / 4; i++)
        multiply(rows, y, value, row, column, x);
    PIEBALD_MARK(PIEBALD_START, 1);
    for (long i = 0; i < times; i++) {
        multiply(rows, y, value, row, column, x);
        __asm__ volatile("" ::: "memory");
    }
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    for (int r = 0; r < rows; r++)
        found += y[r];
    if (found != expected) {
        fprintf(stderr, "mm: the result is wrong\n");
        return 1;
    }
    return 0;
}
