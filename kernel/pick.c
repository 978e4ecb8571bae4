// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of the kernel's that have a certain colour, where most have not.
 *
 * A process that has used up a colour leaves the kernel small blocks: what lies between two of
 * its frames. Another process's colour is in one size of them. The kernel gives what it got last
 * first, so who asks for one block after the other and gives back what is of no use gets the same
 * ones again and again, with thousands that are of use behind them.
 *
 * So the kernel's lists of free blocks are sifted: under the lock of their memory zone, a few at a
 * time, what is of no use goes to the end and what is of use stays in front, where the next request
 * takes it. The order within a list has no meaning for the kernel, whose own compaction changes
 * it likewise.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/static_call.h>

/* Blocks that are looked at while the lock is held, and frames: few blocks if they are large. */
#define HELD 128
#define HELD_FRAMES 2048
/* Blocks that are taken at a time. */
#define WANTED 16

DEFINE_STATIC_CALL_NULL(drain_local, drain_local_pages);
/* Not declared for modules from 7.3 on. */
void drain_all_prototype(struct zone *zone);
DEFINE_STATIC_CALL_NULL(drain_all, drain_all_prototype);

int pb_pick_set_up(void)
{
	void *local = pb_symbol("drain_local_pages"), *all = pb_symbol("drain_all_pages");

	if (!local || !all)
		return -EOPNOTSUPP;
	static_call_update(drain_local, local);
	static_call_update(drain_all, all);
	return 0;
}

/* Has the block a frame that the process may have, of this colour if one is named? With pb_lock held. */
static bool is_of_use(const struct pb_seat *seat, unsigned long pfn, unsigned int order, int color)
{
	unsigned long end = pfn + (1UL << order), step = 1UL << min(order, pb_whole_order);
	struct pb_given given;

	for (; pfn < end; pfn += step) {
		given.pfn = pfn;
		if (pb_core_may_have(pb_core, seat, &given) && (color < 0 || given.color == (u32)color))
			return true;
	}
	return false;
}

/* A zone's free blocks of a kind of memory, and how the kernel is asked for one of them. */
struct lists {
	unsigned int node;
	struct zone *zone;
	enum migratetype kind;
	gfp_t gfp;
	u64 number;	/* of the set for which blocks are sought */
	int color;	/* the one that they are to have, or -1 */
};

/* Looks at the blocks in front of a list; how many. Those of use are in front afterwards. */
static unsigned int sift(const struct lists *lists, unsigned int order, unsigned int *found)
{
	struct zone *zone = lists->zone;
	struct list_head *blocks = &zone->free_area[order].free_list[lists->kind];
	struct pb_seat *seat;
	struct pb_set *set;
	unsigned int frames = order - min(order, READ_ONCE(pb_whole_order));	/* that are looked at, log2 */
	unsigned int looked, most = clamp(HELD_FRAMES >> frames, 1, HELD);
	unsigned long flags;
	LIST_HEAD(useful);

	*found = 0;
	spin_lock(&pb_lock);
	set = pb_set_find(lists->number);
	seat = set ? &set->seat : NULL;
	spin_lock_irqsave(&zone->lock, flags);
	for (looked = 0; looked < most && *found < WANTED && !list_empty(blocks); looked++) {
		struct page *page = list_first_entry(blocks, struct page, buddy_list);

		if (is_of_use(seat, page_to_pfn(page), order, lists->color)) {
			list_move_tail(&page->buddy_list, &useful);
			++*found;
		} else {
			list_move_tail(&page->buddy_list, blocks);
		}
	}
	list_splice(&useful, blocks);
	spin_unlock_irqrestore(&zone->lock, flags);
	spin_unlock(&pb_lock);
	return looked;
}

/* Takes blocks that are in front; how many frames. */
static unsigned long take(unsigned int node, gfp_t gfp, unsigned int order, unsigned int blocks)
{
	unsigned long came = 0;
	struct pb_marks marks;

	pb_note_marks(node, &marks);
	while (blocks--) {
		struct page *page = pb_alloc(node, gfp, order);

		if (!page)
			break;
		if (order)
			split_page(page, order);
		came += pb_pool_add_block(page, order);
	}
	pb_restore_marks(node, &marks);
	return came;
}

static unsigned long pick_from(const struct lists *lists, bool thorough)
{
	int order;

	for (order = PB_REFILL_ORDER; order >= 0; order--) {
		/* Blocks of all kinds: at least as many as are looked at. */
		unsigned long left = READ_ONCE(lists->zone->free_area[order].nr_free);
		unsigned int looked, found = 0;

		if (!thorough)
			left = min(left, PB_SIFTED);
		for (; left && !found; left -= min_t(unsigned long, left, looked)) {
			looked = sift(lists, order, &found);
			if (!looked)
				break;
			if (thorough)
				cond_resched();
		}
		if (found)
			return take(lists->node, lists->gfp, order, found);
	}
	return 0;
}

/*
 * What lies in blocks of the kernel's own kinds of memory is looked at last: pages that were given to
 * a process there, when there was no other, are free again in a place that no movable request finds.
 */
