// SPDX-License-Identifier: GPL-2.0
/*
 * Blocks of the kernel's that have a certain colour, where most have not.
 *
 * A process that has used up a colour leaves the kernel small blocks: what lies between two of
 * its frames. Another process's colour is in one size of them. The kernel gives what it got last
 * first, so who asks for one block after the other and gives back what is of no use gets the same
 * ones again and again, with thousands that are of use behind them.
 *
 * So the kernel's lists of free blocks are looked through, under the lock of their memory zone, a few blocks at a
 * time. What is of use is isolated, as compaction does with free pages, and what is of no use goes to the end of the
 * list. The order within a list has no meaning for the kernel, whose own compaction changes it likewise. Of a block that
 * is in part of use only that part is taken: the kernel may clear what it gives out (init_on_alloc), and
 * clearing a frame puts it into the caches, where it takes the place of what the owner of its colour has there.
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
/* Blocks that are put in front at a time, and frames that are taken. */
#define WANTED 16
#define WANTED_FRAMES 256
/* Blocks of no use, of a size, that are looked at for a few frames. */
#define FEW 4

DEFINE_STATIC_CALL_NULL(drain_local, drain_local_pages);
/* Not declared for modules from 7.3 on. */
void drain_all_prototype(struct zone *zone);
DEFINE_STATIC_CALL_NULL(drain_all, drain_all_prototype);
/* Not declared for modules. */
int isolate_prototype(struct page *page, unsigned int order);
DEFINE_STATIC_CALL_NULL(isolate_free, isolate_prototype);
void put_back_prototype(struct page *page, unsigned int order, int kind);
DEFINE_STATIC_CALL_NULL(put_back_free, put_back_prototype);
/* Kernels without the last one, how the frame was searched for (0: as by default), do not look at it. */
void prepare_prototype(struct page *page, unsigned int order, gfp_t gfp, unsigned int how);
DEFINE_STATIC_CALL_NULL(prepare_free, prepare_prototype);

