// SPDX-License-Identifier: GPL-2.0
/*
 * SRM-buffer's zone: while it is on, every frame for a process comes out of it.
 *
 * What it is to have, how it is taken and in which colour, the core says; here frames come and
 * go. It is refilled with free frames of the pool, and of the kernel as long as that has blocks
 * to spare, then with cold pages of the kernel's lists (cold.c).
 *
 * A frame with a cold page is had by ending the page and asking the kernel for a frame at once:
 * what was freed last on a processor is what it gives first. Nothing that the kernel keeps of a
 * page is undone here. If another frame comes, it stays in the zone and the search goes on.
 *
 * Where the zone has no frame that the process may have, the pool looks further as without it. Machines
 * with more than one memory node have no zone.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/gfp.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/vmalloc.h>

#include "trace.h"

/* Frames that are moved from the pool with the lock held. */
#define FILL 256
/* Blocks that one refill takes from the kernel. */
#define BLOCKS 64
/* Cold pages that are pulled at a time. */
#define BATCH 32
/* Cold pages that one refill pulls. */
#define PULLS 8192
/* Frames that could not be used before a request does without. */
#define DECLINES 32
/* How long a zone that could not be refilled is left alone. */
#define PAUSE (HZ / 10)

/* All but `pb_zone_on` and `paused` with pb_lock held. */
bool pb_zone_on;
static void *memory;
static u32 threshold;
static unsigned long paused;	/* until when (jiffies); 0: not */

/* --- refilling ---------------------------------------------------------------- */

static bool wants(void)
{
	bool it;

	spin_lock(&pb_lock);
	it = pb_zone_on && pb_zone_wants(pb_core);
	spin_unlock(&pb_lock);
	return it;
}

static unsigned int missing(void)
{
	unsigned int pages;

	spin_lock(&pb_lock);
	pages = pb_zone_on ? pb_zone_missing(pb_core) : 0;
	spin_unlock(&pb_lock);
	return pages;
}

static unsigned int fill(void)
{
	unsigned int came, all = 0;

	do {
		spin_lock(&pb_lock);
		came = pb_zone_on ? pb_zone_fill(pb_core, FILL) : 0;
		spin_unlock(&pb_lock);
		all += came;
	} while (came);
	return all;
}

static unsigned int add_cold(struct folio **folios, unsigned int n)
{
	unsigned int i, kept = 0;

	spin_lock(&pb_lock);
	for (i = 0; i < n; i++)
		if (pb_zone_on && pb_zone_wants(pb_core) && !pb_zone_add(pb_core, folio_pfn(folios[i]), true)) {
			kept++;
			folios[i] = NULL;
		}
	spin_unlock(&pb_lock);
	for (i = 0; i < n; i++)
		if (folios[i])
			pb_cold_return(folios[i]);
	return kept;
}

static unsigned int pull(void)
{
	struct folio *folios[BATCH];
	unsigned int came, all = 0;

	/* What is pulled for nothing goes back to the wrong end of its list. */
	while (all < PULLS && (came = missing())) {
		came = pb_cold_pull(folios, min_t(unsigned int, came, BATCH));
		came = came ? add_cold(folios, came) : 0;
		if (!came)
			break;
		all += came;
	}
	return all;
}

/* False if nothing came. */
static bool refill(void)
{
	unsigned int blocks = BLOCKS, free = fill(), cold = 0;

	while (wants() && blocks-- && pb_pool_refill_block(0))
		free += fill();
	if (wants())
		cold = pull();
	if (!free && !cold && pb_pool_refill_singles(0))
		free = fill();
	trace_piebald_zone_refill(free, cold);
	return free || cold;
}

/* --- for processes -------------------------------------------------------------- */

static struct pb_key key_of(const struct task_struct *task)
{
	return (struct pb_key){ { task->tgid, task->group_leader->start_boottime } };
}

/* Ends a page of a colour; the frame that the kernel then gives, or none. */
static struct page *take_over(struct folio *folio, unsigned int color, bool *evicted)
{
	const gfp_t gfp = PB_SINGLE_GFP & ~__GFP_KSWAPD_RECLAIM;
	struct page *page = NULL;

	migrate_disable();
	*evicted = pb_cold_evict(folio);
	if (*evicted)
		page = pb_lists_are_on() ? pb_lists_take_color(gfp, 0, color) : pb_alloc(0, gfp, 0);
	migrate_enable();
	return page;
}

/* A frame that nobody asked for stays in the zone, or goes back. */
static void keep(struct page *page)
{
	int error = -EINVAL;

	pb_count(refill_frames);
	pb_mark_free(page);
	spin_lock(&pb_lock);
	if (pb_zone_on)
		error = pb_zone_add(pb_core, page_to_pfn(page), false);
	spin_unlock(&pb_lock);
	if (error) {
		pb_free(page);
		pb_count(given_back);
	}
}

/* The page of a frame that was found, or NULL if it could not be used. */
static struct page *frame_of(const struct pb_zone_found *found, gfp_t gfp)
{
	struct folio *folio;
	struct page *page;
	bool evicted;

	if (!found->cold)
		return pb_prepared(found->pfn, gfp);
	folio = page_folio(pfn_to_page(found->pfn));
	page = take_over(folio, found->color, &evicted);
	trace_piebald_evict(found->pfn, evicted);
	if (!evicted)
		return NULL;
	if (page && page_to_pfn(page) == found->pfn) {
		pb_count(cold_evicted);
		return pb_prepared(found->pfn, gfp);
	}
	pb_count(cold_elsewhere);
	if (page)
		keep(page);
	return NULL;
}

static int find(const struct pb_request *r, const struct pb_zone_ask *ask,
		struct pb_zone_found *found)
{
	struct pb_set *set;
	int status = -ENOMEM;