static unsigned long pick_kinds(unsigned int node, struct zone *zone, gfp_t gfp, u64 number,
				bool thorough)
{
	const struct lists kinds[] = {
		{ node, zone, MIGRATE_MOVABLE, gfp | __GFP_MOVABLE, number, -1 },
		{ node, zone, MIGRATE_RECLAIMABLE, gfp | __GFP_RECLAIMABLE, number, -1 },
		{ node, zone, MIGRATE_UNMOVABLE, gfp, number, -1 },
	};
	unsigned int i, last = thorough && zone_idx(zone) != ZONE_MOVABLE ? ARRAY_SIZE(kinds) : 1;
	unsigned long came = 0;

	/* What lies about for this processor would come before what is in front of the lists. */
	preempt_disable();
	static_call(drain_local)(zone);
	preempt_enable();
	for (i = 0; i < last && !came; i++)
		came = pick_from(&kinds[i], thorough);
	return came;
}

/* The largest memory zone that a request may have comes first. */
static const struct {
	enum zone_type type;
	gfp_t gfp;
} zones[] = {
	{ ZONE_MOVABLE, __GFP_HIGHMEM },
	{ ZONE_NORMAL, 0 },
#ifdef CONFIG_ZONE_DMA32
	{ ZONE_DMA32, __GFP_DMA32 },
#endif
};

static struct zone *zone_of(unsigned int node, enum zone_type type)
{
	return &NODE_DATA(pb_node_number(node))->node_zones[type];
}

static DEFINE_MUTEX(gathering);
static unsigned long gathers;	/* that have ended */

/* Whoever waits until one that began after it asked has ended needs none of its own. */
void pb_gather(void)
{
	unsigned long asked = READ_ONCE(gathers);
	unsigned int node, i;

	if (mutex_lock_killable(&gathering))
		return;
	if (gathers - asked >= 2) {
		mutex_unlock(&gathering);
		return;
	}
	pb_hand_put_all();
	for (node = 0; node < pb_nr_nodes; node++)
		for (i = 0; i < ARRAY_SIZE(zones); i++) {
			struct zone *zone = zone_of(node, zones[i].type);

			if (populated_zone(zone))
				static_call(drain_all)(zone);
		}
	barrier();
	gathers++;
	mutex_unlock(&gathering);
	pb_count(gathered);
}

/* The flags of a request for a block that the kernel has at hand, but for those of a memory zone and a kind. */
#define GIVEN_GFP (PB_BLOCK_GFP & ~(GFP_ZONEMASK | __GFP_MOVABLE))

/*
 * Takes a larger block that is in front apart. The part that is sought is freed last: the kernel gives what it got last
 * first. (By itself it would give the first part, and of many such blocks the others would lie before all that are of use.)
 */
static bool break_block(const struct lists *lists, unsigned int order, unsigned int wanted)
{
	unsigned long pfn, end, useful = 0;
	struct pb_marks marks;
	struct page *page;

	pb_note_marks(lists->node, &marks);
	page = pb_alloc(lists->node, lists->gfp, order);
	pb_restore_marks(lists->node, &marks);
	if (!page)
		return false;
	split_page(page, order);
	end = page_to_pfn(page) + (1UL << order);
	for (pfn = page_to_pfn(page); pfn < end; pfn += 1UL << wanted) {
		if (!useful && pb_suits(lists->number, pfn, lists->color))
			useful = pfn;
		else
			pb_free_block(pfn, wanted);
	}
	if (useful)
		pb_free_block(useful, wanted);
	return useful;
}

static bool forward_in(const struct lists *lists, unsigned int wanted)
{
	unsigned int order;

	for (order = wanted; order <= MAX_PAGE_ORDER; order++) {
		unsigned long left = READ_ONCE(lists->zone->free_area[order].nr_free);
		unsigned int looked, found;

		for (left = min(left, PB_SIFTED); left; left -= min_t(unsigned long, left, looked)) {
			looked = sift(lists, order, &found);
			if (found)
				return order == wanted || break_block(lists, order, wanted);
			if (!looked)
				break;
		}
	}
	return false;
}

bool pb_pick_forward(unsigned int node, u64 number, unsigned int order, int color)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(zones); i++) {
		const struct lists lists = {
			node, zone_of(node, zones[i].type), MIGRATE_MOVABLE,
			GIVEN_GFP | __GFP_MOVABLE | zones[i].gfp, number, color,
		};

		if (!populated_zone(lists.zone))
			continue;
		preempt_disable();
		static_call(drain_local)(lists.zone);
		preempt_enable();
		if (forward_in(&lists, order))
			return true;
	}
	return false;
}

unsigned long pb_pick(unsigned int node, u64 number, bool thorough)
{
	unsigned long came = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(zones) && !came; i++) {
		struct zone *zone = zone_of(node, zones[i].type);

		if (populated_zone(zone))
			came = pick_kinds(node, zone, GIVEN_GFP | zones[i].gfp, number, thorough);
	}
	pb_count_many(PB_C_picked, came);
	return came;
}
