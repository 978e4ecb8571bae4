// Stand-in for 473.astar: ways across a map with rivers.
//
//   paths QUERIES [check]
//
// 473.astar holds three searches of a library for games: A* where a cell is passable
// or not, A* where kinds of ground cost differently, and A* over regions, each a
// patch of connected cells that knows its neighbours by pointers. So does this, one
// after the other for each query, on a drawn map of 1024 x 1024 cells that rivers
// with few fords cross; start and goal are a quarter to a half of the map apart. With
// `check`, each way is walked, and its cost compared with that of a search without a
// heuristic; status 1 if they differ.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 1024, CELLS = SIDE * SIDE, PATCH = 16, RIVERS = 14, NEAR = 240, FAR = 480 };
enum { FIELD, WOOD, MARSH, FORD, RIVER };

// Cost of a step to a cell of a kind, straight and diagonal; 0: not passable.
static const uint32_t PLAIN[5][2] = {{10, 14}, {10, 14}, {10, 14}, {10, 14}, {0, 0}};
static const uint32_t GROUND[5][2] = {{10, 14}, {17, 24}, {32, 45}, {24, 34}, {0, 0}};

struct node {
    uint32_t query; // the search that the rest belongs to
    uint32_t cost;
};

struct region {
    int x, y, cells; // the centre, and how many cells
    int number, neighbours, room;
    struct region **neighbour;
    uint32_t query, cost;
};

struct entry {
    uint32_t bound; // cost so far and estimate of the rest
    uint32_t what;
};

static uint8_t ground[CELLS], came[CELLS];
static struct node node[CELLS];
static uint32_t region_of[CELLS];
static struct region **region;
static int regions;
static struct entry *heap;
static size_t heap_size, heap_room;
static uint32_t query;
static uint64_t seed = 473;

