// SPDX-License-Identifier: GPL-2.0
/*
 * Frames for requests: which one a request gets, and what is tried for it.
 *
 * A request of a set without frames at hand goes up a ladder: blocks that the kernel gives next;
 * some of its free blocks, or all (pick.c); what processors have set aside; what can be reclaimed in the
 * groups that own the colours, and what others have in them (shortage.c). Only then a hint is left, and
 * hard colours call the group's out-of-memory killer.
 *
 * On a machine with several memory nodes free frames are searched on each that the request may use, the
 * nearest first, before anything is reclaimed.
 *
 * A search that found nothing is not repeated for a while, longer if it took long. So a request
 * may do without a frame that became free in that while. Nobody is killed on such old knowledge.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>

#include "trace.h"

/* Blocks that one request takes before it does without. */
#define TRIES 8
/* Times that blocks are picked for one request: others may be faster. */
#define PICKS 4
/* How long colours that were not found are not searched for, at least. */
#define PAUSE (HZ / 10)
/* And so many times as long as the search took. */
#define PAUSE_FACTOR 10
/* How long hard colours wait for pages that are being written. */
#define WRITING (10 * HZ)
/* And a hint, which then does without for PAUSE_FACTOR times as long. */
#define WRITING_OF_HINT HZ

/* Of all groups without colours; with pb_lock held. */
static struct pb_pause others[PB_NODES];
static unsigned long gather_due;	/* jiffies from which on processors are asked again */

void pb_serve_afresh(void)
{
	memset(others, 0, sizeof(others));
}

/* What looks into the pool found, for one request. */
struct look {
	const struct pb_request *r;
	u8 nodes[PB_NODES];		/* that it may have frames of, the nearest first */
	unsigned int nr_nodes;
	unsigned int node;		/* where it looks */
	struct pb_given given;
	bool found;
	bool sparing;			/* what a node keeps free is left alone, as long as another has more */
	bool hard;			/* the set's colours bind */
	struct pb_pause pause;		/* as of the last look */
	unsigned long freed;		/* pages that came free just now */
	unsigned long waits_until;	/* for pages that are being written; 0: it has not waited yet */
};

static bool find_nodes(struct look *l)
{
	l->nr_nodes = pb_nodes_for(l->r, l->nodes);
	l->node = l->nodes[0];
	return l->nr_nodes;
}

static bool pauses(unsigned long until)
{
	return until && time_before(jiffies, until);
}

/* The set is looked up anew each time: it may end meanwhile. */
static bool look(struct look *l, enum pb_reach reach)
{
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(l->r->set);
	l->hard = set && set->hard;
	l->pause = set ? set->pause[l->node] : others[l->node];
	l->found = !pb_core_take(pb_core, l->node, set ? &set->seat : NULL, reach, &l->given);
	spin_unlock(&pb_lock);
	return l->found;
}

/* Notes that something was not found by a search that began then. */
static void note_pause(const struct look *l, size_t which, unsigned long began)
{
	unsigned long took = jiffies - began;
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(l->r->set);
	(set ? set->pause : others)[l->node].until[which] =
		(jiffies + max(PAUSE, PAUSE_FACTOR * took)) | 1;
	spin_unlock(&pb_lock);
}

/* Goes a way on each node, until one gives a frame. */
static bool on_each_node(struct look *l, bool (*way)(struct look *l))
{
	unsigned int i;

	for (i = 0; i < l->nr_nodes; i++) {
		l->node = l->nodes[i];
		if (way(l))
			return true;
	}
	l->node = l->nodes[0];
	return false;
}

static bool may_search(const struct look *l)
{
	return !l->sparing || pb_has_plenty(l->node);
}

/*
 * The colour whose turn it is. If the pool has none, fresh blocks come first: what is in the
 * pool is what others had no use for, and whoever lived on that would get few colours.
 */
static bool take_turn(struct look *l)
{
	unsigned long began = jiffies;

	if (look(l, PB_TURN))
		return true;
	if (pauses(l->pause.until[PB_PAUSE_TURN]) || !may_search(l))
		return false;
	if (pb_pool_refill(l->node, l->sparing) && look(l, PB_TURN))
		return true;
	note_pause(l, PB_PAUSE_TURN, began);
	return false;
}

/* Is a frame of another colour no use, as of the last look? */
static bool binds(const struct look *l)
{
	return l->hard || l->r->own_only;
}

/* Searches what the kernel gives next. */
static void search(struct look *l)
{
	unsigned int tries;

	for (tries = 0; tries < TRIES && pb_pool_refill(l->node, l->sparing); tries++)
		if (look(l, PB_OWN))
			return;
}

/* Searches some of what the kernel has at hand for blocks that have the colours, or all of it. */
static void pick(struct look *l, bool thorough)
{
	unsigned int tries;

	for (tries = 0; tries < PICKS && pb_pick(l->node, l->r->set, thorough); tries++)
		if (look(l, PB_OWN))
			return;
}

