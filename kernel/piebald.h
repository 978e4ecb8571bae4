/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of the module know of each other.
 *
 *   main.c      loading and unloading; refuses machines and kernels that it does not know
 *   files.c     /proc/piebald
 *   switch.c    what is switched on, and what has to be replaced for it
 *   trial.c     do the kernel's ways to a frame come by the functions that are replaced?
 *   known.c     compares the kernel with those that the module was written for
 *   compat.h    what headers of kernels call differently
 *   symbols.c   functions of the kernel that are not exported
 *   hooks.c     functions of the kernel that are replaced while colouring is on
 *   user.c      the replacements: frames for anonymous memory and the page cache
 *   serve.c     which frame a request gets, and what is tried for it
 *   shortage.c  colours without free frames: reclaim, and the out-of-memory killer of a group
 *   migration.c the replacement for what moves pages
 *   nodes.c     memory nodes, and which of them a request may have frames of
 *   pool.c      frames between the kernel and the processes; memory of the core
 *   hand.c      a few frames on each processor
 *   lists.c     the same in a kernel that has free pages by colour itself
 *   zone.c      SRM-buffer's zone between the pool and the processes
 *   cold.c      cold pages for the zone, from the kernel's lists and back
 *   reading.c   which file a task reads or writes when it asks for a frame
 *   sets.c      colour sets
 *   groups.c    which control groups have them, and so which colours a page has
 *   setfs.c     their directories in configfs
 *   survey.c    who holds the frames of a set's colours; pages of others that leave them
 *   recolor.c   moves pages: of a process to its colours, and for survey.c
 *   tasks.c     fork and exit
 *   counters.c  what was done
 *   trace.h     tracepoints
 *
 * Locks: pb_switch (a mutex) is held to switch on or off and to change the map, sets and groups, and
 * before pb_lock. pb_lock (a spinlock, taken in process context only) guards the core and the table
 * of sets. Under it nothing is slept for, and no other lock of the module is taken; the lock
 * of a hand (hand.c) is taken before it, and those of buckets in reading.c by themselves.
 */
#ifndef PIEBALD_H
#define PIEBALD_H

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/configfs.h>
#include <linux/migrate_mode.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/nodemask.h>
#ifdef CONFIG_PAGE_COLORING
#include <linux/page_coloring.h>
#endif
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/types.h>

#include "compat.h"
#include "core.h"

/* Room for a reason or a colour set as text. */
#define PB_TEXT 1024

/* --- nodes.c -------------------------------------------------------------- */

struct pb_request;

/* Memory nodes at most. */
#define PB_NODES 16

/* Those of this machine; here they have numbers from 0 on. */
extern unsigned int pb_nr_nodes;
/* Has the machine one node, and got none later? */
static inline bool pb_one_node(void)
{
	return pb_nr_nodes == 1 && READ_ONCE(nr_online_nodes) == 1;
}
int pb_nodes_set_up(void);
/* The kernel's number of a node. */
int pb_node_number(unsigned int node);
/* A node by the kernel's number, or that of a page; less than 0: it came after the module. */
int pb_node_at(int nid);
int pb_node_of(const struct page *page);
/* The node nearest to the kernel's node of this number. */
int pb_node_near(int nid);
/* Has a node more free memory than where the kernel begins to reclaim? */
bool pb_has_plenty(unsigned int node);
/* May a request have frames of the kernel's node of this number? */
bool pb_may_use_node(const struct pb_request *r, int nid);
/* Nodes that a request may have frames of, the nearest first, of PB_NODES; how many. */
unsigned int pb_nodes_for(const struct pb_request *r, u8 *nodes);

/* --- pool.c --------------------------------------------------------------- */

extern spinlock_t pb_lock;
extern struct pb_core *pb_core;
/* Most free frames that the pools of all nodes keep. */
extern unsigned long pb_pool_max;
/* The order of the largest blocks of which all frames have one colour; changes with the map. */
extern unsigned int pb_whole_order;

int pb_pool_set_up(void);
void pb_pool_end(void);
int pb_pool_set_map(const char *map, size_t len, char *why);
/* Gives every frame back to the kernel. */
void pb_pool_drain(void);

/* What became of a request. */
enum pb_answer {
	PB_PAGE,	/* a page was found */
	PB_PASS,	/* the kernel's own function shall serve it */
	PB_REFUSE,	/* the set's colours are used up, and they bind */
};

