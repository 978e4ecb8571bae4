/* graph bfs|pr|cg VERTICES DEGREE RUNS: works RUNS times on a random graph.
 *
 * Each vertex draws DEGREE neighbours, each vertex as likely as any other, and an edge goes both ways; neighbours
 * lie one behind another, by vertex. A run is
 *
 *   bfs   a search, breadth first, from another vertex each time
 *   pr    an iteration of PageRank, each vertex gathering from its neighbours
 *   cg    an iteration of conjugate gradients, for the graph's Laplacian and the unit matrix
 *
 * and the result is checked. Region 1 holds the runs, and is written after each; one run comes before them. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mark.h"

struct graph {
    uint32_t vertices;
    uint32_t *first; /* of each vertex in `to`, and the end */
    uint32_t *to;
};

static void *space(size_t n, size_t each)
{
    void *all = calloc(n, each);
    if (!all) {
        fprintf(stderr, "graph: no memory for %zu times %zu bytes\n", n, each);
        exit(1);
    }
    return all;
}

static uint32_t draw(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return ((*state >> 32) * below) >> 32;
}

static struct graph make(uint32_t vertices, uint32_t degree)
{
    struct graph g = {.vertices = vertices, .first = space(vertices + 1u, sizeof *g.first)};
    size_t edges = (size_t)vertices * degree;
    uint32_t *end = space(edges, sizeof *end), *next = space(vertices, sizeof *next);
    uint64_t state = 1;
    for (size_t e = 0; e < edges; e++) {
        end[e] = draw(&state, vertices);
        g.first[e / degree + 1]++;
        g.first[end[e] + 1]++;
    }
    for (uint32_t v = 0; v < vertices; v++) {
        g.first[v + 1] += g.first[v];
        next[v] = g.first[v];
    }
    g.to = space(2 * edges, sizeof *g.to);
    for (size_t e = 0; e < edges; e++) {
        g.to[next[e / degree]++] = end[e];
        g.to[next[end[e]]++] = (uint32_t)(e / degree);
    }
    free(end);
    free(next);
    return g;
}

/* --- bfs ---------------------------------------------------------------------- */

static uint32_t *depth, *queue, source;

static void bfs(const struct graph *g)
{
    uint32_t head = 0, tail = 0;
    source = (source + 12347u) % g->vertices;
    memset(depth, 0xff, g->vertices * sizeof *depth);
    depth[source] = 0;
    queue[tail++] = source;
    while (head < tail) {
        uint32_t v = queue[head++];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            uint32_t to = g->to[i];
            if (depth[to] == UINT32_MAX) {
                depth[to] = depth[v] + 1;
                queue[tail++] = to;
            }
        }
    }
}

/* Neighbours are one level apart at most, and all but the source have one that is nearer. */
static int bfs_is_right(const struct graph *g)
{
    for (uint32_t v = 0; v < g->vertices; v++) {
        int nearer = v == source || depth[v] == UINT32_MAX;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++) {
            int64_t apart = (int64_t)depth[v] - (int64_t)depth[g->to[i]];
            if (apart > 1 || apart < -1)
                return 0;
            nearer |= apart == 1;
        }
        if (!nearer)
            return 0;
    }
    return depth[source] == 0;
}

/* --- pr ----------------------------------------------------------------------- */

static double *rank, *share;

static void pr(const struct graph *g)
{
    for (uint32_t v = 0; v < g->vertices; v++)
        share[v] = rank[v] / (g->first[v + 1] - g->first[v]);
    for (uint32_t v = 0; v < g->vertices; v++) {
        double sum = 0.0;
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            sum += share[g->to[i]];
        rank[v] = 0.15 / g->vertices + 0.85 * sum;
    }
}

/* Each vertex has an edge, so that nothing of the ranks is lost. */
static int pr_is_right(const struct graph *g)
{
    double sum = 0.0;
    for (uint32_t v = 0; v < g->vertices; v++)
        sum += rank[v];
    return fabs(sum - 1.0) < 1e-9;
}

/* --- cg ----------------------------------------------------------------------- */

