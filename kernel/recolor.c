// SPDX-License-Identifier: GPL-2.0
/*
 * Moves pages: those of a process to the colours of its group, and those that survey.c finds.
 *
 * Which pages have to move, the core says; where to, the set's round through its colours,
 * as for new pages; how, the kernel's own page migration, which waits until nobody uses a page,
 * copies it and redirects its users. Of a process, moved are single pages of anonymous memory that the
 * process has for itself. Pages of files, shared pages, huge pages and pages that are pinned
 * stay where they are. All pages of a process are shared while a child that it forked has not
 * begun a program of its own: what is left for that is counted.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/ksm.h>
#include <linux/list.h>
#include <linux/memcontrol.h>
#include <linux/migrate.h>
#include <linux/mm_inline.h>
#include <linux/pagewalk.h>
#include <linux/pid.h>
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

/* Pages of a process, and where to go on. */
struct batch {
	struct pb_move move;
	unsigned long next;
};

static bool is_misplaced(u64 number, unsigned long pfn)
{
	struct pb_set *set;
	bool misplaced;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	misplaced = set && pb_core_misplaced(pb_core, &set->seat, pfn);
	spin_unlock(&pb_lock);
	return misplaced;
}

bool pb_isolate(struct folio *folio, struct pb_move *move)
{
	if (!static_call(isolate)(folio)) {
		move->failed++;
		return false;
	}
	node_stat_mod_folio(folio, NR_ISOLATED_ANON + folio_is_file_lru(folio),
			    folio_nr_pages(folio));
	list_add_tail(&folio->lru, &move->pages);
	move->n++;
	return true;
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
	    !is_misplaced(batch->move.set, folio_pfn(folio)))
		return 0;
	if (pb_is_mapped_shared(folio)) {
		pb_count(recolor_shared);
		return 0;
	}
	pb_isolate(folio, &batch->move);
	return batch->move.n == BATCH;
}

/* A huge page that has a colour of the set needs no look at its parts, for which the kernel would map them one by one. */
static int visit_huge(pmd_t *entry, unsigned long address, unsigned long end, struct mm_walk *walk)
{
	struct batch *batch = walk->private;
	spinlock_t *lock = pmd_lock(walk->mm, entry);

	if (pmd_trans_huge(*entry) && pmd_present(*entry) && pb_whole_order >= HPAGE_PMD_ORDER &&
	    !is_misplaced(batch->move.set, pmd_pfn(*entry))) {
		walk->action = ACTION_CONTINUE;
		batch->next = end;
	}
	spin_unlock(lock);
	return 0;
}

/* Leaves out what has no pages of its own. */
static int test(unsigned long start, unsigned long end, struct mm_walk *walk)
{
	const vm_flags_t foreign = VM_IO | VM_PFNMAP | VM_MIXEDMAP | VM_HUGETLB;

	return walk->vma->vm_flags & foreign ? 1 : 0;
}

static const struct mm_walk_ops walk_ops = {
	.pmd_entry = visit_huge,
	.pte_entry = visit,
	.test_walk = test,
	.walk_lock = PGWALK_RDLOCK,
};

/* The colours that a page is to have. */
static u64 set_for(const struct pb_move *move, const struct folio *folio)
{
	struct mem_cgroup *memory;
	u64 number;

	if (move->set)
		return move->set;
	rcu_read_lock();
	memory = folio_memcg_check((struct folio *)folio);
	number = memory ? pb_set_of_group(memory) : 0;
	rcu_read_unlock();
	return number;
}

/*
 * None for a large page: the kernel then splits it, and asks for its parts. A page that leaves the colours of others
 * goes to those that nobody has if its group's are used up and a hint. It stays on its memory node, as nothing is known
 * of the policies of those who use it.
 */
