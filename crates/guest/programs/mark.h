/* Marks: instructions that do nothing, which the machine model understands. A program that
 * runs beside another is compiled without them: a region is one for all processors.
 *
 * The low 16 bits of the displacement hold the operation (bits 0-3) and the number of a
 * region (bits 4-15). An instruction holds its numbers, so they must be constants. */
#ifndef PIEBALD_MARK_H
#define PIEBALD_MARK_H

#define PIEBALD_START 1 /* from now on the region counts */
#define PIEBALD_STOP 2  /* from now on it does not */
#define PIEBALD_DUMP 3  /* its counts go to the results */
#define PIEBALD_CLEAR 4 /* its counts are 0 again */

#ifdef PIEBALD_UNMARKED
#define PIEBALD_MARK(op, region) ((void)0)
#else
#define PIEBALD_MARK(op, region)                                                       \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80; .long %c0" ::"i"(0x4b430000 |            \
                                                               ((region) << 4) | (op)) \
                     : "memory")
#endif

#endif
