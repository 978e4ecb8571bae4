// SPDX-License-Identifier: GPL-2.0
/*
 * Pages that the kernel moves while control groups have colours.
 *
 * Compaction gathers pages and free frames, and moves the pages to the frames. Each page gets a frame of the colours
 * of the group that is charged for it, or of those that nobody has: frames of others go back to the kernel's lists.
 * (They cannot go back to compaction, which gives first what it got last; and no frame at all would end it.) Where
 * too many frames were looked at for a page of a group, it stays, and so do all pages of that group for some batches, as
 * the free frames of this part of the memory have none of its colours. With SRM-buffer on, pages of files stay as well, and
 * so do pages of several frames of groups with colours.
 *
 * Pages that move to another memory node or off a failing frame (automatic balancing, move_pages, mbind, cpusets,
 * demotion, DAMON, hwpoison) get a frame of the colours of the group that is charged for them, on the node where the
 * kernel has found one. If there is none, a page stays that has no need to move, or whose colours bind; another takes the
 * kernel's frame, and so does one whose own frame fails. Moves that empty a range of frames, or pin pages, know better
 * which frames will do.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm_inline.h>
#include <linux/sched/signal.h>
#include <linux/static_call.h>

/* Frames that are looked at for one page. */
#define TRIES 256
/*
 * For how many batches of compaction pages of a group stay after that at most: one, then twice as many each time until one
 * moves, and not longer than a second. How often it may be found in one batch.
 */
#define MOST_PAUSE 32
#define PAUSE_ENDS HZ
#define RESTARTS 2
/* Pages that move at a time, where they are to keep their colours. */
#define BATCH 128

PB_ORIGINAL(migrate, migrate_pages)

/*
 * The set that had no frame for compaction last, when, for how many batches its pages stay, and how many of these are left.
 * Where two processors compact at once, some are looked at too often or too rarely.
 */
static u64 used_up;
static unsigned long used_up_at;
static unsigned int pause, pause_left;

/* Where who moves pages gets frames, and puts those that were not needed. */
struct source {
	new_folio_t *get;
	free_folio_t *put;
	unsigned long private;
	int reason;
	struct folio *stuck;	/* the last one that is to stay where it is */
};

static u64 set_of(struct folio *folio)
{
	struct mem_cgroup *memory;
	u64 number;

	rcu_read_lock();
	memory = folio_memcg_check(folio);
	number = memory ? pb_set_of_group(memory) : 0;
	rcu_read_unlock();
	return number;
}

static bool is_recent(u64 set)
{
	return set == READ_ONCE(used_up) && time_before(jiffies, READ_ONCE(used_up_at) + PAUSE_ENDS);
}

static void note_used_up(u64 set)
{
	unsigned int batches = is_recent(set) ? min(2 * READ_ONCE(pause), MOST_PAUSE) : 0;

	WRITE_ONCE(pause, max(batches, 1));
	WRITE_ONCE(pause_left, READ_ONCE(pause));
	WRITE_ONCE(used_up_at, jiffies);
	WRITE_ONCE(used_up, set);
}

static struct folio *get_fitting(struct folio *from, unsigned long private)
{
	struct source *source = (struct source *)private;
	u64 set = pb_is_of_driver(from) ? 0 : set_of(from);
	unsigned int tries = TRIES;
	struct folio *to;

	while ((to = source->get(from, source->private)) && !folio_test_large(to) &&
	       !pb_fits(set, folio_pfn(to))) {
		/* Compaction counts it as returned, but does not get it: this reference is the last. */
		folio_get(to);
		source->put(to, source->private);
		folio_put(to);
		if (--tries)
			continue;
		if (set) {
			source->stuck = from;
			note_used_up(set);
		}
		return NULL;
	}
	if (to && set) {
		pb_count(moves_colored);
		if (is_recent(set))
			WRITE_ONCE(pause, 0);
	}
	return to;
}

static void put(struct folio *to, unsigned long private)
{
	const struct source *source = (const struct source *)private;

	source->put(to, source->private);
}

/* `all`: also what has colours that are not known to be used up. */
static bool stays(struct folio *folio, bool all)
{
	u64 set;

	if (pb_is_of_driver(folio))
		return false;
	/* A block of one colour, of which no other is looked for. */
	if (folio_test_large(folio))
		return set_of(folio);
	if (pb_zone_is_on() && folio_is_file_lru(folio))
		return true;
	set = set_of(folio);
	return set && (all || (is_recent(set) && READ_ONCE(pause_left)));
}

/* Leaves pages that stay in `from`, which is what did not move; how many, or less. */
static int compact(struct list_head *from, struct source *source, enum migrate_mode mode,
		   unsigned int *succeeded)
{
	unsigned int staying = 0, moved = 0, restarts = 0, left = READ_ONCE(pause_left);
	struct folio *folio, *next;
	int error = 0;
	LIST_HEAD(stay);

	while (!list_empty(from)) {
		unsigned int some = 0;

		list_for_each_entry_safe(folio, next, from, lru) {
			if (!stays(folio, restarts == RESTARTS))
				continue;
			list_move_tail(&folio->lru, &stay);
			staying++;
		}
		if (list_empty(from))
			break;
		source->stuck = NULL;
		error = static_call(original_migrate)(from, get_fitting, put,
						      (unsigned long)source, mode, MR_COMPACTION,
						      &some);
		moved += some;
		if (!source->stuck || restarts++ == RESTARTS)
			break;
		list_move_tail(&source->stuck->lru, &stay);
		staying++;
		error = 0;
	}
	/* A batch without pages of that group counts as well. */
	if (left && !restarts)
		WRITE_ONCE(pause_left, left - 1);
	pb_count_many(PB_C_compaction_refused, staying);
	if (succeeded)
		*succeeded = moved;
	list_splice_tail(&stay, from);
	return error < 0 ? error : error + (int)staying;
}

