// SPDX-License-Identifier: GPL-2.0
/*
 * The pool: free frames between the kernel's buddy and the processes, by colour; one for each memory node.
 *
 * It takes blocks from the kernel when it has no frame that the asking process may have, hands
 * out single frames (serve.c), and forgets them: a process's frame goes back to the kernel's own
 * lists when it is freed. What the pool has beyond pb_pool_max goes back as well, and so does
 * everything that the kernel asks for under pressure (a shrinker).
 *
 * Frames in the pool break the kernel's blocks, which it cannot put together around them. So all of
 * them go back where a block that a group without colours asks for is not to be had, and each second
 * what is more than was asked for in it.
 *
 * Blocks are split into single pages when they come, so every page in the pool has a count of
 * one and can go to a process or to the kernel by itself. Each carries a mark, by which a survey of
 * the memory (survey.c) tells it from what the kernel uses.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/math64.h>
#include <linux/mmzone.h>
#include <linux/page-flags.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/workqueue.h>

#include "trace.h"

/* Colour sets at a time. */
#define NR_SLOTS 256
/* Single frames that are taken where the kernel has no blocks. */
#define SINGLES 64
/* The part of a pool that is too large that goes back at once. */
#define PART 16
/* Frames of the largest block that goes back so. */
#define LARGEST 64
/* How often what is more than was asked for meanwhile goes back. */
#define SURPLUS HZ
/* How often at most it does so for the sake of a block. */
#define WAY (HZ / 10)

DEFINE_SPINLOCK(pb_lock);
struct pb_core *pb_core;
unsigned long pb_pool_max;
unsigned int pb_whole_order;
u64 pb_version;

static struct pb_memory memory;
static struct pb_node_memory nodes[PB_NODES];
static void *lists;
static u64 *words;
static struct shrinker *shrinker;
static bool grown[PB_NODES];	/* blocks came since the pool was trimmed last */
static unsigned long way_made;	/* jiffies when all of it went back for a block */
static u64 given[PB_NODES];	/* frames that it had given when its surplus went back last */

static void give_surplus(struct work_struct *unused);
static DECLARE_DELAYED_WORK(surplus, give_surplus);

void pb_new_version(void)
{
	WRITE_ONCE(pb_version, pb_core_version(pb_core));
}

/* --- from and to the kernel ------------------------------------------------- */

static struct zone *zone_at(unsigned int node, unsigned int i)
{
	return &NODE_DATA(pb_node_number(node))->node_zones[i];
}

void pb_note_marks(unsigned int node, struct pb_marks *marks)
{
	unsigned int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		marks->boost[i] = READ_ONCE(zone_at(node, i)->watermark_boost);
}

void pb_restore_marks(unsigned int node, const struct pb_marks *marks)
{
	unsigned int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		struct zone *zone = zone_at(node, i);
		unsigned long flags;

		if (READ_ONCE(zone->watermark_boost) <= marks->boost[i])
			continue;
		spin_lock_irqsave(&zone->lock, flags);
		zone->watermark_boost = min(zone->watermark_boost, marks->boost[i]);
		spin_unlock_irqrestore(&zone->lock, flags);
		pb_count(marks_restored);
	}
}

void pb_mark_free(struct page *page)
{
	set_page_private(page, (unsigned long)&pb_core);
}

bool pb_is_marked(const struct page *page)
{
	return READ_ONCE(page->private) == (unsigned long)&pb_core;
}

/* A mark that stayed would be found when a block that the frame is in by then is freed (from 7.3 on). */
void pb_free(struct page *page)
{
	if (PageHWPoison(page))
		pb_count(failed_frames);
	set_page_private(page, 0);
	__free_page(page);
}

static void free_singles(u64 pfn, unsigned int order)
{
	u64 end = pfn + (1ULL << order);

	for (; pfn < end; pfn++)
		pb_free(pfn_to_page(pfn));
}

/*
 * Makes single pages a block again and frees it. As single pages they would come back at once
 * when a process asks for some: the kernel gives what was freed last.
 */
