/* Threads that do the same step together, each on its part of the planes.
 *
 * Threads wait at barriers of the C library, which sleep: a recording has no spinning in it.
 */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_THREADS = 64 };

/* One step of the computation, for planes first to last - 1. Steps are called one after
 * another by all threads; no thread begins a step before all have ended the one before. */
typedef void step_function(int step, long first, long last);

struct crew {
    pthread_barrier_t barrier;
    step_function *function;
    int threads, steps, kinds;
    long planes;
};

struct member {
    struct crew *crew;
    int number;
};

static void *crew_member(void *argument)
{
    const struct member *me = argument;
    struct crew *crew = me->crew;
    const long first = crew->planes * me->number / crew->threads;
    const long last = crew->planes * (me->number + 1) / crew->threads;
    for (int step = 0; step < crew->steps * crew->kinds; step++) {
        crew->function(step % crew->kinds, first, last);
        pthread_barrier_wait(&crew->barrier);
    }
    return NULL;
}

/* Runs so many rounds of so many kinds of steps; the caller is one of the threads. */
static void crew_run(step_function *function, int kinds, int rounds, long planes, int threads)
{
    struct crew crew = { .function = function, .threads = threads, .steps = rounds,
                         .kinds = kinds, .planes = planes };
    struct member members[MOST_THREADS];
    pthread_t ids[MOST_THREADS];
    pthread_barrier_init(&crew.barrier, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        members[t] = (struct member){ &crew, t };
        if (t > 0 && pthread_create(&ids[t], NULL, crew_member, &members[t]) != 0) {
            fprintf(stderr, "no thread\n");
            exit(1);
        }
    }
    crew_member(&members[0]);
    for (int t = 1; t < threads; t++)
        pthread_join(ids[t], NULL);
    pthread_barrier_destroy(&crew.barrier);
}

/* A number of the command line. */
static long crew_number(const char *name, const char *text, long least, long most)
{
    char *end;
    const long n = strtol(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < least || n > most) {
        fprintf(stderr, "%s = %s: allowed: %ld to %ld\n", name, text, least, most);
        exit(2);
    }
    return n;
}

#endif
