// SPDX-License-Identifier: GPL-2.0
/*
 * The pool: free frames between the kernel's buddy and the processes, by colour.
 *
 * It takes blocks from the kernel when it has no frame that the asking process may have, hands
 * out single frames, and forgets them: a process's frame goes back to the kernel's own lists
 * when it is freed. What the pool has beyond pb_pool_max goes back as well, and so does
 * everything that the kernel asks for under pressure (a shrinker).
 *
 * Blocks are split into single pages when they come, so every page in the pool has a count of
 * one and can go to a process or to the kernel by itself.
 *
 * Nothing here sleeps, but for hard colours that are used up, which wait for reclaim. A pool
 * that takes the whole memory for a colour would never end, so each request tries a few blocks,
 * looks at some more (pick.c) and then does without; the colours are not searched for again for a
 * while.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/sched.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/swap.h>

#include "trace.h"

/* Colour sets at a time. */
#define NR_SLOTS 256
/* Blocks that one request takes before it does without. */
#define TRIES 8
/* Single frames that are taken where the kernel has no blocks. */
#define SINGLES 64
/* Times that blocks are picked for one request: others may be faster. */
#define PICKS 4
/* Rounds of reclaim for hard colours. */
#define ROUNDS 16
/* The part of a pool that is too large that goes back at once. */
#define PART 16
/* Frames of the largest block that goes back so. */
#define LARGEST 64
/* How long colours that were not found are not searched for. */
#define PAUSE (HZ / 10)

DEFINE_SPINLOCK(pb_lock);
struct pb_core *pb_core;
unsigned long pb_pool_max;
u64 pb_version;

static struct pb_memory memory;
static void *lists;
static u64 *words;
static struct shrinker *shrinker;
static struct pb_pause others;	/* of all processes without colours */
static bool grown;		/* blocks came since the pool was trimmed last */

void pb_new_version(void)
{
	WRITE_ONCE(pb_version, pb_core_version(pb_core));
}

/* --- from and to the kernel ------------------------------------------------- */

static struct zone *zone_at(unsigned int i)
{
	return &NODE_DATA(first_online_node)->node_zones[i];
}

void pb_note_marks(struct pb_marks *marks)
{
	unsigned int i;

	for (i = 0; i < MAX_NR_ZONES; i++)
		marks->boost[i] = READ_ONCE(zone_at(i)->watermark_boost);
}

void pb_restore_marks(const struct pb_marks *marks)
{
	unsigned int i;

	for (i = 0; i < MAX_NR_ZONES; i++) {
		struct zone *zone = zone_at(i);
		unsigned long flags;

		if (READ_ONCE(zone->watermark_boost) <= marks->boost[i])
			continue;
		spin_lock_irqsave(&zone->lock, flags);
		zone->watermark_boost = min(zone->watermark_boost, marks->boost[i]);
		spin_unlock_irqrestore(&zone->lock, flags);
		pb_count(marks_restored);
	}
}

static void free_singles(u64 pfn, unsigned int order)
{
	u64 end = pfn + (1ULL << order);

	for (; pfn < end; pfn++)
		__free_page(pfn_to_page(pfn));
}

/*
 * Makes single pages a block again and frees it. As single pages they would come back at once
 * when a process asks for some: the kernel gives what was freed last.
 */
static void free_block(u64 pfn, unsigned int order)
{
	struct page *page = pfn_to_page(pfn);
	unsigned long i, n = 1UL << order;

	/* A look at a page by its frame number may have it for a moment. */
	for (i = 1; i < n; i++)
		if (!page_ref_freeze(page + i, 1))
			break;
	if (i == n && !IS_ENABLED(CONFIG_MEM_ALLOC_PROFILING)) {
		__free_pages(page, order);
		return;
	}
	while (--i)
		page_ref_unfreeze(page + i, 1);
	free_singles(pfn, order);
}

void pb_pool_grown(void)
{
	WRITE_ONCE(grown, true);
}

unsigned long pb_pool_add_block(struct page *page, unsigned int order)
{
	int error;

	spin_lock(&pb_lock);
	error = pb_core_add(pb_core, page_to_pfn(page), order);
	spin_unlock(&pb_lock);
	if (error) {
		/* Memory that came after the module, beyond the end of its table. */
		free_singles(page_to_pfn(page), order);
		pb_count(refill_failed);
		return 0;
	}
	WRITE_ONCE(grown, true);
	trace_piebald_refill(1UL << order);
	pb_count_many(PB_C_refill_frames, 1UL << order);
	return 1UL << order;
}

