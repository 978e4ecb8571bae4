// Stand-in for 462.libquantum: Shor's algorithm on libquantum's simulated register.
//
//   shor N X      factors N with the base X (prime to N)
//
// Nearly all of the time goes to the modular exponentiation: thousands of gates,
// each of which walks over the whole array of basis states and flips one bit of
// some. The array has 2^width entries of 16 bytes, where width is the number of
// bits of N*N. Ends with status 1 where the measured period gives no factor, which
// is the algorithm's nature; the measurement is seeded, so a pair of N and X always
// ends alike.

#include <omp.h>
#include <quantum.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *text, int low, int high) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || value < low || value > high) {
        fprintf(stderr, "shor: \"%s\": a number from %d to %d is needed\n", text, low, high);
        exit(2);
    }
    return (int)value;
}

// X to the power E modulo N.
static int power(int x, int e, int n) {
    long result = 1;
    for (int i = 0; i < e; i++)
        result = result * x % n;
    return (int)result;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: shor N X\n", stderr);
        return 2;
    }
    // The numbers of a register of this library have at most 63 bits, and N*N must
    // fit an int; above 4096 the state would need gigabytes.
    int n = number(argv[1], 15, 4096);
    int x = number(argv[2], 2, n - 1);
    if (quantum_gcd(n, x) != 1) {
        fprintf(stderr, "shor: %d and %d have a common divisor\n", n, x);
        return 2;
    }
    omp_set_num_threads(1);
    srand(42);

    int width = quantum_getwidth(n * n);
    int work = quantum_getwidth(n);
    quantum_reg reg = quantum_new_qureg(0, width);
    quantum_walsh(width, &reg);
    quantum_addscratch(3 * work + 2, &reg);
    printf("%d states of %d qubits\n", reg.size, reg.width);
    fflush(stdout);

    quantum_exp_mod_n(n, x, width, work, &reg);
    for (int i = 0; i < 3 * work + 2; i++)
        quantum_bmeasure(0, &reg);
    quantum_qft(width, &reg);
    for (int i = 0; i < width / 2; i++) { // the transform leaves the bits reversed
        quantum_cnot(i, width - i - 1, &reg);
        quantum_cnot(width - i - 1, i, &reg);
        quantum_cnot(i, width - i - 1, &reg);
    }
    long long measured = (long long)quantum_measure(reg);
    quantum_delete_qureg(&reg);
    if (measured <= 0) {
        puts("measured zero: no period");
        return 1;
    }
    int above = (int)measured, below = 1 << width;
    quantum_frac_approx(&above, &below, width);
    int period = below % 2 == 1 ? 2 * below : below;
    int root = power(x, period / 2, n);
    int one = quantum_gcd(n, root + 1), other = quantum_gcd(n, root + n - 1);
    int factor = one > 1 && one < n ? one : other;
    if (factor <= 1 || factor >= n) {
        printf("period %d gives no factor\n", period);
        return 1;
    }
    printf("%d = %d * %d\n", n, factor, n / factor);
    return 0;
}
