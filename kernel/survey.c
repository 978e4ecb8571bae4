// SPDX-License-Identifier: GPL-2.0
/*
 * Walks over the frames of a set's colours: who holds them, and pages of other groups that can move
 * out of them.
 *
 * A page of another group moves to the colours of the group that is charged for it, by the
 * kernel's own migration, whatever memory.min, mlock or dirtiness keeps; if these are used up and a hint, to colours that
 * nobody has. Where no frame is free for it, room is made: the coldest pages of all groups go. What
 * cannot move stays: memory of the kernel (slabs, page tables, stacks, vmalloc), of hugetlbfs, and
 * pages that are pinned.
 *
 * Frames are looked at as they pass by, without locks, as /proc/kpageflags does: a count is of a
 * memory that goes on changing.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/memcontrol.h>
#include <linux/memory_hotplug.h>
#include <linux/mm_inline.h>
#include <linux/mmzone.h>
#include <linux/page_ref.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>

/* Frames whose colours are looked up at a time. */
#define BLOCK 512
/* Pages that move at a time. */
#define BATCH 64
/*
 * Times in a row that room is made for nothing, at most. What comes free may have colours that somebody owns: that counts
 * MISSED times. Or none of it can be had yet, where memory is below what the kernel keeps free.
 */
#define IN_VAIN 64
#define MISSED 4
/* For colours that are assigned. */
#define IN_VAIN_AT_ONCE 256
/* How long a hint's requests make none after that. */
#define ROOM_PAUSE HZ

/* With 1 for each frame of a block that has a colour of the set; false: there is no such set. */
static bool mark(u64 number, unsigned long first, u8 *marks)
{
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	if (set)
		pb_core_mark(pb_core, &set->seat, first, marks, BLOCK);
	spin_unlock(&pb_lock);
	return set;
}

/* Does a set have the colour of a frame? */
static bool owns(u64 number, unsigned long pfn)
{
	struct pb_set *set;
	bool it;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	it = set && set->colored && !pb_core_misplaced(pb_core, &set->seat, pfn);
	spin_unlock(&pb_lock);
	return it;
}

/* The frames of all nodes; there may be holes between them. */
static void range(unsigned long *first, unsigned long *end)
{
	unsigned int node;

	*first = ULONG_MAX;
	*end = 0;
	for (node = 0; node < pb_nr_nodes; node++) {
		int nid = pb_node_number(node);

		*first = min(*first, node_start_pfn(nid));
		*end = max(*end, node_end_pfn(nid));
	}
	*first = ALIGN_DOWN(*first, BLOCK);
}

/* Is there memory in a block? It begins and ends where the kernel's smallest parts of memory do. */
static bool is_there(unsigned long first)
{
	BUILD_BUG_ON(BLOCK > PAGES_PER_SUBSECTION);
	return pfn_to_online_page(first);
}

/* --- who holds them -------------------------------------------------------------------- */

/* Is it memory of processes: on the kernel's lists, or on its way to them or from them? */
static bool is_of_users(const struct folio *folio)
{
	return folio_test_lru(folio) || folio_test_anon(folio) ||
	       (READ_ONCE(folio->mapping) && !pb_is_of_driver(folio));
}

static enum pb_held_by holder(u64 number, struct folio *folio, unsigned long pfn)
{
	enum pb_held_by by = PB_H_others;
	struct mem_cgroup *memory;
	u64 set;

	if (folio_maybe_dma_pinned(folio))
		return PB_H_pinned;
	rcu_read_lock();
	memory = folio_memcg_check(folio);
	set = memory ? pb_set_of_group(memory) : 0;
	if (set == number)
		by = PB_H_own;
	else if (set && owns(set, pfn))
		by = PB_H_sharing;
	else if (memory && !pb_group_lives(memory))
		by = PB_H_dying;
	rcu_read_unlock();
	return by;
}