void pb_free_block(u64 pfn, unsigned int order)
{
	struct page *page = pfn_to_page(pfn);
	unsigned long i, n = 1UL << order;

	for (i = 0; i < n; i++)
		set_page_private(page + i, 0);
	/*
	 * A look at a page by its frame number may have it for a moment. One that has failed the kernel keeps for
	 * nobody only if it comes alone.
	 */
	for (i = 1; i < n; i++)
		if (PageHWPoison(page + i) || !page_ref_freeze(page + i, 1))
			break;
	if (i == n && !PageHWPoison(page) && !IS_ENABLED(CONFIG_MEM_ALLOC_PROFILING)) {
		__free_pages(page, order);
		return;
	}
	while (--i)
		page_ref_unfreeze(page + i, 1);
	free_singles(pfn, order);
}

struct page *pb_alloc(unsigned int node, gfp_t gfp, unsigned int order)
{
	return alloc_pages_node(pb_node_number(node), gfp, order);
}

void pb_pool_grown(unsigned int node)
{
	WRITE_ONCE(grown[node], true);
	if (!delayed_work_pending(&surplus))
		queue_delayed_work(system_long_wq, &surplus, SURPLUS);
}

unsigned long pb_pool_add_block(struct page *page, unsigned int order)
{
	int node = pb_node_of(page), error = -EINVAL;
	unsigned long i;

	for (i = 0; i < 1UL << order; i++)
		pb_mark_free(page + i);
	if (node >= 0) {
		spin_lock(&pb_lock);
		error = pb_core_add(pb_core, node, page_to_pfn(page), order);
		spin_unlock(&pb_lock);
	}
	if (error) {
		/* Memory that came after the module, beyond the end of its table. */
		free_singles(page_to_pfn(page), order);
		pb_count(refill_failed);
		return 0;
	}
	pb_pool_grown(node);
	trace_piebald_refill(1UL << order);
	pb_count_many(PB_C_refill_frames, 1UL << order);
	return 1UL << order;
}

bool pb_pool_refill_block(unsigned int node)
{
	unsigned int order = PB_REFILL_ORDER + 1;
	struct page *page = NULL;
	struct pb_marks marks;

	pb_note_marks(node, &marks);
	while (!page && --order)
		page = pb_alloc(node, PB_BLOCK_GFP, order);
	pb_restore_marks(node, &marks);
	if (!page)
		return false;
	split_page(page, order);
	return pb_pool_add_block(page, order);
}

unsigned int pb_pool_collect(unsigned int node, gfp_t gfp, unsigned int most)
{
	unsigned int got = 0;

	while (most--) {
		struct page *page = pb_alloc(node, gfp, 0);

		if (!page)
			break;
		got += pb_pool_add_block(page, 0);
	}
	return got;
}

unsigned int pb_pool_collect_freed(unsigned int node, u64 set, unsigned int most)
{
	return pb_lists_are_on() ? pb_lists_collect(node, set, most) :
		pb_pool_collect(node, PB_BLOCK_GFP, most);
}

bool pb_pool_refill_singles(unsigned int node)
{
	return pb_pool_collect(node, PB_SINGLE_GFP, SINGLES);
}

bool pb_pool_refill(unsigned int node, bool sparing)
{
	pb_count(refills);
	return pb_pool_refill_block(node) ||
	       (sparing ? pb_pool_collect(node, PB_BLOCK_GFP, SINGLES) : pb_pool_refill_singles(node));
}

/* Gives back single frames of the colour that the pool has most of; how many. */
static size_t give_singles(unsigned int node, u64 most)
{
	u64 pfns[32];
	size_t n, i;

	spin_lock(&pb_lock);
	n = pb_core_shed_most(pb_core, node, pfns, min_t(u64, ARRAY_SIZE(pfns), most));
	spin_unlock(&pb_lock);
	for (i = 0; i < n; i++)
		pb_free(pfn_to_page(pfns[i]));
	return n;
}

/* Most free frames that a node's pool keeps: its share. */
static u64 most_of(unsigned int node)
{
	u64 most = READ_ONCE(pb_pool_max);
	unsigned long present = node_present_pages(pb_node_number(node));

	return pb_nr_nodes == 1 ? most : mul_u64_u64_div_u64(most, present, max(totalram_pages(), present));
}

/*
 * Gives back what a node's pool has too much of, the colours that nobody asks for. A part of the pool
 * goes at a time, in large blocks: the kernel takes single pages from the smallest first.
 */
