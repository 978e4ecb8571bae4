/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module know of each other.
 *
 *   main.c      loading and unloading; refuses machines and kernels that it does not know
 *   files.c     /proc/piebald
 *   switch.c    what is switched on, and what has to be replaced for it
 *   trial.c     do the kernel's ways to a frame come by the functions that are replaced?
 *   known.c     compares the kernel with those that the module was written for
 *   symbols.c   functions of the kernel that are not exported
 *   hooks.c     functions of the kernel that are replaced while colouring is on
 *   user.c      the replacements: frames for anonymous memory and the page cache
 *   compaction.c  the replacement for compaction
 *   pool.c      frames between the kernel and the processes; memory of the core
 *   hand.c      a few frames on each processor
 *   zone.c      SRM-buffer's zone between the pool and the processes
 *   cold.c      cold pages for the zone, from the kernel's lists and back
 *   reading.c   which file a task reads or writes when it asks for a frame
 *   tasks.c     which process has which colours; fork and exit
 *   recolor.c   moves the pages of a process to its colours
 *   counters.c  what was done
 *   trace.h     tracepoints
 *
 * Locks: pb_switch (a mutex) is held to switch on or off and to change the map, and before
 * pb_lock. pb_lock (a spinlock, taken in process context only) guards the core and the table
 * of processes. Under it nothing is slept for, and no other lock of the module is taken; the lock
 * of a hand (hand.c) is taken before it, and those of buckets in reading.c by themselves.
 */
#ifndef PIEBALD_H
#define PIEBALD_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "core.h"

/* Room for a reason or a colour set as text. */
#define PB_TEXT 1024

/* --- pool.c --------------------------------------------------------------- */

extern spinlock_t pb_lock;
extern struct pb_core *pb_core;
/* Most free frames that the pool keeps. */
extern unsigned long pb_pool_max;

int pb_pool_set_up(void);
void pb_pool_end(void);
int pb_pool_set_map(const char *map, size_t len, char *why);
/* Gives every frame back to the kernel. */
void pb_pool_drain(void);

/* What became of a request. */
enum pb_answer {
	PB_PAGE,	/* a page was found */
	PB_PASS,	/* the kernel's own function shall serve it */
	PB_REFUSE,	/* the process's own colours are used up, and they bind */
};

struct pb_request {
	pid_t tgid;	/* for whom */
	gfp_t gfp;
	bool is_file;	/* a block of a file, for the running task */
	bool own_only;	/* no frame rather than one of another colour, whatever the mode */
};

enum pb_answer pb_pool_take(const struct pb_request *request, struct page **page);

/* pb_core_version(), to be looked at without a lock. */
extern u64 pb_version;
/* Brings it up to date; with pb_lock held, after the colour sets may have changed. */
void pb_new_version(void);

/* What follows is for hand.c and zone.c. */

/* Frames that are taken from the kernel one by one. */
#define PB_SINGLE_GFP ((GFP_HIGHUSER_MOVABLE & ~__GFP_DIRECT_RECLAIM) | \
		       __GFP_NOWARN | __GFP_NORETRY | __GFP_NOMEMALLOC)

/* No block is worth waking the kernel's reclaim and compaction. */
#define PB_BLOCK_GFP (PB_SINGLE_GFP & ~__GFP_KSWAPD_RECLAIM)

/*
 * How much more than usual the kernel keeps free. It keeps more where a request broke into blocks
 * of another kind of memory, until its reclaim ran; but PB_BLOCK_GFP does not wake that. What such
 * requests raised is put back, or the kernel would kill for memory that is free.
 */
struct pb_marks {
	unsigned long boost[MAX_NR_ZONES];
};

void pb_note_marks(struct pb_marks *marks);
void pb_restore_marks(const struct pb_marks *marks);

/* log2 of the frames that are taken at a time: holds every colour of up to 512. */
#define PB_REFILL_ORDER 9
/* Blocks of a size that are looked at for a request that can do without. */
#define PB_SIFTED 512UL

/* Puts a block of single pages into the pool; how many frames: 0 if the core does not want it. */
unsigned long pb_pool_add_block(struct page *page, unsigned int order);
/* Frames came that the pool may have too much of. */
void pb_pool_grown(void);
/* Takes a block of two frames or more into the pool; false if the kernel has none to spare. */
bool pb_pool_refill_block(void);
/* Takes some frames into the pool, wherever they lie; false if there are none. */
bool pb_pool_refill_singles(void);
/* Gives back what the pool has too much of. */
void pb_pool_trim(void);
/* Makes a frame ready for a process. */
struct page *pb_prepared(u64 pfn, gfp_t gfp);