static bool search_free(struct look *l, bool thorough)
{
	unsigned long began = jiffies;

	search(l);
	if (!l->found)
		pick(l, thorough);
	if (!l->found)
		note_pause(l, thorough ? PB_PAUSE_ALL : PB_PAUSE_SOME, began);
	return l->found;
}

static bool search_thoroughly(struct look *l)
{
	return search_free(l, true);
}

/* Takes what came free just now on this processor. */
static bool take_freed(struct look *l)
{
	pb_pool_collect_freed(l->node, l->r->set, min(l->freed, 2 * PB_RELIEF));
	return look(l, PB_OWN);
}

/* Most of it may have had other colours, or lie elsewhere. */
static bool pick_freed(struct look *l)
{
	pick(l, l->hard);
	return l->found;
}

static bool pick_all(struct look *l)
{
	if (!look(l, PB_OWN))
		pick(l, true);
	return l->found;
}

static bool pick_gathered(struct look *l)
{
	if (!look(l, PB_OWN))
		pick(l, binds(l));
	return l->found;
}

/* Brings in what processors have set aside. That is dear: not often, unless nothing else is left. */
static bool take_gathered(struct look *l, bool last)
{
	unsigned long due = READ_ONCE(gather_due), began = jiffies;

	if (!last && (time_before(began, due) || cmpxchg(&gather_due, due, began + PAUSE) != due))
		return false;
	pb_gather();
	if (!on_each_node(l, last ? pick_all : pick_gathered))
		WRITE_ONCE(gather_due, jiffies + max(PAUSE, PAUSE_FACTOR * (jiffies - began)));
	return l->found;
}

/* Does it go on waiting for pages that are being written? A disk may be slow. */
static bool waits_for_writing(struct look *l, const struct pb_relief *relief)
{
	if (!relief->writing)
		return false;
	if (!l->waits_until)
		l->waits_until = (jiffies + (l->hard ? WRITING : WRITING_OF_HINT)) | 1;
	return time_before(jiffies, l->waits_until);
}

/* The groups that own the colours give some pages up, or others leave. */
static bool relieve(struct look *l)
{
	unsigned int i, patience = pb_patience(l->r->gfp, l->hard);
	unsigned long began = jiffies, waited = 0;
	struct pb_relief relief = { 0 };

	while (relief.idle < patience && !fatal_signal_pending(current)) {
		unsigned long round = jiffies;

		migrate_disable();
		l->freed = pb_relieve(l->r, &relief);
		if (l->freed)
			on_each_node(l, take_freed);
		migrate_enable();
		if (l->found || (l->freed && on_each_node(l, pick_freed)))
			return true;
		if (waits_for_writing(l, &relief)) {
			waited += jiffies - round;
			continue;
		}
		/* What came free may lie where it may not take it, without end. */
		relief.elsewhere = l->freed && l->nr_nodes < pb_nr_nodes;
		if (relief.elsewhere)
			relief.idle++;
		/* As the kernel does where its reclaim finds nothing. */
		if (!l->freed && !relief.idle++ && take_gathered(l, true))
			return true;
		/* Its cpuset may have changed meanwhile. */
		if (!find_nodes(l))
			return false;
	}
	if (fatal_signal_pending(current))
		return false;
	/* Meanwhile others may have freed some. */
	if (take_gathered(l, true))
		return true;
	for (i = 0; i < l->nr_nodes; i++) {
		l->node = l->nodes[i];
		note_pause(l, PB_PAUSE_SPENT, l->hard ? began + waited : began);
	}
	return false;
}

/* One of the set's own colours that is free: the one whose turn it is, or any. */
static bool take_free(struct look *l)
{
	bool thorough;

	if (take_turn(l) || look(l, PB_OWN))
		return true;
	/* Who cannot wait looks at some, which keeps nobody from looking at all. */
	thorough = binds(l) && gfpflags_allow_blocking(l->r->gfp);
	return !pauses(l->pause.until[thorough ? PB_PAUSE_ALL : PB_PAUSE_SOME]) && may_search(l) &&
	       search_free(l, thorough);
}

/*
 * Of any node. As with the kernel's own, a node begins to reclaim only when all are short; and for who asks for
 * no reclaim none does.
 */
static bool take_free_anywhere(struct look *l)
{
	bool wakes = l->r->gfp & __GFP_KSWAPD_RECLAIM;

	l->sparing = l->nr_nodes > 1 || !wakes;
	if (on_each_node(l, take_free))
		return true;
	if (!l->sparing || !wakes)
		return false;
	l->sparing = false;
	return on_each_node(l, take_free);
}

/* Was nothing got lately on any of its nodes by what follows? */
static bool is_spent(struct look *l)
{
	unsigned int i;

	for (i = 0; i < l->nr_nodes && !l->found; i++) {
		l->node = l->nodes[i];
		if (!look(l, PB_OWN) && !pauses(l->pause.until[PB_PAUSE_SPENT]))
			return false;
	}
	return true;
}