static void trim(unsigned int node)
{
	u64 most, least, largest = LARGEST;

	if (!READ_ONCE(grown[node]))
		return;
	WRITE_ONCE(grown[node], false);
	most = most_of(node);
	least = most - most / PART;
	/* Others may trim as well: what is too much is asked anew each time. */
	for (;;) {
		int order = -1;
		size_t n = 1;
		u64 free, pfn;

		spin_lock(&pb_lock);
		free = pb_core_free(pb_core, node);
		if (free > most)
			order = pb_core_shed_surplus(pb_core, node, min(free - least, largest), &pfn);
		spin_unlock(&pb_lock);
		if (free <= most)
			return;
		most = least;
		if (order >= 0) {
			pb_free_block(pfn, order);
			n <<= order;
		} else if (largest > 1) {
			largest /= 2;
			continue;
		} else {
			n = give_singles(node, free - least);
		}
		if (!n)
			return;
		trace_piebald_give_back(n);
		pb_count_many(PB_C_given_back, n);
	}
}

void pb_pool_trim(void)
{
	unsigned int node;

	for (node = 0; node < pb_nr_nodes; node++)
		trim(node);
}

/* Gives back at most so many frames of a node, in the largest blocks; how many. */
static unsigned long shed(unsigned int node, unsigned long frames)
{
	unsigned long done = 0;

	while (done < frames) {
		u64 pfn;
		int order;

		spin_lock(&pb_lock);
		order = pb_core_shed(pb_core, node, frames - done, &pfn);
		spin_unlock(&pb_lock);
		if (order < 0)
			break;
		pb_free_block(pfn, order);
		trace_piebald_give_back(1UL << order);
		done += 1UL << order;
		cond_resched();
	}
	return done;
}

static unsigned long shed_all(void)
{
	unsigned long done = 0;
	unsigned int node;

	for (node = 0; node < pb_nr_nodes; node++)
		done += shed(node, ULONG_MAX);
	return done;
}

void pb_pool_drain(void)
{
	pb_hand_put_all();
	pb_zone_shed(ULONG_MAX, false);
	pb_count_many(PB_C_given_back, shed_all());
}

static void give_surplus(struct work_struct *unused)
{
	u64 free[PB_NODES], asked[PB_NODES], all = 0, done = 0;
	unsigned int node;

	spin_lock(&pb_lock);
	for (node = 0; node < pb_nr_nodes; node++) {
		u64 now = pb_core_granted(pb_core, node);

		free[node] = pb_core_free(pb_core, node);
		asked[node] = now - given[node];
		given[node] = now;
		all += asked[node];
	}
	spin_unlock(&pb_lock);
	if (!all)
		pb_hand_put_all();
	for (node = 0; node < pb_nr_nodes; node++)
		if (!all || free[node] > asked[node])
			done += shed(node, all ? free[node] - asked[node] : ULONG_MAX);
	pb_count_many(PB_C_given_back, done);
	if (all)
		queue_delayed_work(system_long_wq, &surplus, SURPLUS);
}

bool pb_pool_make_way(void)
{
	unsigned long last = READ_ONCE(way_made), done;

	if (time_before(jiffies, last + WAY) || cmpxchg(&way_made, last, jiffies) != last)
		return false;
	pb_hand_put_all();
	done = shed_all();
	pb_count_many(PB_C_given_back, done);
	return done;
}

static unsigned long count_objects(struct shrinker *s, struct shrink_control *sc)
{
	int node = pb_node_at(sc->nid);
	u64 free;

	if (node < 0)
		return SHRINK_EMPTY;
	spin_lock(&pb_lock);
	free = pb_core_free(pb_core, node) + pb_zone_pages(pb_core);
	spin_unlock(&pb_lock);
	return free ?: SHRINK_EMPTY;
}

static unsigned long scan_objects(struct shrinker *s, struct shrink_control *sc)
{
	int node = pb_node_at(sc->nid);
	unsigned long done;

	if (node < 0)
		return SHRINK_STOP;
	pb_hand_put_all();
	done = shed(node, sc->nr_to_scan);
	pb_count_many(PB_C_reclaimed, done);
	/* The zone has the coldest pages; the kernel's lists come after it. */
	if (done < sc->nr_to_scan)
		done += pb_zone_shed(sc->nr_to_scan - done, true);
	/* Or the kernel would not even look for what came, and kill soon. */
	mm_account_reclaimed_pages(done);
	return done ?: SHRINK_STOP;
}