/* --- hand.c ----------------------------------------------------------------- */

void pb_hand_set_up(void);
/* A frame for the running process out of its processor's hand; false if there is none. */
bool pb_hand_take(struct pb_given *given);
/* Puts the frames of all hands into the pool. */
void pb_hand_put_all(void);

/* --- zone.c ----------------------------------------------------------------- */

void pb_zone_set_up(void);
void pb_zone_free(void);
/* Switches SRM-buffer on or off; its hooks are for who calls. */
int pb_zone_switch(bool on, char *why);
bool pb_zone_is_on(void);
int pb_zone_set_threshold(u32 threshold, char *why);
u32 pb_zone_get_threshold(void);
/* PB_PASS: the zone has none, the pool shall look further. */
enum pb_answer pb_zone_serve(const struct pb_request *request, struct page **page);
/* Gives at most so many frames back to the kernel; how many it has got now. */
unsigned long pb_zone_shed(unsigned long frames, bool evict);
void pb_zone_at_fork(struct task_struct *parent, struct task_struct *child);
void pb_zone_at_exit(struct task_struct *task);

/* --- cold.c ----------------------------------------------------------------- */

int pb_cold_set_up(void);
/* Cold pages off the kernel's lists, with a reference each; how many of len. */
unsigned int pb_cold_pull(struct folio **folios, unsigned int len);
/* Ends a page that nobody has used meanwhile; false: it went back to the kernel's lists. */
bool pb_cold_evict(struct folio *folio);
/* Puts a page back into the kernel's lists, and its reference. */
void pb_cold_return(struct folio *folio);
/* Has the kernel reclaim a page of which there is a reference, which goes. */
void pb_cold_push_out(struct folio *folio);

/* --- reading.c -------------------------------------------------------------- */

/* The file that the running task gets a block of: its name and blocks; false if unknown. */
bool pb_reading(struct pb_key *file, u64 *blocks);

/* --- tasks.c -------------------------------------------------------------- */

/* Until when (jiffies) colours are not searched for, since they were not found. 0: at once. */
struct pb_pause {
	unsigned long turn;	/* the colour whose turn it is */
	unsigned long own;	/* the process's own colours */
};

/* A process with colours. */
struct pb_task {
	struct hlist_node node;
	pid_t tgid;
	bool hard;			/* its colours bind */
	struct pb_pause pause;
	struct pb_seat seat;
};

int pb_tasks_set_up(void);
void pb_tasks_end(void);
/* Does any process have colours? */
bool pb_tasks_any(void);
/* Takes the colours of all processes away. */
void pb_tasks_forget(void);
/* The entry of a process, or none. With pb_lock held. */
struct pb_task *pb_task_of(pid_t tgid);
/* Does a process have colours? */
bool pb_is_colored(const struct task_struct *process);
/* The process that a number names, with a reference, or none and the reason. */
struct task_struct *pb_process(pid_t number, char *why);
int pb_tasks_write(char *line, char *why);
int pb_tasks_show(struct seq_file *m, void *unused);

/* --- symbols.c ------------------------------------------------------------ */

int pb_symbols_set_up(void);
/* The address of a symbol, or 0. */
unsigned long pb_lookup(const char *name);
/* The address of a function that is known, or NULL and a message. */
void *pb_symbol(const char *name);

/* --- known.c --------------------------------------------------------------- */

/* Reads the kernel's type information and compares what is not a function. */
int pb_known_begin(void);
/* Which variant of a function this kernel has, a number of known.tsv; less than 0, and a message: none. */
int pb_known_variant(const char *function);
/* 0 if all callers of a function call it, and no part that was made of it. */
int pb_known_whole(const char *function);
void pb_known_end(void);

/* --- pick.c ---------------------------------------------------------------- */

int pb_pick_set_up(void);
/*
 * Takes some of the kernel's blocks that have a frame for the process into the pool; how many
 * frames. If it is to be thorough it looks at all and may sleep.
 */
unsigned long pb_pick(pid_t tgid, bool thorough);

/* --- recolor.c ------------------------------------------------------------- */

int pb_recolor_set_up(void);
/* Puts pages on the kernel's lists that are on their way there. */
void pb_recolor_drain(void);
int pb_recolor(pid_t number, char *why);

/* --- hooks.c, user.c ------------------------------------------------------- */