static bool add_singles(gfp_t gfp, unsigned int most)
{
	unsigned int got = 0;

	while (most--) {
		struct page *page = alloc_pages(gfp, 0);

		if (!page)
			break;
		got += pb_pool_add_block(page, 0);
	}
	return got;
}

bool pb_pool_refill_block(void)
{
	unsigned int order = PB_REFILL_ORDER + 1;
	struct page *page = NULL;
	struct pb_marks marks;

	pb_note_marks(&marks);
	while (!page && --order)
		page = alloc_pages(PB_BLOCK_GFP, order);
	pb_restore_marks(&marks);
	if (!page)
		return false;
	split_page(page, order);
	return pb_pool_add_block(page, order);
}

bool pb_pool_refill_singles(void)
{
	return add_singles(PB_SINGLE_GFP, SINGLES);
}

/* Takes frames from the kernel; false if it has none to spare. */
static bool refill(void)
{
	pb_count(refills);
	return pb_pool_refill_block() || pb_pool_refill_singles();
}

/* Gives back single frames of the colour that the pool has most of; how many. */
static size_t give_singles(u64 most)
{
	u64 pfns[32];
	size_t n, i;

	spin_lock(&pb_lock);
	n = pb_core_shed_most(pb_core, pfns, min_t(u64, ARRAY_SIZE(pfns), most));
	spin_unlock(&pb_lock);
	for (i = 0; i < n; i++)
		__free_page(pfn_to_page(pfns[i]));
	return n;
}

/*
 * Gives back what the pool has too much of, the colours that nobody asks for. A part of the pool
 * goes at a time, in large blocks: the kernel takes single pages from the smallest first.
 */
void pb_pool_trim(void)
{
	u64 most = READ_ONCE(pb_pool_max), least = most - most / PART, largest = LARGEST;

	if (!READ_ONCE(grown))
		return;
	WRITE_ONCE(grown, false);
	/* Others may trim as well: what is too much is asked anew each time. */
	for (;;) {
		int order = -1;
		size_t n = 1;
		u64 free, pfn;

		spin_lock(&pb_lock);
		free = pb_core_free(pb_core);
		if (free > most)
			order = pb_core_shed_surplus(pb_core, min(free - least, largest), &pfn);
		spin_unlock(&pb_lock);
		if (free <= most)
			return;
		most = least;
		if (order >= 0) {
			free_block(pfn, order);
			n <<= order;
		} else if (largest > 1) {
			largest /= 2;
			continue;
		} else {
			n = give_singles(free - least);
		}
		if (!n)
			return;
		trace_piebald_give_back(n);
		pb_count_many(PB_C_given_back, n);
	}
}

/* Gives back at most so many frames, in the largest blocks; how many. */
static unsigned long shed(unsigned long frames)
{
	unsigned long done = 0;

	while (done < frames) {
		u64 pfn;
		int order;

		spin_lock(&pb_lock);
		order = pb_core_shed(pb_core, frames - done, &pfn);
		spin_unlock(&pb_lock);
		if (order < 0)
			break;
		free_block(pfn, order);
		trace_piebald_give_back(1UL << order);
		done += 1UL << order;
		cond_resched();
	}
	return done;
}

void pb_pool_drain(void)
{
	pb_hand_put_all();
	pb_zone_shed(ULONG_MAX, false);
	pb_count_many(PB_C_given_back, shed(ULONG_MAX));
}

static unsigned long count_objects(struct shrinker *s, struct shrink_control *sc)
{
	u64 free;

	spin_lock(&pb_lock);
	free = pb_core_free(pb_core) + pb_zone_pages(pb_core);
	spin_unlock(&pb_lock);
	return free ?: SHRINK_EMPTY;
}