/* --- memory of the core ------------------------------------------------------ */

int pb_pool_set_map(const char *map, size_t len, char *why)
{
	struct pb_needs needs;
	unsigned int node;
	void *new_lists;
	u64 *new_words;
	int error;

	spin_lock(&pb_lock);
	error = pb_core_read_map(pb_core, map, len, &needs, why, PB_TEXT - 1);
	spin_unlock(&pb_lock);
	if (error)
		return error;
	new_lists = kvcalloc(pb_nr_nodes, needs.list_bytes, GFP_KERNEL);
	new_words = kvcalloc(pb_nr_nodes, needs.nr_words * sizeof(u64), GFP_KERNEL);
	if (!new_lists || !new_words) {
		kvfree(new_lists);
		kvfree(new_words);
		strscpy(why, "no memory for the lists", PB_TEXT);
		return -ENOMEM;
	}
	pb_sets_forget();
	spin_lock(&pb_lock);
	for (node = 0; node < pb_nr_nodes; node++) {
		memset(nodes[node].states, 0, nodes[node].frames);
		memset(nodes[node].pageblocks, 0, nodes[node].nr_pageblocks * sizeof(u32));
	}
	error = pb_core_set_map(pb_core, &needs, new_lists, new_words);
	swap(lists, new_lists);
	swap(words, new_words);
	WRITE_ONCE(pb_whole_order, pb_core_whole_order(pb_core));
	pb_serve_afresh();
	pb_new_version();
	spin_unlock(&pb_lock);
	kvfree(new_lists);
	kvfree(new_words);
	return error;
}

static void free_memory(void)
{
	unsigned int node;

	kvfree(lists);
	kvfree(words);
	for (node = 0; node < pb_nr_nodes; node++) {
		kvfree(nodes[node].states);
		kvfree(nodes[node].links);
		kvfree(nodes[node].pageblocks);
	}
	kvfree(memory.pools);
	kvfree(memory.slots);
	kvfree(pb_core);
}

/* For the frames of a node; false: there is no memory. */
static bool lend(struct pb_node_memory *node, int nid)
{
	node->first = round_down(node_start_pfn(nid), 1024);
	node->frames = round_up(node_end_pfn(nid), 1024) - node->first;
	node->nr_pageblocks = DIV_ROUND_UP_ULL(node->frames, 512);
	node->states = kvzalloc_node(node->frames, GFP_KERNEL, nid);
	node->links = kvzalloc_node(array_size(node->frames, 8), GFP_KERNEL, nid);
	node->pageblocks = kvcalloc(node->nr_pageblocks, sizeof(u32), GFP_KERNEL);
	return node->states && node->links && node->pageblocks;
}

int pb_pool_set_up(void)
{
	bool lent = true;
	unsigned int node;

	for (node = 0; node < pb_nr_nodes; node++)
		lent &= lend(&nodes[node], pb_node_number(node));
	memory.nodes = nodes;
	memory.nr_nodes = pb_nr_nodes;
	memory.nr_slots = NR_SLOTS;
	memory.pools = kvcalloc(pb_nr_nodes, pb_node_bytes(), GFP_KERNEL);
	memory.slots = kvcalloc(NR_SLOTS, pb_slot_bytes(), GFP_KERNEL);
	pb_core = kvzalloc(pb_core_bytes(), GFP_KERNEL);
	shrinker = shrinker_alloc(SHRINKER_NUMA_AWARE, KBUILD_MODNAME);
	if (!lent || !memory.pools || !memory.slots || !pb_core || !shrinker) {
		if (shrinker)
			shrinker_free(shrinker);
		free_memory();
		return -ENOMEM;
	}
	pb_core_set_up(pb_core, &memory);
	pb_hand_set_up();
	pb_zone_set_up();
	pb_pool_max = totalram_pages() / 8;
	way_made = jiffies - WAY;
	shrinker->count_objects = count_objects;
	shrinker->scan_objects = scan_objects;
	shrinker_register(shrinker);
	return 0;
}

void pb_pool_end(void)
{
	shrinker_free(shrinker);
	cancel_delayed_work_sync(&surplus);
	pb_pool_drain();
	pb_zone_free();
	free_memory();
}