static double *x, *r, *p, *q, rr;

/* (1 + degree) of v - sum of its neighbours'. */
static void multiply(const struct graph *g, const double *from, double *to)
{
    for (uint32_t v = 0; v < g->vertices; v++) {
        double sum = (1.0 + g->first[v + 1] - g->first[v]) * from[v];
        for (uint32_t i = g->first[v]; i < g->first[v + 1]; i++)
            sum -= from[g->to[i]];
        to[v] = sum;
    }
}

static double product(const struct graph *g, const double *a, const double *b)
{
    double sum = 0.0;
    for (uint32_t v = 0; v < g->vertices; v++)
        sum += a[v] * b[v];
    return sum;
}

static double right_side(uint32_t v)
{
    return v % 7;
}

static void cg(const struct graph *g)
{
    if (rr < 1e-20) { /* It is solved: from the beginning. */
        for (uint32_t v = 0; v < g->vertices; v++)
            x[v] = 0.0, r[v] = p[v] = right_side(v);
        rr = product(g, r, r);
    }
    multiply(g, p, q);
    double step = rr / product(g, p, q), before = rr;
    for (uint32_t v = 0; v < g->vertices; v++) {
        x[v] += step * p[v];
        r[v] -= step * q[v];
    }
    rr = product(g, r, r);
    for (uint32_t v = 0; v < g->vertices; v++)
        p[v] = r[v] + rr / before * p[v];
}

/* What is left of the right side is what was carried along. */
static int cg_is_right(const struct graph *g)
{
    double off = 0.0;
    multiply(g, x, q);
    for (uint32_t v = 0; v < g->vertices; v++)
        off = fmax(off, fabs(right_side(v) - q[v] - r[v]));
    return off < 1e-6;
}

/* ------------------------------------------------------------------------------ */

static int work(const struct graph *g, void (*run)(const struct graph *), long runs,
                int (*is_right)(const struct graph *))
{
    PIEBALD_MARK(PIEBALD_START, 2);
    run(g);
    for (long n = 0; n < runs; n++) {
        PIEBALD_MARK(PIEBALD_START, 1);
        run(g);
        PIEBALD_MARK(PIEBALD_STOP, 1);
        PIEBALD_MARK(PIEBALD_DUMP, 1);
    }
    PIEBALD_MARK(PIEBALD_STOP, 2);
    if (is_right(g))
        return 0;
    fprintf(stderr, "graph: the result is wrong\n");
    return 1;
}

int main(int argc, char **argv)
{
    const char *what = argc > 4 ? argv[1] : "";
    long vertices = argc > 4 ? atol(argv[2]) : 0, degree = argc > 4 ? atol(argv[3]) : 0;
    long runs = argc > 4 ? atol(argv[4]) : 0;
    if (vertices < 2 || vertices > (1 << 24) || degree < 1 || degree > 64 || runs < 1 || runs > 1000) {
        fprintf(stderr, "graph bfs|pr|cg VERTICES DEGREE RUNS: allowed: 2 to 16777216, 1 to 64, 1 to 1000\n");
        return 2;
    }
    struct graph g = make((uint32_t)vertices, (uint32_t)degree);
    if (!strcmp(what, "bfs")) {
        depth = space(vertices, sizeof *depth), queue = space(vertices, sizeof *queue);
        return work(&g, bfs, runs, bfs_is_right);
    }
    if (!strcmp(what, "pr")) {
        rank = space(vertices, sizeof *rank), share = space(vertices, sizeof *share);
        for (long v = 0; v < vertices; v++)
            rank[v] = 1.0 / vertices;
        return work(&g, pr, runs, pr_is_right);
    }
    if (!strcmp(what, "cg")) {
        x = space(vertices, sizeof *x), r = space(vertices, sizeof *r);
        p = space(vertices, sizeof *p), q = space(vertices, sizeof *q);
        return work(&g, cg, runs, cg_is_right);
    }
    fprintf(stderr, "graph: \"%s\": allowed: bfs, pr, cg\n", what);
    return 2;
}
