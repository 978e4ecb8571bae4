// SPDX-License-Identifier: GPL-2.0
/*
 * Cold pages for SRM-buffer's zone: those at the cold end of the kernel's lists of file pages,
 * which it would reclaim next. They stay in the page cache and can be used; they are only off
 * the lists, with a reference of ours. Who uses one leaves a mark on it, which is seen when its
 * frame is wanted: then it goes back to the lists, as one that is in use.
 *
 * Taken are single clean pages that nobody maps or locks. Pages of groups with a limit or a
 * guarantee (memory.max, high, low, min) stay where they are, and go back there if the group gets one
 * later. Which pages are cold, the kernel's lists say: the tail of the inactive list, or of the older
 * generations.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/memcontrol.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/static_call.h>
#include <linux/swap.h>

/* Pages of a list that are looked at with its lock held. */
#define LOOK 256
/* A group with that many pages on a list gives one at a time. */
#define SHARE 64
/* Rounds through the groups that one pull makes until it has a page. */
#define ROUNDS 8

bool isolate_prototype(struct folio *folio);
DEFINE_STATIC_CALL_NULL(cold_isolate, isolate_prototype);
void put_back_prototype(struct folio *folio);
DEFINE_STATIC_CALL_NULL(cold_put_back, put_back_prototype);
long evict_prototype(struct address_space *mapping, struct folio *folio);
DEFINE_STATIC_CALL_NULL(evict, evict_prototype);
unsigned long reclaim_prototype(struct list_head *folios);
DEFINE_STATIC_CALL_NULL(reclaim_list, reclaim_prototype);
DEFINE_STATIC_CALL_NULL(next_group, mem_cgroup_iter);
DEFINE_STATIC_CALL_NULL(end_groups, mem_cgroup_iter_break);

int pb_cold_set_up(void)
{
	void *isolate = pb_symbol("folio_isolate_lru"), *put_back = pb_symbol("folio_putback_lru");
	void *evict = pb_symbol("mapping_evict_folio"), *next = pb_symbol("mem_cgroup_iter");
	void *end = pb_symbol("mem_cgroup_iter_break"), *reclaim = pb_symbol("reclaim_pages");

	if (!isolate || !put_back || !evict || !next || !end || !reclaim)
		return -EOPNOTSUPP;
	static_call_update(cold_isolate, isolate);
	static_call_update(cold_put_back, put_back);
	static_call_update(evict, evict);
	static_call_update(reclaim_list, reclaim);
	static_call_update(next_group, next);
	static_call_update(end_groups, end);
	return 0;
}

/* --- from the lists ----------------------------------------------------------- */

/* What a pull has, and how much it may have. */
struct pull {
	struct folio **folios;
	unsigned int n, most;
};

/*
 * Do limits or guarantees bind the pages of a group? The group's own reclaim must find them, or
 * nobody's may take them. A guarantee holds up to its size alone, but pages in the zone count as the
 * group's until they are ended, so what is above it cannot be told here.
 */
static bool is_bound(struct mem_cgroup *group)
{
	for (; group; group = parent_mem_cgroup(group))
		if (READ_ONCE(group->memory.max) != PAGE_COUNTER_MAX ||
		    READ_ONCE(group->memory.high) != PAGE_COUNTER_MAX ||
		    READ_ONCE(group->memory.min) || READ_ONCE(group->memory.low))
			return true;
	return false;
}

/* A set's own reclaim must find its pages as well. */
static bool has_colors(struct mem_cgroup *group)
{
	u64 set;

	rcu_read_lock();
	set = pb_set_of_group(group);
	rcu_read_unlock();
	return set;
}

static bool is_cold(struct folio *folio)
{
	return !folio_test_large(folio) && folio_is_file_lru(folio) &&
	       !folio_test_unevictable(folio) && !folio_test_locked(folio) &&
	       !folio_test_dirty(folio) && !folio_test_writeback(folio) && !folio_mapped(folio);
}

/* Takes references of pages at the tail of a list, whose lock is held. */
static void look_at(struct list_head *list, struct pull *pull)
{
	unsigned int looks = LOOK;
	struct folio *folio;

	list_for_each_entry_reverse(folio, list, lru) {
		if (pull->n == pull->most || !looks--)
			return;
		if (is_cold(folio) && folio_try_get(folio))
			pull->folios[pull->n++] = folio;
	}
}

/* The lists of the generations, oldest first, but for the two youngest: they are in use. */
static void look_at_generations(struct lru_gen_folio *lists, struct pull *pull)
{
	unsigned long seq = READ_ONCE(lists->min_seq[LRU_GEN_FILE]);
	unsigned long max = READ_ONCE(lists->max_seq);
	int zone;

	do {
		for (zone = MAX_NR_ZONES - 1; zone >= 0; zone--)
			look_at(&lists->folios[lru_gen_from_seq(seq)][LRU_GEN_FILE][zone], pull);
		seq++;
	} while (seq + MIN_NR_GENS <= max);
}

/* Without groups, all pages of the node. */
static struct lruvec *lists_of(struct mem_cgroup *group)
{
	int node = pb_node_number(0);

	return group ? &group->nodeinfo[node]->lruvec : &NODE_DATA(node)->__lruvec;
}

static unsigned long length(struct lruvec *lruvec, struct mem_cgroup *group)
{
	unsigned long pages = 0;
	int zone;

	if (!group)
		return global_node_page_state(NR_INACTIVE_FILE);
	for (zone = 0; zone < MAX_NR_ZONES; zone++)
		pages += mem_cgroup_get_zone_lru_size(lruvec, LRU_INACTIVE_FILE, zone);
	return pages;
}