/* Counts a frame for its holder; a kind of kernel memory that has a line of its own, twice. */
static void count(u64 number, struct page *page, struct pb_held *found)
{
	struct folio *folio = page_folio(page);

	found->frames[PB_H_total]++;
	/* Slabs have a type and, from 6.14 on, no count. */
	if (PageBuddy(page) || pb_is_marked(page) ||
	    (!folio_ref_count(folio) && !page_has_type(&folio->page))) {
		found->frames[PB_H_free]++;
		return;
	}
	if (!PageReserved(page) && !folio_test_slab(folio) && !folio_test_hugetlb(folio) &&
	    !folio_test_pgtable(folio) && is_of_users(folio)) {
		found->frames[holder(number, folio, page_to_pfn(page))]++;
		return;
	}
	found->frames[PB_H_kernel]++;
	if (PageReserved(page))
		found->frames[PB_H_reserved]++;
	else if (folio_test_slab(folio))
		found->frames[PB_H_slab]++;
	else if (folio_test_pgtable(folio))
		found->frames[PB_H_page_tables]++;
	else if (folio_test_hugetlb(folio))
		found->frames[PB_H_hugetlb]++;
}

/* Frames of a free block from its first on; the others have no state of their own. */
static unsigned long free_from(const struct page *page)
{
	unsigned long order = READ_ONCE(page->private);

	return order <= MAX_PAGE_ORDER ? 1UL << order : 1;
}

int pb_survey(u64 number, struct pb_held *found)
{
	unsigned long pfn, end, free_until = 0;
	u8 marks[BLOCK];

	for (range(&pfn, &end); pfn < end; pfn++) {
		struct page *page;

		if (pfn % BLOCK == 0) {
			cond_resched();
			if (fatal_signal_pending(current))
				return -EINTR;
			if (!is_there(pfn)) {
				pfn += BLOCK - 1;
				continue;
			}
			if (!mark(number, pfn, marks))
				return 0;
		}
		page = pfn_to_online_page(pfn);
		if (!page)
			continue;
		if (pfn >= free_until && PageBuddy(page))
			free_until = pfn + free_from(page);
		if (!marks[pfn % BLOCK])
			continue;
		if (pfn < free_until) {
			found->frames[PB_H_total]++;
			found->frames[PB_H_free]++;
		} else {
			count(number, page, found);
		}
	}
	return 0;
}

u64 pb_capacity(const struct pb_held *found)
{
	return found->frames[PB_H_total] - found->frames[PB_H_kernel];
}

/* --- who can leave ---------------------------------------------------------------------- */

/* A page of a group that does not own its colour, with a reference, or none. */
static struct folio *foreign(u64 number, struct page *page, gfp_t gfp)
{
	struct folio *folio = page_folio(page);

	if (!folio_test_lru(folio) || !folio_try_get(folio))
		return NULL;
	if (page_folio(page) == folio && folio_test_lru(folio) && !folio_test_hugetlb(folio) &&
	    (gfp & __GFP_FS || !folio_mapping(folio))) {
		enum pb_held_by by = holder(number, folio, page_to_pfn(page));

		if (by == PB_H_others || by == PB_H_dying)
			return folio;
	}
	folio_put(folio);
	return NULL;
}

/* Moves the pages of a block's marked frames out. */
static void vacate_block(u64 number, unsigned long first, gfp_t gfp, const u8 *marks,
			 struct pb_move *move)
{
	unsigned long i;

	INIT_LIST_HEAD(&move->pages);
	for (i = 0; i < BLOCK; i++) {
		struct page *page = marks[i] ? pfn_to_online_page(first + i) : NULL;
		struct folio *folio = page ? foreign(number, page, gfp) : NULL;

		if (!folio)
			continue;
		pb_isolate(folio, move);
		folio_put(folio);
		if (move->n == BATCH)
			pb_move_pages(move);
	}
	pb_move_pages(move);
	pb_set_event(number, PB_E_moved_out, move->moved);
}

/* Where to go on for a set, and whether it wants others to leave at all. */
static bool vacates(u64 number, unsigned long *at, bool *hard)
{
	struct pb_set *set;
	bool it;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	it = set && set->colored && set->migrates;
	if (it) {
		*at = set->cursor;
		*hard = set->hard;
	}
	spin_unlock(&pb_lock);
	return it;
}

static void go_on_at(u64 number, unsigned long at)
{
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	if (set)
		set->cursor = at;
	spin_unlock(&pb_lock);
}

/* Room that is made for pages that are to leave, in one walk. */
struct rooms {
	gfp_t gfp;
	unsigned int most;	/* in a row for nothing, for pages of a node */
	unsigned int left[PB_NODES];	/* of these, before it is given up */
	unsigned long gathered;	/* nodes that this was done for */
};

static void set_most(struct rooms *rooms, unsigned int most)
{
	unsigned int node;

	rooms->most = most;
	for (node = 0; node < PB_NODES; node++)
		rooms->left[node] = most;
}