static unsigned long scan_objects(struct shrinker *s, struct shrink_control *sc)
{
	unsigned long done;

	pb_hand_put_all();
	done = shed(sc->nr_to_scan);
	pb_count_many(PB_C_reclaimed, done);
	/* The zone has the coldest pages; the kernel's lists come after it. */
	if (done < sc->nr_to_scan)
		done += pb_zone_shed(sc->nr_to_scan - done, true);
	/* Or the kernel would not even look for what came, and kill soon. */
	mm_account_reclaimed_pages(done);
	return done ?: SHRINK_STOP;
}

/* --- for processes ---------------------------------------------------------- */

/* What looks into the pool found, for one request. */
struct look {
	pid_t tgid;
	struct pb_given given;
	bool found;
	bool hard;			/* the process's colours bind */
	bool turn_pauses, own_pauses;	/* no search for these just now */
};

static bool pauses(unsigned long until)
{
	return until && time_before(jiffies, until);
}

/* The entry of a process is looked up anew each time: its colours may be taken away meanwhile. */
static bool look(struct look *l, enum pb_reach reach)
{
	struct pb_task *task;
	struct pb_pause *pause;

	spin_lock(&pb_lock);
	task = pb_task_of(l->tgid);
	pause = task ? &task->pause : &others;
	l->hard = task && task->hard;
	l->turn_pauses = pauses(pause->turn);
	l->own_pauses = pauses(pause->own);
	l->found = !pb_core_take(pb_core, task ? &task->seat : NULL, reach, &l->given);
	spin_unlock(&pb_lock);
	return l->found;
}

static void pause_search(pid_t tgid, bool own)
{
	struct pb_task *task;
	struct pb_pause *pause;
	unsigned long until = (jiffies + PAUSE) | 1;

	spin_lock(&pb_lock);
	task = pb_task_of(tgid);
	pause = task ? &task->pause : &others;
	pause->turn = until;
	if (own)
		pause->own = until;
	spin_unlock(&pb_lock);
}

/*
 * The colour whose turn it is. If the pool has none, fresh blocks come first: what is in the
 * pool is what others had no use for, and whoever lived on that would get few colours.
 */
static bool take_turn(struct look *l)
{
	if (look(l, PB_TURN))
		return true;
	if (l->turn_pauses)
		return false;
	if (refill() && look(l, PB_TURN))
		return true;
	pause_search(l->tgid, false);
	return false;
}

/* Is a frame of another colour no use, as of the last look? */
static bool binds(const struct look *l, const struct pb_request *r)
{
	return l->hard || r->own_only;
}

/* Searches what the kernel gives next. */
static void search(struct look *l)
{
	unsigned int tries;

	for (tries = 0; tries < TRIES && refill(); tries++)
		if (look(l, PB_OWN))
			return;
}

/*
 * Searches what the kernel has at hand for blocks that have the colours. Who cannot do without has
 * all of them looked at.
 */
static void pick(struct look *l, const struct pb_request *r)
{
	bool thorough = binds(l, r) && gfpflags_allow_blocking(r->gfp);
	unsigned int tries;

	for (tries = 0; tries < PICKS && pb_pick(l->tgid, thorough); tries++)
		if (look(l, PB_OWN))
			return;
}

/* Searches what the kernel can make free, short of killing somebody. */
static void reclaim(struct look *l, gfp_t gfp)
{
	unsigned int rounds;

	gfp &= ~(__GFP_ZERO | __GFP_NOFAIL);
	for (rounds = 0; rounds < ROUNDS; rounds++) {
		if (!add_singles(gfp | __GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC, SINGLES))
			return;
		if (look(l, PB_OWN))
			return;
	}
}

struct page *pb_prepared(u64 pfn, gfp_t gfp)
{
	struct page *page = pfn_to_page(pfn);

	set_page_private(page, 0);
	page->mapping = NULL;
	/* With init_on_alloc the kernel cleared it when the pool got it. */
	if (gfp & __GFP_ZERO && !want_init_on_alloc(0))
		clear_highpage(page);
	return page;
}

/* One of the process's own colours, whichever. */
static bool take_own(struct look *l, const struct pb_request *r)
{
	if (look(l, PB_OWN))
		return true;
	if (l->own_pauses && !binds(l, r))
		return false;
	search(l);
	if (!l->found)
		pick(l, r);
	if (!l->found && binds(l, r) && gfpflags_allow_blocking(r->gfp))
		reclaim(l, r->gfp);
	if (!l->found)
		pause_search(l->tgid, true);
	return l->found;
}