/* Is it a move whose pages are to keep their colours? */
static bool keeps_colors(int reason)
{
	switch (reason) {
	case MR_MEMORY_FAILURE:
	case MR_SYSCALL:
	case MR_MEMPOLICY_MBIND:
	case MR_NUMA_MISPLACED:
	case MR_DEMOTION:
	case MR_DAMON:
		return true;
	default:
		return false;
	}
}

/* Is it no more than better if the page moves? */
static bool may_stay(int reason)
{
	return reason == MR_NUMA_MISPLACED || reason == MR_DEMOTION || reason == MR_DAMON;
}

/* A frame of the colours of a set, or (0) of those that nobody has, on a node. */
static struct folio *frame_of(u64 set, int nid, int reason)
{
	const nodemask_t there = nodemask_of_node(nid);
	struct pb_request request = {
		.tgid = current->tgid,
		.set = set,
		.gfp = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN,
		.nid = nid,
		.nodes = &there,
		.own_only = true,
	};
	struct page *page;

	/* In the middle of a fault or of reclaim, nothing else is to be reclaimed. */
	if (may_stay(reason))
		request.gfp &= ~__GFP_RECLAIM;
	return pb_pool_take(&request, &page) == PB_PAGE ? page_folio(page) : NULL;
}

static struct folio *get_colored(struct folio *from, unsigned long private)
{
	struct source *source = (struct source *)private;
	struct folio *to = source->get(from, source->private), *ours;
	int reason = source->reason;
	u64 set;

	if (!to || pb_is_of_driver(from) || pb_node_at(folio_nid(to)) < 0)
		return to;
	set = set_of(from);
	if (folio_test_large(to) && !set)
		return to;
	if (pb_fits(set, folio_pfn(to))) {
		if (set)
			pb_count(moves_colored);
		return to;
	}
	/* The kernel splits it then, unless that is not worth it, and asks for its parts. */
	if (folio_test_large(to)) {
		folio_put(to);
		return NULL;
	}
	ours = frame_of(set, folio_nid(to), reason);
	if (!ours && (reason == MR_MEMORY_FAILURE || (!may_stay(reason) && !pb_set_is_hard(set))))
		return to;
	folio_put(to);
	if (ours)
		pb_count(moves_colored);
	else
		source->stuck = from;
	return ours;
}

/* Leaves pages that stay in `from`. The kernel ends where a page gets no frame; those behind it go on. */
static int move_some(struct list_head *from, struct source *source, enum migrate_mode mode,
		     unsigned int *succeeded)
{
	unsigned int moved = 0, staying = 0;
	LIST_HEAD(stay);
	int error;

	do {
		unsigned int some = 0;

		source->stuck = NULL;
		error = static_call(original_migrate)(from, get_colored, NULL, (unsigned long)source,
						      mode, source->reason, &some);
		moved += some;
		if (!source->stuck)
			break;
		list_move_tail(&source->stuck->lru, &stay);
		staying++;
		error = 0;
	} while (!list_empty(from));
	list_splice_tail(&stay, from);
	*succeeded = moved;
	return error < 0 ? error : error + (int)staying;
}

/* A few at a time: each page that stays has the rest of them looked at again. */
static int move(struct list_head *from, struct source *source, enum migrate_mode mode,
		unsigned int *succeeded)
{
	unsigned int moved = 0, staying = 0;
	LIST_HEAD(stay);
	int error = 0;

	while (!list_empty(from) && error >= 0 && !fatal_signal_pending(current)) {
		unsigned int n = 0, some;
		struct folio *folio;
		LIST_HEAD(batch);

		list_for_each_entry(folio, from, lru)
			if (++n == BATCH)
				break;
		if (n < BATCH)
			list_splice_init(from, &batch);
		else
			list_cut_position(&batch, from, &folio->lru);
		error = move_some(&batch, source, mode, &some);
		moved += some;
		staying += max(error, 0);
		list_splice_tail(&batch, &stay);
	}
	staying += list_count_nodes(from);
	list_splice(&stay, from);
	if (succeeded)
		*succeeded = moved;
	return error < 0 ? error : (int)staying;
}

static noinline int replace_migrate(struct list_head *from, new_folio_t get, free_folio_t put,
				    unsigned long private, enum migrate_mode mode, int reason,
				    unsigned int *succeeded)
{
	struct source source = { .get = get, .put = put, .private = private, .reason = reason };
	int error;

	pb_enter();
	if (reason == MR_COMPACTION)
		error = compact(from, &source, mode, succeeded);
	else if (!put && keeps_colors(reason))
		error = move(from, &source, mode, succeeded);
	else
		error = static_call(original_migrate)(from, get, put, private, mode, reason,
						      succeeded);
	pb_leave();
	return error;
}

const struct pb_variant pb_migration_variants[] = {
	PB_VARIANT(PB_HOOK_MIGRATE, "migrate_pages", 1, migrate),
	{ }
};