static unsigned long room_due;	/* jiffies from which on a hint's request may make some */

/* Is it worth trying again for pages of a node, after that many moved? Frames that are free somewhere come first. */
static bool make_room(struct rooms *rooms, const struct pb_move *move)
{
	unsigned int *left = &rooms->left[move->node];
	unsigned long came;

	if (move->moved && *left)
		*left = rooms->most;
	if (!*left || fatal_signal_pending(current))
		return false;
	if (!(rooms->gathered & BIT(move->node))) {
		rooms->gathered |= BIT(move->node);
		pb_gather();
		if (pb_pick(move->node, 0, true))
			return true;
	}
	if (pb_make_room(rooms->gfp, BIT(move->node), &came)) {
		*left -= min(*left, came ? MISSED : 1);
		if (*left)
			return true;
	}
	*left = 0;
	WRITE_ONCE(room_due, jiffies + ROOM_PAUSE);
	return false;
}

/*
 * One block, for a request. With the flag of reclaim set the kernel waits for no lock of a page: the request may
 * hold some, of pages that it reads ahead for example.
 */
static void vacate_for(const struct pb_request *r, unsigned long first, gfp_t gfp,
		       struct pb_move *move)
{
	unsigned int flags = memalloc_noreclaim_save();
	u8 marks[BLOCK];

	*move = (struct pb_move){ .mode = gfp & __GFP_FS ? MIGRATE_SYNC_LIGHT : MIGRATE_ASYNC };
	/* What leaves a node that the request may not use is of no use to it. */
	if (is_there(first) && pb_may_use_node(r, pfn_to_nid(first)) && mark(r->set, first, marks))
		vacate_block(r->set, first, gfp, marks, move);
	memalloc_noreclaim_restore(flags);
	cond_resched();
}

unsigned long pb_vacate_some(const struct pb_request *r, unsigned long want, gfp_t gfp)
{
	u64 number = r->set;
	unsigned long at, first, end, left, moved = 0;
	struct rooms rooms = { .gfp = gfp };
	struct pb_move move;
	bool hard;

	if (!vacates(number, &at, &hard))
		return 0;
	if (hard || time_after_eq(jiffies, READ_ONCE(room_due)))
		set_most(&rooms, gfp & __GFP_NORETRY ? 2 : IN_VAIN);
	range(&first, &end);
	if (at < first || at >= end)
		at = first;
	for (left = DIV_ROUND_UP(end - first, BLOCK); left && moved < want; left--) {
		do {
			vacate_for(r, at, gfp, &move);
			moved += move.moved;
		} while (move.homeless && moved < want && make_room(&rooms, &move));
		/* Else those who have no frame are tried again with the next request. */
		if (!move.homeless || moved < want)
			pb_set_event(number, PB_E_move_failed, move.failed);
		at += BLOCK;
		if (at >= end)
			at = first;
	}
	go_on_at(number, at);
	return moved;
}

/*
 * Coloring may be switched off between two blocks, not within one. So pages that are being read or
 * written are not waited for: a disk may be slow, and pb_switch is held.
 */
static int vacate_at(u64 number, unsigned long first, struct rooms *rooms)
{
	struct pb_move move;
	u8 marks[BLOCK];
	bool again;

	do {
		move = (struct pb_move){ .mode = MIGRATE_SYNC_LIGHT };
		if (fatal_signal_pending(current) || pb_switch_lock())
			return -EINTR;
		if (pb_switch_is_on() && mark(number, first, marks))
			vacate_block(number, first, GFP_KERNEL, marks, &move);
		/* Switching off does not wait for reclaim, and empties the pool until nobody is inside. */
		pb_enter();
		mutex_unlock(&pb_switch);
		again = move.homeless && make_room(rooms, &move);
		pb_leave();
		cond_resched();
	} while (again);
	pb_set_event(number, PB_E_move_failed, move.failed);
	return 0;
}

int pb_set_vacate(u64 number)
{
	struct rooms rooms = { .gfp = GFP_KERNEL };
	unsigned long pfn, end;
	bool hard;

	if (!vacates(number, &pfn, &hard))
		return 0;
	set_most(&rooms, IN_VAIN_AT_ONCE);
	pb_drain_lists();
	pb_protect_all(true);
	for (range(&pfn, &end); pfn < end; pfn += BLOCK)
		if (is_there(pfn) && vacate_at(number, pfn, &rooms))
			return -EINTR;
	return 0;
}
