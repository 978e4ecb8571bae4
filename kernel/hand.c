// SPDX-License-Identifier: GPL-2.0
/*
 * The hands: a few frames on each processor, dealt for one colour set.
 *
 * A process takes its frames out of its processor's hand, without the lock of the core. They are
 * dealt from two places:
 *
 *   - what the kernel has at hand for the processor. A process that frees memory and asks for
 *     more finds its own frames there, in its own colours, and gets them as they come: what it freed last comes first.
 *     Frames of a colour of which it has had far more than of its others wait.
 *   - the pool, in the order of the round. If that does not have the colour whose turn it is, the request
 *     goes on without the hand (serve.c), and blocks come.
 *
 * The kernel gives its smallest free blocks first, and those that lie beside frames of others are of few colours: where
 * every 16th frame is somebody else's, the single ones are all of one colour, the pairs of two others, and so on. So
 * where most of what comes is of no use, larger blocks are asked for, up to those that the kernel keeps at hand. Where
 * none of these is of use, the kernel is not asked again for a while. What the process may not have goes to the pool.
 *
 * A hand belongs to a colour set, or to everyone without. If another set's process asks, or the
 * sets have changed, its frames go to the pool first.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/topology.h>

#include "trace.h"

/* Frames in a hand at most. */
#define HAND 32
/* Orders of the blocks that the kernel keeps at hand. */
#define ORDERS (PAGE_ALLOC_COSTLY_ORDER + 1)
/* Frames that the kernel is asked for first, at least. */
#define ASK 4
/* Fills from the pool before the kernel's frames are looked at again, or from its blocks before its single ones are. */
#define REST 16

struct hand {
	spinlock_t lock;	/* before pb_lock */
	int node;		/* of its frames: the one nearest to the processor; less than 0: none */
	/* The set that it is dealt for, if the sets are still those of this version. */
	u64 set;
	u64 version;
	unsigned int order;	/* of the blocks that the kernel is asked for */
	unsigned int ask;	/* frames that it is asked for */
	unsigned int fills;	/* out of blocks of that order */
	unsigned int misses;	/* orders, one after another, that were of little use */
	unsigned int rest;	/* fills without the kernel */
	unsigned int deal;	/* frames at the next fill from the pool */
	unsigned int n;
	struct pb_given frames[HAND];
	/* Such as the set may have, which wait for other colours; while it is filled, more behind them. */
	unsigned int nr_spare;
	struct pb_given spare[2 * HAND];
};

static DEFINE_PER_CPU(struct hand, hands);

/* With pb_lock held. What the pool does not want goes to the kernel. */
static void put(u64 pfn)
{
	struct page *page = pfn_to_page(pfn);
	int node = pb_node_of(page);

	if (node < 0 || pb_core_add(pb_core, node, pfn, 0)) {
		pb_free(page);
		pb_count(given_back);
	}
}

/* With both locks held. */
static void put_all(struct hand *hand)
{
	pb_count_many(PB_C_hand_returned, hand->n);
	while (hand->n)
		put(hand->frames[--hand->n].pfn);
	while (hand->nr_spare)
		put(hand->spare[--hand->nr_spare].pfn);
}

static void ask_for(struct hand *hand, unsigned int order)
{
	hand->order = order;
	hand->ask = max(1U << order, ASK);
	hand->fills = 0;
}

/* Makes the hand that of a set. */
static void take_over(struct hand *hand, u64 set)
{
	spin_lock(&pb_lock);
	put_all(hand);
	hand->version = pb_core_version(pb_core);
	spin_unlock(&pb_lock);
	ask_for(hand, 0);
	hand->misses = 0;
	hand->rest = 0;
	hand->deal = 1;
	hand->set = set;
}

static void add_spare(struct hand *hand, struct page *page)
{
	pb_mark_free(page);
	hand->spare[hand->nr_spare++].pfn = page_to_pfn(page);
}

/* Takes frames that the kernel has at hand; how many. */
static unsigned int take_spare(struct hand *hand)
{
	unsigned int n, came = 0, nid = pb_node_number(hand->node);
	struct page *pages[HAND] = { NULL };
	struct pb_marks marks;

	pb_note_marks(hand->node, &marks);
	if (hand->order) {
		for (n = 0; n < hand->ask >> hand->order; n++) {
			pages[n] = pb_alloc(hand->node, PB_BLOCK_GFP, hand->order);
			if (!pages[n])
				break;
			split_page(pages[n], hand->order);
		}
	} else {
		n = pb_alloc_bulk(PB_BLOCK_GFP, nid, hand->ask, pages);
	}
	pb_restore_marks(hand->node, &marks);
	for (; came < n << hand->order; came++)
		add_spare(hand, pages[came >> hand->order] + (came & ((1U << hand->order) - 1)));
	return came;
}