struct pb_request {
	pid_t tgid;	/* for whom */
	u64 set;	/* the number of the set whose colours it may have; 0: those that no set has */
	struct mm_struct *mm;	/* whose group is charged; NULL: that of the running task */
	gfp_t gfp;
	int nid;	/* the kernel's number of the node that is asked first */
	const nodemask_t *nodes;	/* those that it may have frames of; NULL: what the cpuset allows */
	bool is_file;	/* a block of a file, for the running task */
	bool own_only;	/* no frame rather than one of another colour, whatever the mode */
};

/* serve.c */
enum pb_answer pb_pool_take(const struct pb_request *request, struct page **page);
/* May the group of a set (0: groups without) have a frame of this colour? */
bool pb_fits(u64 set, unsigned long pfn);
/* And is it this one, if one is named (-1: none)? */
bool pb_suits(u64 set, unsigned long pfn, int color);
/* The colour of the set's next block; -1: any. */
int pb_turn_of_block(u64 set);
/* With pb_lock held: the map is new, what was not found may be there. */
void pb_serve_afresh(void);

/* pb_core_version(), to be looked at without a lock. */
extern u64 pb_version;
/* Brings it up to date; with pb_lock held, after the colour sets may have changed. */
void pb_new_version(void);

/* What follows is for hand.c, zone.c and serve.c. */

/* Frames that are taken from the kernel one by one, of one node. */
#define PB_SINGLE_GFP ((GFP_HIGHUSER_MOVABLE & ~__GFP_DIRECT_RECLAIM) | \
		       __GFP_NOWARN | __GFP_NORETRY | __GFP_NOMEMALLOC | __GFP_THISNODE)

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

void pb_note_marks(unsigned int node, struct pb_marks *marks);
void pb_restore_marks(unsigned int node, const struct pb_marks *marks);

/* log2 of the frames that are taken at a time: holds every colour of up to 512. */
#define PB_REFILL_ORDER 9
/* Blocks of a size that are looked at for a request that can do without. */
#define PB_SIFTED 512UL

/* A block of a node that the kernel gives, or NULL; the flags say the rest. */
struct page *pb_alloc(unsigned int node, gfp_t gfp, unsigned int order);
/* Puts a block of single pages into the pool of its node; how many frames: 0 if the core does not want it. */
unsigned long pb_pool_add_block(struct page *page, unsigned int order);
/* Frames came that the pool of a node may have too much of. */
void pb_pool_grown(unsigned int node);
/* Gives all of it back, if that was not just now, for a block that was not to be had; true if it did. */
bool pb_pool_make_way(void);
/* Takes a block of two frames or more into a node's pool; false if the kernel has none to spare. */
bool pb_pool_refill_block(unsigned int node);
/* Takes some frames into the pool, wherever they lie; false if there are none. */
bool pb_pool_refill_singles(unsigned int node);
/*
 * Blocks, or else single frames; false if the kernel has none to spare. The kernel's reclaim is woken where
 * memory is short, unless that is to be spared.
 */
bool pb_pool_refill(unsigned int node, bool sparing);
/* Takes up to so many single frames into the pool; how many. */
unsigned int pb_pool_collect(unsigned int node, gfp_t gfp, unsigned int most);
/* The same of what came free on this processor just now, as far as it is told by colour what the set may have. */
unsigned int pb_pool_collect_freed(unsigned int node, u64 set, unsigned int most);
/* A frame that is free, though the kernel gave it out: it carries a mark. */
void pb_mark_free(struct page *page);
bool pb_is_marked(const struct page *page);
/* Gives a frame back to the kernel, without the mark. */
void pb_free(struct page *page);
/* And single pages as the block that they are. */
void pb_free_block(u64 pfn, unsigned int order);
/* Gives back what the pools have too much of. */
void pb_pool_trim(void);
/* Makes a frame ready for a process; NULL: it has failed (hwpoison), and is gone. */
struct page *pb_prepared(u64 pfn, gfp_t gfp);

/* --- hand.c ----------------------------------------------------------------- */

void pb_hand_set_up(void);
/* A frame for a request out of this processor's hand; false if there is none. */
bool pb_hand_take(const struct pb_request *r, struct pb_given *given);
/* Puts the frames of all hands into the pool. */
void pb_hand_put_all(void);

