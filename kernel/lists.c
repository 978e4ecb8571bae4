// SPDX-License-Identifier: GPL-2.0
/*
 * Frames of a kernel that sets them aside by colour itself (CONFIG_PAGE_COLORING, kernel/patch).
 *
 * Such a kernel has what each processor has set aside in a list for each colour, and gives a page of the one that is
 * named. So there are no hands: what is dealt for a set are colours, in the order of its round. It also calls the
 * replacements of the functions that all frames come by, without ftrace.
 *
 * It tells a frame's colour by tables, which hold for a map of exclusive ors alone, as all are. A map with more colours
 * than it has lists for is served by the hands, as in other kernels.
 */
#include "piebald.h" /* first: it says how messages begin */

#ifdef CONFIG_PAGE_COLORING

#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "trace.h"

/* Colours that are dealt at a time. */
#define DEAL 64

struct deal {
	/* The set that it is for, if the sets are still those of this version. */
	u64 set;
	u64 version;
	unsigned int n;
	u32 colors[DEAL];	/* taken from the end */
};

static DEFINE_PER_CPU(struct deal, deals);
/* Has the kernel lists for this map? With pb_switch held, but for looks. */
static bool are_on;

bool pb_lists_are_on(void)
{
	return READ_ONCE(are_on);
}

static u32 color_of(u64 pfn)
{
	struct pb_given given = { .pfn = pfn };

	pb_core_may_have(pb_core, NULL, &given);
	return given.color;
}

/* Is a colour none of those that the bits before give together? */
static bool is_new(u32 *basis, u32 color)
{
	while (color) {
		unsigned int top = __fls(color);

		if (!basis[top]) {
			basis[top] = color;
			return true;
		}
		color ^= basis[top];
	}
	return false;
}

/* Fills what the map says in; false: there are more colours than lists. With pb_lock held. */
static bool describe(struct page_coloring *coloring)
{
	u32 basis[BITS_PER_BYTE] = { 0 };
	unsigned int table, bit;
	u64 entry;

	coloring->nr_colors = pb_core_colors(pb_core);
	if (coloring->nr_colors > PAGE_COLORS_MAX)
		return false;
	for (table = 0; table < PAGE_COLOR_TABLES; table++)
		for (bit = 0; bit < PAGE_COLOR_TABLE_BITS; bit++) {
			unsigned int place = table * PAGE_COLOR_TABLE_BITS + bit;
			u32 color = color_of(1ULL << place);

			for (entry = 0; entry < 1ULL << bit; entry++)
				coloring->of[table][entry | 1ULL << bit] =
					coloring->of[table][entry] ^ color;
			if (place < PB_REFILL_ORDER && is_new(basis, color))
				coloring->order = place + 1;
		}
	return true;
}

int pb_lists_on(const struct page_coloring_calls *calls)
{
	struct page_coloring *coloring = kvzalloc(sizeof(*coloring), GFP_KERNEL);
	int error = -ENOMEM;
	bool fits;

	if (!coloring)
		return error;
	spin_lock(&pb_lock);
	fits = describe(coloring);
	spin_unlock(&pb_lock);
	/* It calls the replacements all the same. */
	if (!fits)
		coloring->nr_colors = 0;
	WRITE_ONCE(are_on, fits);
	error = page_coloring_begin(coloring, calls);
	if (error)
		WRITE_ONCE(are_on, false);
	kvfree(coloring);
	return error;
}

void pb_lists_off(void)
{
	WRITE_ONCE(are_on, false);
	page_coloring_end();
}

static noinline void deal_colors(struct deal *deal, u64 number)
{
	static u32 others;
	struct pb_set *set;
	u32 *place;
	unsigned int i;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	place = set ? &set->turns : &others;
	deal->set = number;
	deal->version = pb_core_version(pb_core);
	deal->n = pb_core_colors_at(pb_core, set ? &set->seat : NULL, *place, deal->colors, DEAL);
	*place += deal->n;
	spin_unlock(&pb_lock);
	for (i = 0; i < deal->n / 2; i++)
		swap(deal->colors[i], deal->colors[deal->n - 1 - i]);
}

/* The kernel's number of the node that a request asks first, or less than 0. */
static int node_for(const struct pb_request *r)
{
	u8 nodes[PB_NODES];

	if (pb_one_node() || pb_may_use_node(r, r->nid))
		return pb_node_at(r->nid) < 0 ? -1 : r->nid;
	return pb_nodes_for(r, nodes) ? pb_node_number(nodes[0]) : -1;
}

/* A page of the colour whose turn it is for a set, or NULL; *color is that colour, or less than 0. */
static __always_inline struct page *take_turn(u64 set, gfp_t gfp, int nid, int *color)
{
	struct deal *deal = get_cpu_ptr(&deals);

	if (deal->set != set || deal->version != READ_ONCE(pb_version) || !deal->n)
		deal_colors(deal, set);
	*color = deal->n ? deal->colors[--deal->n] : -1;
	put_cpu_ptr(&deals);
	return *color < 0 ? NULL : page_coloring_alloc(gfp, nid, *color);
}

struct page *pb_lists_take(const struct pb_request *r)
{
	int nid = node_for(r), color;
	struct page *page;

	if (nid < 0)
		return NULL;
	page = take_turn(r->set, r->gfp, nid, &color);
	if (page)
		trace_piebald_frame(r->tgid, page_to_pfn(page), color, false);
	return page;
}

unsigned int pb_lists_collect(unsigned int node, u64 set, unsigned int most)
{
	unsigned int got = 0, looks = DEAL;
	int color;

	while (got < most && looks--) {
		struct page *page = take_turn(set, PB_BLOCK_GFP, pb_node_number(node), &color);

		got += page && pb_pool_add_block(page, 0);
	}
	return got;
}

struct page *pb_lists_take_color(gfp_t gfp, unsigned int node, unsigned int color)
{
	return page_coloring_alloc(gfp, pb_node_number(node), color);
}

#endif