static struct folio *new_home(struct folio *from, unsigned long private)
{
	struct pb_move *move = (struct pb_move *)private;
	const nodemask_t here = nodemask_of_node(folio_nid(from));
	struct pb_request request = {
		.tgid = current->tgid,
		.set = set_for(move, from),
		.gfp = GFP_HIGHUSER_MOVABLE | __GFP_NOWARN,
		.nid = folio_nid(from),
		.nodes = &here,
		.own_only = true,
	};
	struct page *page;

	if (folio_test_large(from))
		return NULL;
	/* No room that is made helps where it may take no frames. */
	if (pb_node_at(request.nid) < 0 || !pb_may_use_node(&request, request.nid)) {
		move->stuck = from;
		return NULL;
	}
	if (pb_pool_take(&request, &page) == PB_PAGE)
		return page_folio(page);
	if (request.set) {
		if (move->set || pb_set_is_hard(request.set)) {
			move->stuck = from;
			return NULL;
		}
		request.set = 0;
		if (pb_pool_take(&request, &page) == PB_PAGE)
			return page_folio(page);
	}
	move->homeless = true;
	move->node = max(pb_node_at(request.nid), 0);
	return NULL;
}

/* The kernel ends where there is no frame for a page; those behind it may have other colours. */
void pb_move_pages(struct pb_move *move)
{
	unsigned int moved = 0, failed;
	LIST_HEAD(stuck);

	if (!move->n)
		return;
	do {
		unsigned int some = 0;

		move->stuck = NULL;
		static_call(migrate)(&move->pages, new_home, NULL, (unsigned long)move, move->mode,
				     MR_SYSCALL, &some);
		moved += some;
		if (move->stuck)
			list_move(&move->stuck->lru, &stuck);
	} while (move->stuck && !move->homeless && !list_empty(&move->pages));
	list_splice(&stuck, &move->pages);
	failed = list_count_nodes(&move->pages);
	if (failed)
		static_call(put_back)(&move->pages);
	barrier();
	trace_piebald_recolor(move->set, moved, failed);
	move->moved += moved;
	move->failed += failed;
	move->n = 0;
}

void pb_drain_lists(void)
{
	static_call(drain)();
	barrier();
}

static int recolor(struct mm_struct *mm, u64 set, char *why)
{
	struct batch batch = { .move = { .set = set, .mode = MIGRATE_SYNC } };
	int status, error = 0;

	INIT_LIST_HEAD(&batch.move.pages);
	pb_drain_lists();
	do {
		mmap_read_lock(mm);
		status = static_call(walk)(mm, batch.next, TASK_SIZE, &walk_ops, &batch);
		mmap_read_unlock(mm);
		pb_move_pages(&batch.move);
		cond_resched();
		if (fatal_signal_pending(current)) {
			strscpy(why, "recolor: killed half-way", PB_TEXT);
			error = -EINTR;
		}
	} while (status > 0 && !error);
	pb_count_many(PB_C_recolored, batch.move.moved);
	pb_count_many(PB_C_recolor_failed, batch.move.failed);
	return error;
}

/* The process that a number names, with a reference, or none and the reason. */
static struct task_struct *process_of(pid_t number, char *why)
{
	struct task_struct *task;
	struct pid *pid = find_get_pid(number);

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_PID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	put_pid(pid);
	if (!task) {
		snprintf(why, PB_TEXT, "there is no process %d", number);
	} else if (task->flags & PF_KTHREAD) {
		snprintf(why, PB_TEXT, "%d is the kernel's own", number);
		put_task_struct(task);
		task = NULL;
	}
	return task;
}

int pb_recolor(pid_t number, char *why)
{
	struct task_struct *process = process_of(number, why);
	struct mm_struct *mm;
	u64 set = 0;
	int error;

	if (!process)
		return -ESRCH;
	mm = get_task_mm(process);
	if (mm)
		set = pb_set_of_current(mm);
	if (set) {
		error = recolor(mm, set, why);
	} else {
		snprintf(why, PB_TEXT, "process %d has no %s", number, mm ? "colors" : "memory");
		error = -EINVAL;
	}
	if (mm)
		mmput(mm);
	put_task_struct(process);
	return error;
}