/* --- lists.c ---------------------------------------------------------------- */

#ifdef CONFIG_PAGE_COLORING
/* Has the kernel calls for frames made, and its free pages by colour. With pb_switch held. */
int pb_lists_on(const struct page_coloring_calls *calls);
/* Waits. Nobody else may call hooks.c meanwhile. */
void pb_lists_off(void);
/* Are there lists for this map? If not, there are the hands. */
bool pb_lists_are_on(void);
/* A page for a request, of the colour whose turn it is, or NULL. */
struct page *pb_lists_take(const struct pb_request *r);
/* Takes up to so many frames of a node that a set may have into the pool: what was freed here last; how many. */
unsigned int pb_lists_collect(unsigned int node, u64 set, unsigned int most);
/* A page of a node and a colour, or NULL: the one that was freed here last. */
struct page *pb_lists_take_color(gfp_t gfp, unsigned int node, unsigned int color);
#else
static inline bool pb_lists_are_on(void)
{
	return false;
}

static inline struct page *pb_lists_take(const struct pb_request *r)
{
	return NULL;
}

static inline unsigned int pb_lists_collect(unsigned int node, u64 set, unsigned int most)
{
	return 0;
}

static inline struct page *pb_lists_take_color(gfp_t gfp, unsigned int node, unsigned int color)
{
	return NULL;
}
#endif

/* --- zone.c ----------------------------------------------------------------- */

void pb_zone_set_up(void);
void pb_zone_free(void);
/* Switches SRM-buffer on or off; its hooks are for who calls. */
int pb_zone_switch(bool on, char *why);
extern bool pb_zone_on;
static inline bool pb_zone_is_on(void)
{
	return READ_ONCE(pb_zone_on);
}
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

/* --- sets.c --------------------------------------------------------------- */

/* Until when (jiffies) something is not searched for, since it was not found. 0: at once. */
enum pb_pause_of { PB_PAUSE_TURN, PB_PAUSE_SOME, PB_PAUSE_ALL, PB_PAUSE_SPENT, PB_NR_PAUSES };
struct pb_pause {
	/*
	 * The colour whose turn it is; free frames of the colours, where some were looked at, or all; those that others
	 * have.
	 */
	unsigned long until[PB_NR_PAUSES];
};

#define PB_EVENTS(X) \
	X(reclaimed) X(moved_out) X(move_failed) \
	X(fallback_spent) X(fallback_nowait) X(fallback_forced) X(fallback_unkillable) \
	X(refused) X(oom)

#define PB_EVENT_ENUM(name) PB_E_##name,
enum pb_event { PB_EVENTS(PB_EVENT_ENUM) PB_NR_EVENTS };
#undef PB_EVENT_ENUM

/* A colour set. */
struct pb_set {
	struct config_item item;	/* its directory */
	struct hlist_node node;
	u64 number;			/* not 0, and of no other set ever */
	bool colored;			/* it has colours */
	bool hard;			/* they bind */
	bool migrates;			/* pages of other groups leave them */
	unsigned long cursor;		/* the frame where such pages are looked for next */
	unsigned int blocks;		/* of several pages that were asked for */
	u32 turns;			/* colours that were dealt (lists.c) */
	struct pb_pause pause[PB_NODES];
	struct pb_seat seat;
	u64 events[PB_NR_EVENTS];
};

/* Does any set have colours? */
extern unsigned int pb_nr_colored;
static inline bool pb_sets_any(void)
{
	return READ_ONCE(pb_nr_colored);
}
/* Takes the colours of all sets away. */
void pb_sets_forget(void);
/* The set of a number, or none. With pb_lock held. */
struct pb_set *pb_set_find(u64 number);
bool pb_set_is_hard(u64 number);
void pb_set_event(u64 number, enum pb_event event, u64 n);

/* What follows is for setfs.c, with pb_switch held. */
void pb_set_add(struct pb_set *set);
void pb_set_end(struct pb_set *set);
int pb_set_color(struct pb_set *set, const char *colors, char *why);
size_t pb_set_print_colors(struct pb_set *set, char *out, size_t len);

/* --- groups.c ------------------------------------------------------------- */

