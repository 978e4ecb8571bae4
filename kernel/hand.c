// SPDX-License-Identifier: GPL-2.0
/*
 * The hands: a few frames on each processor, dealt for one colour set.
 *
 * A process takes its frames out of its processor's hand, without the lock of the core. They are
 * dealt from two places:
 *
 *   - what the kernel has at hand for the processor. A process that frees memory and asks for
 *     more finds its own frames there, in its own colours. A process with colours gets them as they
 *     come: what it freed last comes first. Frames of a colour of which it has had far more than of
 *     its others are left out. A process without colours gets them in the order of its round: what
 *     lies beside owned frames is of few colours. (Where most are of no use, they are not looked at
 *     again for a while. What is of no use goes to the pool.)
 *   - the pool. If that does not have the colour whose turn it is, the request goes on without
 *     the hand (pool.c), and blocks come.
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
/* Fills from the pool before the kernel's frames are looked at again. */
#define REST 16

struct hand {
	spinlock_t lock;	/* before pb_lock */
	int node;		/* of its frames: the one nearest to the processor; less than 0: none */
	/* The set that it is dealt for, if the sets are still those of this version. */
	u64 set;
	u64 version;
	unsigned int rest;
	unsigned int deal;	/* frames at the next fill from the pool alone */
	unsigned int n;
	struct pb_given frames[HAND];
	struct pb_given spare[HAND];	/* while it is filled */
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
}

/* Makes the hand that of a set. */
static void take_over(struct hand *hand, u64 set)
{
	spin_lock(&pb_lock);
	put_all(hand);
	hand->version = pb_core_version(pb_core);
	spin_unlock(&pb_lock);
	hand->rest = 0;
	hand->deal = 1;
	hand->set = set;
}

/*
 * Fills the hand in the order of the round, out of the pool and, unless they rest, of frames that
 * the kernel has at hand. What is left of these is for the pool.
 */
static void fill(struct hand *hand)
{
	struct page *pages[HAND] = { NULL };
	unsigned int i, came = 0, used;
	size_t nr_spare;
	struct pb_marks marks;
	struct pb_seat *seat;
	struct pb_set *set;

	if (!hand->rest) {
		pb_note_marks(hand->node, &marks);
		came = pb_alloc_bulk(PB_BLOCK_GFP, pb_node_number(hand->node), HAND, pages);
		pb_restore_marks(hand->node, &marks);
	}
	spin_lock(&pb_lock);
	set = pb_set_find(hand->set);
	seat = set ? &set->seat : NULL;
	for (i = 0; i < came; i++) {
		pb_mark_free(pages[i]);
		hand->spare[i].pfn = page_to_pfn(pages[i]);
	}
	nr_spare = came;
	hand->n = pb_core_deal(pb_core, hand->node, seat, hand->spare, &nr_spare, hand->frames,
			       came ? HAND : hand->deal);
	for (i = 0; i < nr_spare; i++)
		put(hand->spare[i].pfn);
	spin_unlock(&pb_lock);
	/* They are taken from the end. */
	for (i = 0; i < hand->n / 2; i++)
		swap(hand->frames[i], hand->frames[hand->n - 1 - i]);
	hand->deal = min_t(unsigned int, 2 * hand->deal, HAND);
	used = came - nr_spare;
	if (hand->rest)
		hand->rest--;
	else if (2 * used < HAND)
		hand->rest = REST;
	if (!came)
		return;
	pb_count_many(PB_C_refill_frames, came);
	pb_count_many(PB_C_recycled, used);
	trace_piebald_refill(came);
	pb_pool_grown(hand->node);
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
		per_cpu(hands, cpu).deal = 1;
	}
}