enum pb_answer pb_pool_take(const struct pb_request *r, struct page **page)
{
	struct look l = { .tgid = r->tgid };
	bool found;

	if (!r->own_only && pb_zone_is_on()) {
		if (pb_zone_serve(r, page) == PB_PAGE)
			return PB_PAGE;
	} else if (!r->own_only && pb_hand_take(&l.given)) {
		pb_pool_trim();
		trace_piebald_frame(r->tgid, l.given.pfn, l.given.color, l.given.fallback);
		*page = pb_prepared(l.given.pfn, r->gfp);
		return PB_PAGE;
	}
	found = take_turn(&l) || take_own(&l, r);
	if (!found && !binds(&l, r))
		found = look(&l, PB_ANY);
	pb_pool_trim();
	if (found) {
		trace_piebald_frame(r->tgid, l.given.pfn, l.given.color, l.given.fallback);
		*page = pb_prepared(l.given.pfn, r->gfp);
		return PB_PAGE;
	}
	trace_piebald_no_frame(r->tgid, binds(&l, r));
	if (!binds(&l, r))
		return PB_PASS;
	pb_count(hard_failures);
	return PB_REFUSE;
}

/* --- memory of the core ------------------------------------------------------ */

int pb_pool_set_map(const char *map, size_t len, char *why)
{
	struct pb_needs needs;
	void *new_lists;
	u64 *new_words;
	int error;

	spin_lock(&pb_lock);
	error = pb_core_read_map(pb_core, map, len, &needs, why, PB_TEXT - 1);
	spin_unlock(&pb_lock);
	if (error)
		return error;
	new_lists = kvzalloc(needs.list_bytes, GFP_KERNEL);
	new_words = kvcalloc(needs.nr_words, sizeof(u64), GFP_KERNEL);
	if (!new_lists || !new_words) {
		kvfree(new_lists);
		kvfree(new_words);
		strscpy(why, "no memory for the lists", PB_TEXT);
		return -ENOMEM;
	}
	pb_tasks_forget();
	spin_lock(&pb_lock);
	memset(memory.states, 0, memory.frames);
	memset(memory.pageblocks, 0, memory.nr_pageblocks * sizeof(u32));
	error = pb_core_set_map(pb_core, &needs, new_lists, new_words);
	swap(lists, new_lists);
	swap(words, new_words);
	others = (struct pb_pause){ 0 };
	pb_new_version();
	spin_unlock(&pb_lock);
	kvfree(new_lists);
	kvfree(new_words);
	return error;
}

static void free_memory(void)
{
	kvfree(lists);
	kvfree(words);
	kvfree(memory.states);
	kvfree(memory.links);
	kvfree(memory.pageblocks);
	kvfree(memory.slots);
	kvfree(pb_core);
}

int pb_pool_set_up(void)
{
	memory.frames = round_up(node_end_pfn(first_online_node), 1024);
	memory.nr_pageblocks = DIV_ROUND_UP_ULL(memory.frames, 512);
	memory.nr_slots = NR_SLOTS;
	memory.states = kvzalloc(memory.frames, GFP_KERNEL);
	memory.links = kvcalloc(memory.frames, 8, GFP_KERNEL);
	memory.pageblocks = kvcalloc(memory.nr_pageblocks, sizeof(u32), GFP_KERNEL);
	memory.slots = kvcalloc(NR_SLOTS, pb_slot_bytes(), GFP_KERNEL);
	pb_core = kvzalloc(pb_core_bytes(), GFP_KERNEL);
	shrinker = shrinker_alloc(0, KBUILD_MODNAME);
	if (!memory.states || !memory.links || !memory.pageblocks || !memory.slots || !pb_core ||
	    !shrinker) {
		if (shrinker)
			shrinker_free(shrinker);
		free_memory();
		return -ENOMEM;
	}
	pb_core_set_up(pb_core, &memory);
	pb_hand_set_up();
	pb_zone_set_up();
	pb_pool_max = totalram_pages() / 8;
	shrinker->count_objects = count_objects;
	shrinker->scan_objects = scan_objects;
	shrinker_register(shrinker);
	return 0;
}

void pb_pool_end(void)
{
	shrinker_free(shrinker);
	pb_pool_drain();
	pb_zone_free();
	free_memory();
}