/* One that is not free yet. */
static bool take_relieved(struct look *l)
{
	if (!l->r->set || l->r->own_only || !pb_may_relieve(l->r->gfp) || is_spent(l))
		return l->found;
	return take_gathered(l, false) || relieve(l);
}

/* All of the ladder, whatever was found lately. */
static bool take_at_last(struct look *l)
{
	return on_each_node(l, search_thoroughly) || relieve(l);
}

/*
 * Hard colours are used up: somebody in the group ends, as where a group's memory.max is reached.
 * Requests that such a limit would let pass, or would refuse, fare alike.
 */
static enum pb_answer without(struct look *l)
{
	const struct pb_request *r = l->r;
	const gfp_t may_fail = __GFP_NORETRY | __GFP_RETRY_MAYFAIL;

	if (current->flags & PF_MEMALLOC || r->gfp & __GFP_NOFAIL || fatal_signal_pending(current)) {
		pb_set_event(r->set, PB_E_fallback_forced, 1);
		return PB_PASS;
	}
	if (!gfpflags_allow_blocking(r->gfp) || r->gfp & may_fail)
		goto refuse;
	while (!fatal_signal_pending(current)) {
		if (take_at_last(l))
			return PB_PAGE;
		if (!l->hard || !find_nodes(l))
			return PB_PASS;
		if (!pb_out_of_memory(r)) {
			pb_set_event(r->set, PB_E_fallback_unkillable, 1);
			return PB_PASS;
		}
		pb_set_event(r->set, PB_E_oom, 1);
		schedule_timeout_killable(1);
	}
refuse:
	pb_set_event(r->set, PB_E_refused, 1);
	pb_count(hard_failures);
	return PB_REFUSE;
}

static bool look_at_any(struct look *l)
{
	return look(l, PB_ANY);
}

/* A set without a frame of its colours: which way out? */
static enum pb_answer settle(struct look *l)
{
	if (l->r->own_only)
		return PB_REFUSE;
	if (l->hard)
		return without(l);
	if (l->r->set)
		pb_set_event(l->r->set, pb_may_relieve(l->r->gfp) ? PB_E_fallback_spent :
			     PB_E_fallback_nowait, 1);
	return on_each_node(l, look_at_any) ? PB_PAGE : PB_PASS;
}

bool pb_suits(u64 number, unsigned long pfn, int color)
{
	struct pb_given given = { .pfn = pfn };
	struct pb_set *set;
	bool it;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	it = pb_core_may_have(pb_core, set ? &set->seat : NULL, &given);
	spin_unlock(&pb_lock);
	return it && (color < 0 || given.color == (u32)color);
}

bool pb_fits(u64 number, unsigned long pfn)
{
	return pb_suits(number, pfn, -1);
}

int pb_turn_of_block(u64 number)
{
	struct pb_set *set;
	u32 color;
	bool found;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	found = set && pb_core_colors_at(pb_core, &set->seat, set->blocks++, &color, 1);
	spin_unlock(&pb_lock);
	return found ? color : -1;
}

struct page *pb_prepared(u64 pfn, gfp_t gfp)
{
	struct page *page = pfn_to_page(pfn);

	if (unlikely(PageHWPoison(page))) {
		/* The kernel keeps it, for nobody. */
		pb_free(page);
		return NULL;
	}
	set_page_private(page, 0);
	page->mapping = NULL;
	/* With init_on_alloc the kernel cleared it when the pool got it. */
	if (gfp & __GFP_ZERO && !want_init_on_alloc(0))
		clear_highpage(page);
	return page;
}

/* False: it has failed meanwhile. */
static bool give(const struct pb_request *r, const struct pb_given *given, struct page **page)
{
	*page = pb_prepared(given->pfn, r->gfp);
	if (*page)
		trace_piebald_frame(r->tgid, given->pfn, given->color, given->fallback);
	return *page;
}

/* Without the hand. */
static noinline enum pb_answer take(const struct pb_request *r, struct page **page)
{
	struct look l = { .r = r };
	enum pb_answer answer;

	if (!find_nodes(&l))
		return PB_PASS;
	do {
		answer = PB_PAGE;
		if (!take_free_anywhere(&l) && !take_relieved(&l))
			answer = settle(&l);
	} while (answer == PB_PAGE && !give(r, &l.given, page));
	pb_pool_trim();
	if (answer != PB_PAGE)
		trace_piebald_no_frame(r->tgid, answer == PB_REFUSE);
	return answer;
}

enum pb_answer pb_pool_take(const struct pb_request *r, struct page **page)
{
	struct pb_given given;

	if (!r->own_only && pb_zone_is_on()) {
		if (pb_zone_serve(r, page) == PB_PAGE)
			return PB_PAGE;
	} else if (pb_lists_are_on()) {
		*page = pb_lists_take(r);
		if (*page)
			return PB_PAGE;
	} else if (!r->own_only) {
		while (pb_hand_take(r, &given))
			if (give(r, &given, page))
				return PB_PAGE;
	}
	return take(r, page);
}