int pb_hooks_find(void);
/* Replaces Rainbow's functions, and SRM-buffer's or not. With pb_switch held, as the next two. */
int pb_hooks_on(bool files);
/* Lets the kernel's functions act by themselves again, but for tasks that are inside. */
void pb_hooks_rest(void);
bool pb_hooks_are_on(void);
/* Takes out what sends tasks here; waits. Nobody else may call hooks.c meanwhile. */
void pb_hooks_out(void);
/* The same, and waits until nobody is inside. */
void pb_hooks_end(void);

enum pb_hook_id {
	PB_HOOK_FILE,
	PB_HOOK_ANON,
	PB_HOOK_MPOL,
	PB_HOOK_THP,
	PB_HOOK_COMPACTION,
	PB_HOOK_MERGEABLE,
	PB_HOOK_ALL_MERGEABLE,
	PB_NR_FRAME_HOOKS,
	PB_HOOK_READAHEAD = PB_NR_FRAME_HOOKS,
	PB_HOOK_LARGE_READAHEAD,
	PB_HOOK_GET_FOLIO,
	PB_NR_HOOKS,
};

/* From here to pb_hooks_tried(), calls of the functions by the running task are counted. */
int pb_hooks_try(void);
void pb_hooks_tried(void);
/* How many since this was asked last. */
unsigned int pb_hooks_seen(enum pb_hook_id hook);
const char *pb_hook_name(enum pb_hook_id hook);

/* --- trial.c ---------------------------------------------------------------- */

/* Goes each way to a frame once; less than 0 if one does not come by the functions. */
int pb_trial(char *why);
void pb_trial_end(void);

/* --- the replacements ---------------------------------------------------------- */

void *pb_replacement(enum pb_hook_id hook);
void pb_set_original(enum pb_hook_id hook, void *original);
/* The same for the hooks of compaction.c and reading.c. */
void *pb_compaction_replacement(void);
void pb_compaction_set_original(void *original);
void *pb_reading_replacement(enum pb_hook_id hook);
void pb_reading_set_original(enum pb_hook_id hook, void *original);
/* Who runs a replacement is inside from its beginning to its end. */
void pb_enter(void);
void pb_leave(void);
/* Tasks that are inside a replacement. */
long pb_inside(void);

/* --- files.c -------------------------------------------------------------- */

int pb_files_set_up(void);
void pb_files_end(void);

/* --- switch.c ------------------------------------------------------------- */

extern struct mutex pb_switch;
/* Takes pb_switch where functions can be replaced; -EINTR: killed while it waited. */
int pb_switch_lock(void);
/* With pb_switch held: waits, without it, until nobody gets memory from the module. */
int pb_switch_quiet(char *why);
bool pb_switch_is_on(void);
/* With pb_switch held: switch everything, or SRM-buffer, on or off. */
int pb_switch_on(bool to, char *why);
int pb_switch_srm(bool to, char *why);
/* The same: makes everything ready for a process that gets colours. */
int pb_switch_expect(char *why);
/* If nobody has colours, puts the kernel's functions back after a while. From any context. */
void pb_switch_settle_later(void);
void pb_switch_end(void);

/* --- counters.c ----------------------------------------------------------- */

#define PB_COUNTERS(X) \
	X(anon_pages) X(file_pages) X(swap_and_shmem_pages) \
	X(other_frames) X(policy_passed) X(unmovable_passed) X(large_refused) X(large_passed) \
	X(thp_refused) X(compaction_refused) X(merging_refused) X(hard_failures) X(hard_kills) \
	X(refills) X(refill_frames) X(refill_failed) X(picked) X(recycled) X(hand_returned) \
	X(given_back) X(reclaimed) X(marks_restored) X(inherit_failed) \
	X(switched_on) X(recolored) X(recolor_failed) X(recolor_shared) \
	X(srm_file_frames) X(srm_memory_frames) X(srm_unknown_file) X(srm_passed) \
	X(cold_evicted) X(cold_elsewhere) X(cold_used) X(cold_returned) X(cold_reclaimed) \
	X(cold_again)

#define PB_ENUM(name) PB_C_##name,
enum pb_counter { PB_COUNTERS(PB_ENUM) PB_NR_COUNTERS };
#undef PB_ENUM

void pb_count_many(enum pb_counter counter, u64 n);
#define pb_count(name) pb_count_many(PB_C_##name, 1)
int pb_counters_show(struct seq_file *m, void *unused);

#endif