static uint64_t mix(uint64_t z) { // SplitMix64
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int below(int end) {
    seed += 0x9e3779b97f4a7c15;
    return (int)((mix(seed) >> 32) * (uint64_t)end >> 32);
}

static void *grown(void *memory, size_t bytes) {
    memory = realloc(memory, bytes);
    if (memory == NULL) {
        fprintf(stderr, "paths: no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return memory;
}

// --- the map -------------------------------------------------------------------

// Noise that changes smoothly over `scale` cells, from 0 to 255.
static int noise(int x, int y, int scale) {
    int gx = x / scale, gy = y / scale, fx = x % scale, fy = y % scale;
    int corner[4];
    for (int c = 0; c < 4; c++)
        corner[c] = mix(((uint64_t)(gx + c % 2) << 40) + ((uint64_t)(gy + c / 2) << 16) + scale) & 255;
    int top = corner[0] * (scale - fx) + corner[1] * fx;
    int bottom = corner[2] * (scale - fx) + corner[3] * fx;
    return (top * (scale - fy) + bottom * fy) / (scale * scale);
}

static void draw_river(int number) {
    int along = 0, across = (number / 2 * 2 + 1) * SIDE / RIVERS, next_ford = 20 + below(60);
    for (; along < SIDE; along++) {
        across += below(5) - 2;
        across = across < 4 ? 4 : across > SIDE - 5 ? SIDE - 5 : across;
        int kind = RIVER;
        if (along >= next_ford) {
            kind = FORD;
            if (along >= next_ford + 3)
                next_ford = along + 60 + below(120);
        }
        for (int wide = -3; wide <= 3; wide++) {
            int cell = number % 2 ? along * SIDE + across + wide : (across + wide) * SIDE + along;
            if (ground[cell] != FORD)
                ground[cell] = (uint8_t)kind;
        }
    }
}

static void draw_map(void) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int wet = noise(x, y, 96), high = noise(x, y, 24);
            ground[y * SIDE + x] = wet > 170 ? MARSH : high > 130 ? WOOD : FIELD;
        }
    for (int r = 0; r < RIVERS; r++)
        draw_river(r);
    for (int i = 0; i < SIDE; i++) // so that no step leaves the map
        ground[i] = ground[CELLS - 1 - i] = ground[i * SIDE] = ground[i * SIDE + SIDE - 1] = RIVER;
}

static const int STEPS[8] = {-1, 1, -SIDE, SIDE, -SIDE - 1, -SIDE + 1, SIDE - 1, SIDE + 1};

static void join(struct region *a, struct region *b) {
    for (int n = 0; n < a->neighbours; n++)
        if (a->neighbour[n] == b)
            return;
    if (a->neighbours == a->room) {
        a->room = a->room ? 2 * a->room : 4;
        a->neighbour = grown(a->neighbour, a->room * sizeof *a->neighbour);
    }
    a->neighbour[a->neighbours++] = b;
}

// Gathers the cells that hang together inside one patch of the map.
static void fill_region(int first) {
    static int stack[PATCH * PATCH];
    int depth = 0, px = first % SIDE / PATCH, py = first / SIDE / PATCH;
    long sum_x = 0, sum_y = 0;
    struct region *r = grown(NULL, sizeof *r);
    memset(r, 0, sizeof *r);
    r->number = regions;
    stack[depth++] = first;
    region_of[first] = regions;
    while (depth > 0) {
        int cell = stack[--depth];
        r->cells++;
        sum_x += cell % SIDE;
        sum_y += cell / SIDE;
        for (int s = 0; s < 4; s++) {
            int next = cell + STEPS[s];
            if (ground[next] == RIVER || region_of[next] != UINT32_MAX)
                continue;
            if (next % SIDE / PATCH != px || next / SIDE / PATCH != py)
                continue;
            region_of[next] = regions;
            stack[depth++] = next;
        }
    }
    r->x = (int)(sum_x / r->cells);
    r->y = (int)(sum_y / r->cells);
    region[regions++] = r;
}

static void find_regions(void) {
    memset(region_of, 0xff, sizeof region_of);
    region = grown(NULL, CELLS * sizeof *region);
    for (int cell = 0; cell < CELLS; cell++)
        if (ground[cell] != RIVER && region_of[cell] == UINT32_MAX)
            fill_region(cell);
    for (int cell = 0; cell < CELLS; cell++)
        for (int s = 0; s < 4 && ground[cell] != RIVER; s++) {
            int next = cell + STEPS[s];
            if (ground[next] != RIVER && region_of[next] != region_of[cell])
                join(region[region_of[cell]], region[region_of[next]]);
        }
}

// --- the searches --------------------------------------------------------------

static void push(uint32_t bound, uint32_t what) {
    if (heap_size == heap_room) {
        heap_room = heap_room ? 2 * heap_room : 1024;
        heap = grown(heap, heap_room * sizeof *heap);
    }
    size_t i = heap_size++;
    for (; i > 0 && heap[(i - 1) / 2].bound > bound; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = (struct entry){bound, what};
}

static struct entry pop(void) {
    struct entry top = heap[0], last = heap[--heap_size];
    size_t i = 0;
    for (size_t child = 1; child < heap_size; child = 2 * i + 1) {
        if (child + 1 < heap_size && heap[child + 1].bound < heap[child].bound)
            child++;
        if (heap[child].bound >= last.bound)
            break;
        heap[i] = heap[child];
        i = child;
    }
    if (heap_size > 0)
        heap[i] = last;
    return top;
}

// Least cost between two points at 10 for a straight step and 14 for a diagonal one.
static uint32_t estimate(int ax, int ay, int bx, int by) {
    uint32_t dx = (uint32_t)abs(ax - bx), dy = (uint32_t)abs(ay - by);
    return dx > dy ? 10 * dx + 4 * dy : 10 * dy + 4 * dx;
}

// Cost of the cheapest way from `from` to `to`, and in `came` its steps;
// UINT32_MAX if there is none.
static uint32_t cell_way(const uint32_t price[5][2], int from, int to, int guided) {
    int tx = to % SIDE, ty = to / SIDE;
    query++;
    heap_size = 0;
    node[from] = (struct node){query, 0};
    push(guided ? estimate(from % SIDE, from / SIDE, tx, ty) : 0, (uint32_t)from);
    while (heap_size > 0) {
        struct entry top = pop();
        int cell = (int)top.what;
        uint32_t cost = node[cell].cost;
        uint32_t rest = guided ? estimate(cell % SIDE, cell / SIDE, tx, ty) : 0;
        if (top.bound != cost + rest)
            continue; // a cheaper way to this cell was found since
        if (cell == to)
            return cost;
        for (int s = 0; s < 8; s++) {
            int next = cell + STEPS[s];
            uint32_t step = price[ground[next]][s >= 4];
            if (step == 0)
                continue;
            if (node[next].query == query && node[next].cost <= cost + step)
                continue;
            node[next] = (struct node){query, cost + step};
            came[next] = (uint8_t)s;
            uint32_t far = guided ? estimate(next % SIDE, next / SIDE, tx, ty) : 0;
            push(cost + step + far, (uint32_t)next);
        }
    }
    return UINT32_MAX;
}

static uint32_t region_way(struct region *from, const struct region *to, int guided) {
    query++;
    heap_size = 0;
    from->query = query;
    from->cost = 0;
    push(guided ? estimate(from->x, from->y, to->x, to->y) : 0, (uint32_t)from->number);
    while (heap_size > 0) {
        struct entry top = pop();
        struct region *here = region[top.what];
        if (top.bound != here->cost + (guided ? estimate(here->x, here->y, to->x, to->y) : 0))
            continue;
        if (here == to)
            return here->cost;
        for (int n = 0; n < here->neighbours; n++) {
            struct region *next = here->neighbour[n];
            uint32_t cost = here->cost + estimate(here->x, here->y, next->x, next->y);
            if (next->query == query && next->cost <= cost)
                continue;
            next->query = query;
            next->cost = cost;
            push(cost + (guided ? estimate(next->x, next->y, to->x, to->y) : 0), (uint32_t)next->number);
        }
    }
    return UINT32_MAX;
}

// --- queries -------------------------------------------------------------------

static int passable_cell(void) {
    for (;;) {
        int cell = below(CELLS);
        if (ground[cell] != RIVER)
            return cell;
    }
}

static int goal_of(int from) {
    for (;;) {
        int to = passable_cell();
        int dx = abs(to % SIDE - from % SIDE), dy = abs(to / SIDE - from / SIDE);
        int away = dx > dy ? dx : dy;
        if (away >= NEAR && away <= FAR)
            return to;
    }
}

// The cost of the steps in `came`, walked back; UINT32_MAX if they do not lead home.
static uint32_t walked(const uint32_t price[5][2], int from, int to) {
    uint32_t cost = 0;
    for (int cell = to, count = 0; cell != from; count++) {
        uint32_t step = price[ground[cell]][came[cell] >= 4];
        if (count > CELLS || step == 0)
            return UINT32_MAX;
        cost += step;
        cell -= STEPS[came[cell]];
    }
    return cost;
}

static int right(const uint32_t price[5][2], int from, int to, uint32_t cost) {
    if (cost != UINT32_MAX && walked(price, from, to) != cost)
        return 0;
    return cell_way(price, from, to, 0) == cost;
}

int main(int argc, char **argv) {
    char *end = NULL;
    long queries = argc > 1 ? strtol(argv[1], &end, 10) : 0;
    int check = argc > 2 && strcmp(argv[2], "check") == 0;
    if (argc < 2 || argc > 2 + check || *end != '\0' || queries < 1 || queries > 1000000) {
        fputs("usage: paths QUERIES [check], from 1 to 1000000 queries\n", stderr);
        return 2;
    }
    draw_map();
    find_regions();
    printf("%d regions\n", regions);
    fflush(stdout);
    uint64_t sum = 0;
    int lost = 0;
    for (long q = 0; q < queries; q++) {
        int from = passable_cell(), to = goal_of(from);
        uint32_t plain = cell_way(PLAIN, from, to, 1);
        if (check && !right(PLAIN, from, to, plain)) {
            printf("query %ld: a wrong way on plain ground\n", q);
            return 1;
        }
        uint32_t slow = cell_way(GROUND, from, to, 1);
        if (check && !right(GROUND, from, to, slow)) {
            printf("query %ld: a wrong way on uneven ground\n", q);
            return 1;
        }
        struct region *first = region[region_of[from]], *last = region[region_of[to]];
        uint32_t coarse = region_way(first, last, 1);
        if (check && region_way(first, last, 0) != coarse) {
            printf("query %ld: a wrong way over regions\n", q);
            return 1;
        }
        lost += plain == UINT32_MAX;
        sum += plain == UINT32_MAX ? 0 : (uint64_t)plain + slow + coarse;
    }
    printf("%ld queries, %d without a way, costs %llu\n", queries, lost, (unsigned long long)sum);
    return 0;
}