int pb_pick_set_up(void)
{
	void *local = pb_symbol("drain_local_pages"), *all = pb_symbol("drain_all_pages");
	void *take = pb_symbol("__isolate_free_page"), *give = pb_symbol("__putback_isolated_page");
	void *ready = pb_symbol("post_alloc_hook");

	if (!local || !all || !take || !give || !ready)
		return -EOPNOTSUPP;
	static_call_update(drain_local, local);
	static_call_update(drain_all, all);
	static_call_update(isolate_free, take);
	static_call_update(put_back_free, give);
	static_call_update(prepare_free, ready);
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

/* Parts of one colour that are looked at together, log2. */
#define TOGETHER 6

/* What is taken in one go: so many frames, unless so many blocks in a row of a size are of no use. */
struct basket {
	unsigned int wanted, misses;
	unsigned int frames;	/* that are in it */
	struct list_head blocks;
};

/* A free block, in parts of one colour. */
struct parts {
	struct page *page;
	unsigned int each, log;		/* order of a part, and how many there are, log2 */
	unsigned int window;		/* that are looked at together, log2 */
	u8 marks[1 << TOGETHER];	/* of those: 1 for each that is of use, else 0 */
};

/* Looks at the parts from this one on. With pb_lock held. */
static void look(struct parts *parts, const struct pb_seat *seat, unsigned int at)
{
	pb_core_mark_allowed(pb_core, seat, page_to_pfn(parts->page) + ((unsigned long)at << parts->each),
			     parts->each, parts->marks, 1U << parts->window);
}

/* The order of the largest block from a part on that is of use as a whole, or not at all, among those looked at. */
static unsigned int alike(const struct parts *parts, unsigned int at)
{
	const u8 *mark = parts->marks + at;
	unsigned int order = 0;

	while (order < parts->window && !(at & 1U << order) && !memchr_inv(mark + (1U << order), *mark, 1U << order))
		order++;
	return order;
}

/*
 * Is a block in front of a list of use? Its first parts are looked at. Of those that are as many as colours follow each
 * other, some are.
 */
static bool look_at(struct parts *parts, const struct pb_seat *seat, struct page *page, unsigned int order)
{
	unsigned int at;

	parts->page = page;
	parts->each = min(order, pb_whole_order);
	parts->log = order - parts->each;
	parts->window = min(parts->log, TOGETHER);
	for (at = 0; at < 1U << parts->log; at += 1U << parts->window) {
		look(parts, seat, at);
		if (memchr(parts->marks, 1, 1U << parts->window))
			break;
	}
	return at < 1U << parts->log;
}

/*
 * What of an isolated block is of use goes into a basket, in blocks that have their order as private, until that are
 * enough frames, and the others back to the kernel. With both locks held.
 */
static void part(const struct lists *lists, const struct pb_seat *seat, struct parts *parts, struct basket *basket)
{
	/* Isolating half a pageblock or more makes it one of movable memory. */
	int kind = parts->log + parts->each >= pageblock_order - 1 ? MIGRATE_MOVABLE : lists->kind;
	unsigned int at, size, inside = (1U << parts->window) - 1;

	for (at = 0; at < 1U << parts->log; at += 1U << size) {
		struct page *block = parts->page + ((unsigned long)at << parts->each);
		bool enough = basket->frames >= basket->wanted;

		if (!enough && !(at & inside) && parts->log > parts->window)
			look(parts, seat, at);
		if (enough)
			size = at ? __ffs(at) : parts->log;
		else
			size = alike(parts, at & inside);
		if (enough || !parts->marks[at & inside]) {
			static_call(put_back_free)(block, size + parts->each, kind);
			continue;
		}
		set_page_private(block, size + parts->each);
		list_add_tail(&block->lru, &basket->blocks);
		basket->frames += 1U << (size + parts->each);
	}
}

/* Takes what is of use of the blocks in front of a list; how many it looked at, 0: there is nothing to be had. */
static unsigned int grab(const struct lists *lists, unsigned int order, struct basket *basket)
{
	struct zone *zone = lists->zone;
	struct list_head *blocks = &zone->free_area[order].free_list[lists->kind];
	struct pb_seat *seat;
	struct pb_set *set;
	unsigned int split = order - min(order, READ_ONCE(pb_whole_order));	/* into as many parts, log2 */
	unsigned int looked = 0, misses = clamp(HELD_FRAMES >> split, 1, basket->misses);
	struct parts parts;
	unsigned long flags;

	spin_lock(&pb_lock);
	set = pb_set_find(lists->number);
	seat = set ? &set->seat : NULL;
	spin_lock_irqsave(&zone->lock, flags);
	while (misses && basket->frames < basket->wanted && !list_empty(blocks)) {
		struct page *page = list_first_entry(blocks, struct page, buddy_list);

		looked++;
		if (!look_at(&parts, seat, page, order)) {
			list_move_tail(&page->buddy_list, blocks);
			misses--;
		} else if (static_call(isolate_free)(page, order)) {
			part(lists, seat, &parts, basket);
		} else {
			/* It would be less than the zone keeps for emergencies. */
			looked = 0;
			break;
		}
	}
	spin_unlock_irqrestore(&zone->lock, flags);
	spin_unlock(&pb_lock);
	return looked;
}

/* Makes single pages of a block that was free. */
static void make_pages(struct page *page, unsigned int order, gfp_t gfp)
{
	static_call(prepare_free)(page, order, gfp, 0);
	/* In most kernels that is the caller's. */
	if (!page_ref_count(page))
		init_page_count(page);
	if (order)
		split_page(page, order);
}

/* Makes pages of what was isolated, and brings them into the pool; how many. */
static unsigned long bring(struct basket *basket, gfp_t gfp)
{
	struct page *page, *next;
	unsigned long came = 0;

	list_for_each_entry_safe(page, next, &basket->blocks, lru) {
		unsigned int order = page_private(page);

		list_del(&page->lru);
		make_pages(page, order, gfp);
		came += pb_pool_add_block(page, order);
	}
	return came;
}

static unsigned long pick_from(const struct lists *lists, bool thorough)
{
	struct basket basket = { WANTED_FRAMES, HELD, 0, LIST_HEAD_INIT(basket.blocks) };
	int order;

	for (order = MAX_PAGE_ORDER; order >= 0; order--) {
		/* Blocks of all kinds: at least as many as are looked at. */
		unsigned long left = READ_ONCE(lists->zone->free_area[order].nr_free);

		if (!thorough)
			left = min(left, PB_SIFTED);
		while (left && !basket.frames) {
			unsigned int looked = grab(lists, order, &basket);

			if (!looked)
				break;
			left -= min_t(unsigned long, left, looked);
			if (thorough)
				cond_resched();
		}
		if (basket.frames)
			return bring(&basket, lists->gfp);
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
	unsigned int i, last = zone_idx(zone) != ZONE_MOVABLE ? ARRAY_SIZE(kinds) : 1;
	unsigned long came = pick_from(&kinds[0], thorough);

	if (came)
		return came;
	/* This processor may have set aside what is of use. */
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

/* The same for what the processor has set aside of a zone: that lies on a list too, what was freed last in front. */
static void grab_aside(struct zone *zone, u64 number, struct basket *basket)
{
	struct per_cpu_pages *aside;
	struct page *page, *next;
	unsigned int looked = 0;
	struct pb_seat *seat;
	struct pb_set *set;

	/* A kernel for one processor takes these without a lock. */
	if (!IS_ENABLED(CONFIG_SMP))
		return;
	/* From here on it stays on its processor. */
	spin_lock(&pb_lock);
	aside = raw_cpu_ptr(zone->per_cpu_pageset);
	/* It may be in use, by who drains it. */
	if (!spin_trylock(&aside->lock)) {
		spin_unlock(&pb_lock);
		return;
	}
	set = pb_set_find(number);
	seat = set ? &set->seat : NULL;
	list_for_each_entry_safe(page, next, &aside->lists[MIGRATE_MOVABLE], pcp_list) {
		struct pb_given given = { .pfn = page_to_pfn(page) };

		if (basket->frames == basket->wanted || looked++ == 2 * basket->wanted)
			break;
		if (!pb_core_may_have(pb_core, seat, &given)) {
			list_move_tail(&page->pcp_list, &aside->lists[MIGRATE_MOVABLE]);
			continue;
		}
		list_del(&page->pcp_list);
		aside->count--;
		set_page_private(page, 0);
		list_add_tail(&page->lru, &basket->blocks);
		basket->frames++;
	}
	/* As the kernel's own requests do, which so are told from who only frees. */
	if (basket->frames)
		aside->free_count >>= 1;
	spin_unlock(&aside->lock);
	spin_unlock(&pb_lock);
}

unsigned int pb_pick_few(unsigned int node, u64 number, struct page **pages, unsigned int most)
{
	struct basket basket = { most, FEW, 0, LIST_HEAD_INIT(basket.blocks) };
	struct page *page, *next;
	unsigned int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(zones); i++) {
		const struct lists lists = {
			node, zone_of(node, zones[i].type), MIGRATE_MOVABLE, PB_BLOCK_GFP, number, -1,
		};
		unsigned int order;

		if (!populated_zone(lists.zone))
			continue;
		grab_aside(lists.zone, number, &basket);
		/* The smallest first, as the kernel has it: who takes few leaves large ones whole. */
		for (order = 0; order <= MAX_PAGE_ORDER && basket.frames < most; order++)
			if (!list_empty(&lists.zone->free_area[order].free_list[MIGRATE_MOVABLE]))
				grab(&lists, order, &basket);
	}
	list_for_each_entry_safe(page, next, &basket.blocks, lru) {
		unsigned int order = page_private(page);

		list_del(&page->lru);
		make_pages(page, order, PB_BLOCK_GFP);
		for (i = 0; i < 1U << order; i++) {
			if (n < most)
				pages[n++] = page + i;
			else
				pb_pool_add_block(page + i, 0);
		}
	}
	return n;
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