/* Is it a group still, not one that was removed? */
bool pb_group_lives(struct mem_cgroup *memory);
/* The set whose colours the pages of a group have, or 0. Under RCU. */
u64 pb_set_of_group(struct mem_cgroup *memory);
/* The same for a page that the running task asks for, of this memory or (NULL) of a file. */
u64 pb_set_of_current(struct mm_struct *mm);
/* Does the running process have colours? */
bool pb_current_is_colored(void);
/* The group that a page of this memory has its colours of, with a reference, or none. */
struct mem_cgroup *pb_owner_of_current(struct mm_struct *mm);
/* The next group that owns a colour of the set, with a reference, or none; *last begins at 0. */
struct mem_cgroup *pb_next_owner(u64 number, u64 *last);

/* What follows is for setfs.c and sets.c, with pb_switch held. */
int pb_set_attach(struct pb_set *set, const char *name, char *why);
int pb_set_detach(struct pb_set *set, const char *name, char *why);
size_t pb_set_print_groups(struct pb_set *set, char *out, size_t len);
/* Lets go of the groups of a set that were removed, or of all. */
void pb_groups_release(struct pb_set *set, bool removed_only);

/* --- setfs.c -------------------------------------------------------------- */

int pb_setfs_set_up(void);
void pb_setfs_end(void);

/* --- shortage.c ----------------------------------------------------------- */

/* Pages that are reclaimed or moved at a time. */
#define PB_RELIEF 32UL

int pb_shortage_set_up(void);
/* May a request of these flags wait for reclaim? */
bool pb_may_relieve(gfp_t gfp);
/* Rounds in which nothing was found before it gives up. */
unsigned int pb_patience(gfp_t gfp, bool hard);
/* Rounds of relief for one request. */
struct pb_relief {
	unsigned int idle;	/* that found nothing */
	bool elsewhere;		/* what its owners gave last was of no use: it may lie on another node */
	bool writing;		/* nothing can be had, but most of what its owners have is being written */
};
/* Frees some pages of those who own a set's colours, or makes others leave; how many. */
unsigned long pb_relieve(const struct pb_request *r, struct pb_relief *relief);
/*
 * Works out anew what the groups' guarantees come to, for the reclaim of all memory; at once, or if it was not done
 * just now.
 */
void pb_protect_all(bool at_once);
/*
 * Reclaims pages of all groups, as where memory is used up, but what memory.min keeps, and memory.low as far as the
 * kernel's reclaim does; takes frames of some nodes (a bit each) that came free into the pool. How many pages were reclaimed, and how many frames
 * came: none where memory is below what the kernel keeps free.
 */
unsigned long pb_make_room(gfp_t gfp, unsigned long nodes, unsigned long *came);
/* Ends a process of the group that the request is for; false if none can be. */
bool pb_out_of_memory(const struct pb_request *r);

/* --- survey.c ------------------------------------------------------------- */

/*
 * The frames of a set's colours: all; those that nobody has; of its groups; of other sets that have the
 * colour too; of other groups; of groups that were removed; pinned, whosever; and of the kernel. The
 * last four are parts of what is the kernel's.
 */
#define PB_HELD(X) \
	X(total) X(free) X(own) X(sharing) X(others) X(dying) X(pinned) X(kernel) \
	X(slab) X(page_tables) X(hugetlb) X(reserved)

#define PB_HELD_ENUM(name) PB_H_##name,
enum pb_held_by { PB_HELD(PB_HELD_ENUM) PB_NR_HELD };
#undef PB_HELD_ENUM

struct pb_held {
	u64 frames[PB_NR_HELD];
};

/* Counts the frames of a set's colours by their holder; -EINTR if the caller is killed. */
int pb_survey(u64 number, struct pb_held *found);
/* How many of them memory of processes can ever have. */
u64 pb_capacity(const struct pb_held *found);
/* Moves pages of other groups out of a set's colours, if it wants that: all, or some. */
int pb_set_vacate(u64 number);
unsigned long pb_vacate_some(const struct pb_request *r, unsigned long want, gfp_t gfp);

/* --- tasks.c -------------------------------------------------------------- */

int pb_tasks_set_up(void);
void pb_tasks_end(void);
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
/* Which variant of a function this kernel has, a number of known.tsv; less than 0: none. Says why. */
int pb_known_variant(const char *function, bool say);
/* Do all callers of a function call it, and no part that was made of it? Says why not. */
bool pb_known_whole(const char *function, bool say);
void pb_known_end(void);