/*
 * Generations are lists by age alone: a page that was read more than once is told by a count on
 * it, and is put off once when its turn to be reclaimed comes. Of the two lists only pages that
 * were read once at most are on the inactive one, and go when their turn comes. A mark that comes
 * from now on is of a use in the zone.
 */
static bool has_another_chance(struct folio *folio, bool by_generation)
{
	bool again;

	if (!by_generation) {
		folio_clear_referenced(folio);
		return false;
	}
	again = pb_uses_beyond_first(folio);
	set_mask_bits(pb_flags(folio), LRU_REFS_MASK | LRU_REFS_FLAGS, 0);
	if (again) {
		static_call(cold_put_back)(folio);
		barrier();
		pb_count(cold_again);
	}
	return again;
}

/* The cold end of a group's lists. */
static void pull_from(struct mem_cgroup *group, struct pull *pull, unsigned int len)
{
	struct lruvec *lruvec = lists_of(group);
	unsigned int from = pull->n, to = from, i;
	bool by_generation;

	pull->most = min_t(unsigned long, len, from + length(lruvec, group) / SHARE + 1);
	spin_lock_irq(&lruvec->lru_lock);
	by_generation = lruvec->lrugen.enabled;
	if (by_generation)
		look_at_generations(&lruvec->lrugen, pull);
	else
		look_at(&lruvec->lists[LRU_INACTIVE_FILE], pull);
	spin_unlock_irq(&lruvec->lru_lock);
	for (i = from; i < pull->n; i++) {
		struct folio *folio = pull->folios[i];

		/* That takes a reference too; one of them goes. */
		if (static_call(cold_isolate)(folio)) {
			/* Set for pages of a generation that is young now. */
			folio_clear_active(folio);
			if (!has_another_chance(folio, by_generation))
				pull->folios[to++] = folio;
		}
		folio_put(folio);
	}
	pull->n = to;
}

/* Goes on with the group behind that of the last time, once round at most. */
static void pull_from_groups(struct pull *pull, unsigned int len)
{
	struct mem_cgroup_reclaim_cookie cookie = { .pgdat = NODE_DATA(pb_node_number(0)) };
	struct mem_cgroup *group = NULL;

	while ((group = static_call(next_group)(NULL, group, &cookie))) {
		if (!is_bound(group) && !has_colors(group))
			pull_from(group, pull, len);
		if (pull->n < len)
			continue;
		static_call(end_groups)(NULL, group);
		return;
	}
}

unsigned int pb_cold_pull(struct folio **folios, unsigned int len)
{
	struct pull pull = { .folios = folios };
	/* Few groups may be left of a round. */
	unsigned int rounds = ROUNDS;

	if (mem_cgroup_disabled()) {
		pull_from(NULL, &pull, len);
		return pull.n;
	}
	do
		pull_from_groups(&pull, len);
	while (!pull.n && rounds--);
	return pull.n;
}

/* --- and away ----------------------------------------------------------------- */

void pb_cold_return(struct folio *folio)
{
	if (folio_test_referenced(folio))
		folio_set_active(folio);
	static_call(cold_put_back)(folio);
	barrier();
	pb_count(cold_returned);
}

/*
 * By the kernel's own reclaim, which notes when the page went and so sees whether it comes back
 * soon; but for pages of which a file system holds something: it might wait there.
 */
static bool reclaim(struct folio *folio)
{
	struct address_space *mapping;
	LIST_HEAD(list);
	bool gone;

	if (!folio_has_private(folio)) {
		list_add(&folio->lru, &list);
		gone = static_call(reclaim_list)(&list);
		barrier();
		if (!gone)
			pb_count(cold_returned);
		return gone;
	}
	gone = false;
	if (folio_trylock(folio)) {
		mapping = folio_mapping(folio);
		gone = mapping && static_call(evict)(mapping, folio);
		folio_unlock(folio);
	}
	if (!gone) {
		pb_cold_return(folio);
		return false;
	}
	folio_clear_active(folio);
	folio_put(folio);
	return true;
}

void pb_cold_push_out(struct folio *folio)
{
	LIST_HEAD(list);
	bool isolated;

	pb_drain_lists();
	isolated = static_call(cold_isolate)(folio);
	/* That takes a reference too; ours would keep the page. */
	folio_put(folio);
	if (!isolated)
		return;
	list_add(&folio->lru, &list);
	static_call(reclaim_list)(&list);
	barrier();
}

/* Has the page's group got a limit, a guarantee or a set since the page came? */
static bool has_become_bound(struct folio *folio)
{
	bool bound;

	rcu_read_lock();
	bound = is_bound(folio_memcg(folio)) || pb_set_of_group(folio_memcg(folio));
	rcu_read_unlock();
	return bound;
}

/* Waits for nothing: it may be called in the middle of the work of a file system. */
bool pb_cold_evict(struct folio *folio)
{
	/* Whoever had it may have let it go: a file that was cut or deleted. */
	if (folio_ref_count(folio) == 1 && !folio_mapping(folio)) {
		folio_clear_active(folio);
		folio_put(folio);
		return true;
	}
	if (folio_test_referenced(folio) || folio_mapped(folio))
		pb_count(cold_used);
	else if (!folio_test_dirty(folio) && !folio_test_writeback(folio) &&
		 !has_become_bound(folio))
		return reclaim(folio);
	pb_cold_return(folio);
	return false;
}