/* What the kernel is asked for next: was what came of use? */
static void note_use(struct hand *hand, unsigned int used)
{
	if (2 * used < hand->ask) {
		ask_for(hand, (hand->order + 1) % ORDERS);
		if (++hand->misses < ORDERS)
			return;
		hand->rest = REST;
	} else if (hand->order && ++hand->fills == REST) {
		ask_for(hand, 0);
	} else {
		hand->ask = min_t(unsigned int, 2 * hand->ask, HAND);
	}
	hand->misses = 0;
}

/* Out of what the kernel has at hand. */
static void fill_at_hand(struct hand *hand)
{
	size_t fitting = hand->nr_spare;
	unsigned int came = take_spare(hand), left;
	struct pb_set *set;

	spin_lock(&pb_lock);
	/* The sets may have changed just now. */
	if (hand->version != pb_core_version(pb_core))
		fitting = 0;
	set = pb_set_find(hand->set);
	hand->n = pb_core_deal_spare(pb_core, set ? &set->seat : NULL, hand->spare, hand->nr_spare,
				     &fitting, hand->frames, HAND);
	left = hand->nr_spare - hand->n;
	hand->nr_spare = min_t(size_t, fitting, HAND);
	while (left > hand->nr_spare)
		put(hand->spare[--left].pfn);
	spin_unlock(&pb_lock);
	note_use(hand, hand->n);
	pb_count_many(PB_C_recycled, hand->n);
	if (!came)
		return;
	pb_count_many(PB_C_refill_frames, came);
	trace_piebald_refill(came);
	pb_pool_grown(hand->node);
}

static void fill_from_pool(struct hand *hand)
{
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(hand->set);
	hand->n = pb_core_deal_pool(pb_core, hand->node, set ? &set->seat : NULL, hand->frames, hand->deal);
	spin_unlock(&pb_lock);
	hand->deal = min_t(unsigned int, 2 * hand->deal, HAND);
	hand->rest--;
}

static void fill(struct hand *hand)
{
	unsigned int i;

	while (!hand->n && !hand->rest)
		fill_at_hand(hand);
	if (!hand->n)
		fill_from_pool(hand);
	/* They are taken from the end. */
	for (i = 0; i < hand->n / 2; i++)
		swap(hand->frames[i], hand->frames[hand->n - 1 - i]);
}

/* Is the hand's node the one that the request asks first? */
static bool is_of_node(const struct hand *hand, const struct pb_request *r)
{
	u8 nodes[PB_NODES];

	if (pb_one_node())
		return true;
	if (pb_node_at(r->nid) == hand->node && pb_may_use_node(r, r->nid))
		return true;
	/* There is no memory, or it is not allowed. */
	return pb_nodes_for(r, nodes) && nodes[0] == hand->node;
}

bool pb_hand_take(const struct pb_request *r, struct pb_given *given)
{
	bool found, filled = false;
	struct hand *hand;

	/* On whichever processor this runs on later, the lock is the hand's. */
	hand = raw_cpu_ptr(&hands);
	if (hand->node < 0 || !is_of_node(hand, r))
		return false;
	spin_lock(&hand->lock);
	if (hand->set != r->set || hand->version != READ_ONCE(pb_version))
		take_over(hand, r->set);
	if (!hand->n) {
		fill(hand);
		filled = true;
	}
	found = hand->n;
	if (found)
		*given = hand->frames[--hand->n];
	spin_unlock(&hand->lock);
	if (filled)
		pb_pool_trim();
	return found;
}

void pb_hand_put_all(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct hand *hand = &per_cpu(hands, cpu);

		spin_lock(&hand->lock);
		spin_lock(&pb_lock);
		put_all(hand);
		spin_unlock(&pb_lock);
		spin_unlock(&hand->lock);
	}
}

void pb_hand_set_up(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		spin_lock_init(&per_cpu(hands, cpu).lock);
		per_cpu(hands, cpu).node = pb_node_near(cpu_to_node(cpu));
		ask_for(&per_cpu(hands, cpu), 0);
		per_cpu(hands, cpu).deal = 1;
	}
}
