// SPDX-License-Identifier: GPL-2.0
/*
 * Moves the pages of a process to its colours.
 *
 * Which pages have to move, the core says; where to, the process's round through its colours,
 * as for new pages; how, the kernel's own page migration, which waits until nobody uses a page,
 * copies it and redirects its users. Moved are single pages of anonymous memory that the
 * process has for itself. Pages of files, shared pages, huge pages and pages that are pinned
 * stay where they are. All pages of a process are shared while a child that it forked has not
 * begun a program of its own: what is left for that is counted.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/ksm.h>
#include <linux/migrate.h>
#include <linux/mm_inline.h>
#include <linux/pagewalk.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/static_call.h>

#include "trace.h"

/* Pages that are moved at a time. */
#define BATCH 64

DEFINE_STATIC_CALL_NULL(walk, walk_page_range);
bool isolate_prototype(struct folio *folio);
DEFINE_STATIC_CALL_NULL(isolate, isolate_prototype);
DEFINE_STATIC_CALL_NULL(migrate, migrate_pages);
DEFINE_STATIC_CALL_NULL(put_back, putback_movable_pages);
DEFINE_STATIC_CALL_NULL(drain, lru_add_drain_all);

int pb_recolor_set_up(void)
{
	void *walk = pb_symbol("walk_page_range"), *isolate = pb_symbol("folio_isolate_lru");
	void *migrate = pb_symbol("migrate_pages"), *put_back = pb_symbol("putback_movable_pages");
	void *drain = pb_symbol("lru_add_drain_all");

	if (!walk || !isolate || !migrate || !put_back || !drain)
		return -EOPNOTSUPP;
	static_call_update(walk, walk);
	static_call_update(isolate, isolate);
	static_call_update(migrate, migrate);
	static_call_update(put_back, put_back);
	static_call_update(drain, drain);
	return 0;
}

void pb_recolor_drain(void)
{
	static_call(drain)();
}

/* Pages that were found, and where to go on. */
struct batch {
	struct list_head pages;
	unsigned int n;
	unsigned long next;
	pid_t tgid;
};

static bool is_misplaced(pid_t tgid, unsigned long pfn)
{
	struct pb_task *task;
	bool misplaced;

	spin_lock(&pb_lock);
	task = pb_task_of(tgid);
	misplaced = task && pb_core_misplaced(pb_core, &task->seat, pfn);
	spin_unlock(&pb_lock);
	return misplaced;
}

/* Called with the page table locked, which keeps the page. */
static int visit(pte_t *entry, unsigned long address, unsigned long end, struct mm_walk *walk)
{
	struct batch *batch = walk->private;
	pte_t pte = ptep_get(entry);
	struct folio *folio;

	batch->next = end;
	if (!pte_present(pte) || pte_special(pte))
		return 0;
	folio = page_folio(pte_page(pte));
	if (!folio_test_anon(folio) || folio_test_ksm(folio) || folio_test_large(folio) ||
	    !is_misplaced(batch->tgid, folio_pfn(folio)))
		return 0;
	if (folio_likely_mapped_shared(folio)) {
		pb_count(recolor_shared);
		return 0;
	}
	if (!static_call(isolate)(folio)) {
		pb_count(recolor_failed);
		return 0;
	}
	node_stat_mod_folio(folio, NR_ISOLATED_ANON, 1);
	list_add_tail(&folio->lru, &batch->pages);
	return ++batch->n == BATCH;
}

/* Leaves out what has no pages of its own. */
static int test(unsigned long start, unsigned long end, struct mm_walk *walk)
{
	const vm_flags_t foreign = VM_IO | VM_PFNMAP | VM_MIXEDMAP | VM_HUGETLB;

	return walk->vma->vm_flags & foreign ? 1 : 0;
}

static const struct mm_walk_ops walk_ops = {
	.pte_entry = visit,
	.test_walk = test,
	.walk_lock = PGWALK_RDLOCK,
};

static struct folio *new_home(struct folio *from, unsigned long private)
{
	const struct batch *batch = (const struct batch *)private;
	const struct pb_request request = {
		.tgid = batch->tgid,
		.gfp = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN,
		.own_only = true,
	};
	struct page *page;

	if (pb_pool_take(&request, &page) != PB_PAGE)
		return NULL;
	return page_folio(page);
}

static void move(struct batch *batch)
{
	unsigned int moved = 0;

	static_call(migrate)(&batch->pages, new_home, NULL, (unsigned long)batch, MIGRATE_SYNC,
			     MR_SYSCALL, &moved);
	if (!list_empty(&batch->pages))
		static_call(put_back)(&batch->pages);
	trace_piebald_recolor(batch->tgid, moved, batch->n - moved);
	pb_count_many(PB_C_recolored, moved);
	pb_count_many(PB_C_recolor_failed, batch->n - moved);
}

static int recolor(struct mm_struct *mm, pid_t tgid, char *why)
{
	struct batch batch = { .tgid = tgid };
	int status;

	/* Pages on their way to the lists of the kernel cannot be isolated. */
	pb_recolor_drain();
	do {
		INIT_LIST_HEAD(&batch.pages);
		batch.n = 0;
		mmap_read_lock(mm);
		status = static_call(walk)(mm, batch.next, TASK_SIZE, &walk_ops, &batch);
		mmap_read_unlock(mm);
		if (batch.n)
			move(&batch);
		cond_resched();
		if (fatal_signal_pending(current)) {
			strscpy(why, "recolor: killed half-way", PB_TEXT);
			return -EINTR;
		}
	} while (status > 0);
	return 0;
}

int pb_recolor(pid_t number, char *why)
{
	struct task_struct *process = pb_process(number, why);
	struct mm_struct *mm;
	bool colored;
	int error;

	if (!process)
		return -ESRCH;
	spin_lock(&pb_lock);
	colored = pb_task_of(process->tgid);
	spin_unlock(&pb_lock);
	mm = colored ? get_task_mm(process) : NULL;
	if (mm) {
		error = recolor(mm, process->tgid, why);
		mmput(mm);
	} else {
		snprintf(why, PB_TEXT, "process %d has no %s", number, colored ? "memory" : "colors");
		error = -EINVAL;
	}
	put_task_struct(process);
	return error;
}
