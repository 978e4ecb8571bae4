/* fft POINTS TIMES: transforms that many complex numbers forth and back, TIMES times, in place
 * and by radix 2, and checks that they are what they were. The memory in use is 16 bytes a
 * point. Region 1 holds TIMES pairs of transforms; one comes before it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "mark.h"

struct number {
    double re, im;
};

static void reverse_bits(struct number *a, size_t n)
{
    for (size_t i = 1, j = 0; i < n; i++) {
        size_t bit = n >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            struct number swap = a[i];
            a[i] = a[j];
            a[j] = swap;
        }
    }
}

/* sign: -1 forth, 1 back (without the division by n). */
static void transform(struct number *a, size_t n, double sign)
{
    reverse_bits(a, n);
    for (size_t half = 1; half < n; half *= 2) {
        double angle = sign * acos(-1.0) / (double)half;
        for (size_t k = 0; k < half; k++) {
            double c = cos(angle * (double)k), s = sin(angle * (double)k);
            for (size_t low = k; low < n; low += 2 * half) {
                struct number *p = a + low, *q = p + half;
                double re = c * q->re - s * q->im, im = c * q->im + s * q->re;
                q->re = p->re - re;
                q->im = p->im - im;
                p->re += re;
                p->im += im;
            }
        }
    }
}

static void forth_and_back(struct number *a, size_t n)
{
    transform(a, n, -1.0);
    transform(a, n, 1.0);
    for (size_t i = 0; i < n; i++) {
        a[i].re /= (double)n;
        a[i].im /= (double)n;
    }
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    long times = argc > 2 ? atol(argv[2]) : 0;
    if (n < 2 || n > (1u << 24) || (n & (n - 1)) != 0 || times < 1 || times > 100000) {
        fprintf(stderr, "fft POINTS TIMES: allowed: powers of 2 to 16777216, 1 to 100000\n");
        return 2;
    }
    struct number *a = malloc(n * sizeof *a);
    if (!a) {
        fprintf(stderr, "fft: no memory for %zu points\n", n);
        return 1;
    }
    for (size_t i = 0; i < n; i++)
        a[i] = (struct number){(double)(i * 7919 % 1000), (double)(i * 104729 % 1000)};
    PIEBALD_MARK(PIEBALD_START, 2);
    forth_and_back(a, n);
    PIEBALD_MARK(PIEBALD_START, 1);
    for (long i = 0; i < times; i++)
        forth_and_back(a, n);
    PIEBALD_MARK(PIEBALD_STOP, 1);
    PIEBALD_MARK(PIEBALD_STOP, 2);
    PIEBALD_MARK(PIEBALD_DUMP, 1);
    for (size_t i = 0; i < n; i++)
        if (fabs(a[i].re - (double)(i * 7919 % 1000)) > 1e-6 ||
            fabs(a[i].im - (double)(i * 104729 % 1000)) > 1e-6) {
            fprintf(stderr, "fft: the result is wrong at %zu\n", i);
            return 1;
        }
    return 0;
}