	spin_lock(&pb_lock);
	if (pb_zone_on) {
		set = pb_set_find(r->set);
		status = pb_zone_take(pb_core, set ? &set->seat : NULL, ask, found);
	}
	spin_unlock(&pb_lock);
	return status;
}

static void decline(const struct pb_zone_ask *ask)
{
	spin_lock(&pb_lock);
	if (pb_zone_on)
		pb_zone_declined(pb_core, ask);
	spin_unlock(&pb_lock);
}

enum pb_answer pb_zone_serve(const struct pb_request *r, struct page **page)
{
	unsigned long until = READ_ONCE(paused);
	struct pb_zone_ask ask = {
		.process = key_of(current),
		.is_file = r->is_file,
		.spent = until && time_before(jiffies, until),
	};
	struct pb_zone_found found;
	unsigned int declines = DECLINES, refills = DECLINES;
	int status;

	if (r->is_file && !pb_reading(&ask.file, &ask.file_blocks))
		pb_count(srm_unknown_file);
	*page = NULL;
	do {
		status = find(r, &ask, &found);
		if (status == -EAGAIN) {
			if (!refills-- || !refill()) {
				WRITE_ONCE(paused, (jiffies + PAUSE) | 1);
				ask.spent = 1;
			}
			continue;
		}
		if (status)
			break;
		*page = frame_of(&found, r->gfp);
		if (!*page)
			decline(&ask);
	} while (!*page && (status || --declines));
	pb_pool_trim();
	if (!*page) {
		pb_count(srm_passed);
		return PB_PASS;
	}
	trace_piebald_zone_frame(r->tgid, r->is_file, &found);
	pb_count_many(r->is_file ? PB_C_srm_file_frames : PB_C_srm_memory_frames, 1);
	return PB_PAGE;
}

void pb_zone_at_fork(struct task_struct *parent, struct task_struct *child)
{
	const struct pb_key from = key_of(parent), to = key_of(child);

	if (!pb_zone_is_on())
		return;
	spin_lock(&pb_lock);
	if (pb_zone_on)
		pb_zone_fork(pb_core, &from, &to);
	spin_unlock(&pb_lock);
}

void pb_zone_at_exit(struct task_struct *task)
{
	const struct pb_key key = key_of(task);

	if (!pb_zone_is_on())
		return;
	spin_lock(&pb_lock);
	if (pb_zone_on)
		pb_zone_exit(pb_core, &key);
	spin_unlock(&pb_lock);
}

/* --- back to the kernel ---------------------------------------------------------- */

/* One frame; true if the kernel has it now. */
static bool give_back(const struct pb_zone_found *found, bool evict)
{
	struct page *page = pfn_to_page(found->pfn);

	if (!found->cold) {
		pb_free(page);
		pb_count_many(evict ? PB_C_reclaimed : PB_C_given_back, 1);
		return true;
	}
	if (!evict) {
		pb_cold_return(page_folio(page));
		return false;
	}
	if (!pb_cold_evict(page_folio(page)))
		return false;
	pb_count(cold_reclaimed);
	return true;
}

unsigned long pb_zone_shed(unsigned long frames, bool evict)
{
	unsigned long done = 0, seen = 0;

	while (seen++ < frames) {
		struct pb_zone_found found;
		int status;

		spin_lock(&pb_lock);
		status = pb_zone_spare(pb_core, &found);
		spin_unlock(&pb_lock);
		if (status)
			break;
		done += give_back(&found, evict);
		cond_resched();
	}
	return done;
}

/* --- switching -------------------------------------------------------------------- */

static int begin(char *why)
{
	size_t bytes;
	void *fresh;
	int error;

	/* The map does not change meanwhile: pb_switch is held. */
	spin_lock(&pb_lock);
	bytes = pb_zone_bytes(pb_core);
	spin_unlock(&pb_lock);
	if (!bytes) {
		strscpy(why, "srm: no map of colors is set; write one to the file map first", PB_TEXT);
		return -EINVAL;
	}
	fresh = vzalloc(bytes);
	if (!fresh) {
		strscpy(why, "srm: no memory for the zone", PB_TEXT);
		return -ENOMEM;
	}
	spin_lock(&pb_lock);
	error = pb_zone_begin(pb_core, fresh, threshold, totalram_pages(), why, PB_TEXT - 1);
	if (!error) {
		swap(memory, fresh);
		paused = 0;
		WRITE_ONCE(pb_zone_on, true);
	}
	spin_unlock(&pb_lock);
	vfree(fresh);
	return error;
}

static void end(void)
{
	void *old = NULL;
	int busy;

	/* Whoever puts a frame in looks at `pb_zone_on` with the lock held. */
	spin_lock(&pb_lock);
	WRITE_ONCE(pb_zone_on, false);
	spin_unlock(&pb_lock);
	do {
		pb_zone_shed(ULONG_MAX, false);
		spin_lock(&pb_lock);
		busy = pb_zone_end(pb_core);
		if (!busy)
			swap(old, memory);
		spin_unlock(&pb_lock);
	} while (busy);
	vfree(old);
}

int pb_zone_switch(bool to, char *why)
{
	if (to)
		return begin(why);
	end();
	return 0;
}

int pb_zone_set_threshold(u32 pages, char *why)
{
	int error;

	spin_lock(&pb_lock);
	error = pb_zone_threshold(pb_core, pages, totalram_pages(), why, PB_TEXT - 1);
	if (!error)
		threshold = pages;
	spin_unlock(&pb_lock);
	return error;
}

u32 pb_zone_get_threshold(void)
{
	return READ_ONCE(threshold);
}

void pb_zone_set_up(void)
{
	threshold = pb_zone_default(totalram_pages());
}

void pb_zone_free(void)
{
	if (pb_zone_on)
		end();
}