/* --- pick.c ---------------------------------------------------------------- */

int pb_pick_set_up(void);
/*
 * Takes some of the kernel's blocks of a node that have a frame of a set's colours into the pool; how many
 * frames. If it is to be thorough it looks at all and may sleep.
 */
unsigned long pb_pick(unsigned int node, u64 number, bool thorough);
/*
 * Puts some of the kernel's free blocks of a node that have this colour, or (-1) one of the set, in front, where the next
 * request for a block of that order finds them; false: it has seen none.
 */
bool pb_pick_forward(unsigned int node, u64 number, unsigned int order, int color);
/*
 * What processors have set aside goes to where all find it: frames of the hands to the pool, those of the
 * kernel's own lists for each processor to its blocks. May sleep.
 */
void pb_gather(void);

/* --- recolor.c ------------------------------------------------------------- */

/* Pages that are to move, and what became of those before. */
struct pb_move {
	struct list_head pages;
	unsigned int n;
	u64 set;	/* to its colours; 0: to those of the group that is charged for the page */
	enum migrate_mode mode;
	unsigned long moved, failed;
	bool homeless;	/* nobody has a frame for some of them, */
	unsigned int node;	/* which lie there */
	struct folio *stuck;	/* the last one whose group's colours, which bind, are used up */
};

int pb_recolor_set_up(void);
int pb_recolor(pid_t number, char *why);
/* Takes a page, of which the caller has a reference, off the kernel's lists, to be moved. */
bool pb_isolate(struct folio *folio, struct pb_move *move);
void pb_move_pages(struct pb_move *move);
/* Puts pages that are on their way to the kernel's lists there: else they cannot be moved. */
void pb_drain_lists(void);

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
	PB_HOOK_MIGRATE,
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

/*
 * A function that may be what a hook replaces. Of those of a hook the first counts that this kernel has,
 * whole and with this variant of its signature.
 */
struct pb_variant {
	enum pb_hook_id hook;
	const char *function;	/* NULL ends a table */
	int number;		/* in known.tsv */
	void *replacement;
	void (*set_original)(void *original);
};

/* Of a replacement replace_STEM, which calls original_STEM. */
#define PB_VARIANT(hook, function, number, stem) \
	{ hook, function, number, replace_##stem, set_original_##stem }
#define PB_ORIGINAL(stem, prototype) \
	DEFINE_STATIC_CALL_NULL(original_##stem, prototype); \
	static void set_original_##stem(void *original) \
	{ \
		static_call_update(original_##stem, original); \
	}

int pb_user_set_up(void);
extern const struct pb_variant pb_user_variants[], pb_migration_variants[], pb_reading_variants[];
/* Who runs a replacement is inside from its beginning to its end. */
void pb_enter(void);
void pb_leave(void);
/* Tasks that are inside a replacement. */
long pb_inside(void);

/* --- files.c -------------------------------------------------------------- */

int pb_files_set_up(void);
void pb_files_end(void);
/* Takes pb_switch, and empties the reason that is left if a write is refused; -EINTR: killed. */
int pb_reason_begin(void);
/* The reason, PB_TEXT long, to be written between these two. */
char *pb_reason(void);
/* Puts the reason into the log, if there was an error, and pb_switch back. */
void pb_reason_end(const char *directory, const char *file, int error);

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
/* The same: makes everything ready for a set that gets colours. */
int pb_switch_expect(char *why);
/* If no set has colours, puts the kernel's functions back after a while. From any context. */
void pb_switch_settle_later(void);
void pb_switch_end(void);

/* --- counters.c ----------------------------------------------------------- */

#define PB_COUNTERS(X) \
	X(anon_pages) X(file_pages) X(swap_and_shmem_pages) \
	X(other_frames) X(policy_passed) X(unmovable_passed) X(large_refused) X(large_passed) X(large_colored) \
	X(thp_refused) X(compaction_refused) X(merging_refused) X(hard_failures) \
	X(refills) X(refill_frames) X(refill_failed) X(picked) X(gathered) X(recycled) X(hand_returned) X(room_made) \
	X(given_back) X(reclaimed) X(marks_restored) X(failed_frames) \
	X(moves_colored) X(switched_on) X(recolored) X(recolor_failed) X(recolor_shared) \
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
