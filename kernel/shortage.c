// SPDX-License-Identifier: GPL-2.0
/*
 * What is done where the colours of a set have no free frame: reclaim in the groups that own
 * them, the asking one's first; then pages of other groups move to colours of their own
 * (survey.c). At last the out-of-memory killer of the group.
 *
 * All of it runs in the context of the request that wants a frame, as the kernel's own reclaim
 * does: what the request's flags forbid (to wait, to begin input or output, to enter a file
 * system) is not done.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/memcontrol.h>
#include <linux/oom.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/static_call.h>
#include <linux/swap.h>
#include <linux/vmstat.h>
#include <linux/writeback.h>

/* Rounds without any page before hard colours are taken to be used up, as memory.max has it. */
#define PATIENCE 16
/* Before a hint is. */
#define PATIENCE_OF_HINT 3
/* From then on what memory.low asks to be kept is no more than asked for. */
#define LOW_IS_KEPT 8
/* How long pages that are being written are waited for, each round. */
#define WRITING (HZ / 50)
/* What is being written counts if it is this part of what a group has. */
#define MOST 8
/* How long guarantees are not worked out anew. */
#define PROTECTED (HZ / 10)

unsigned long reclaim_group_prototype(struct mem_cgroup *memory, unsigned long pages, gfp_t gfp,
				      unsigned int options, int *swappiness);
DEFINE_STATIC_CALL_NULL(reclaim_group, reclaim_group_prototype);
DEFINE_STATIC_CALL_NULL(kill, out_of_memory);
void flush_prototype(struct mem_cgroup *memory);
DEFINE_STATIC_CALL_NULL(flush_stats, flush_prototype);
unsigned long state_prototype(struct mem_cgroup *memory, int item);
DEFINE_STATIC_CALL_NULL(state_of, state_prototype);
DEFINE_STATIC_CALL_NULL(wake_flushers, wakeup_flusher_threads);
static struct mutex *kernel_oom_lock;
static struct mem_cgroup **root_group;
struct mem_cgroup *group_after_prototype(struct mem_cgroup *root, struct mem_cgroup *last,
					 struct mem_cgroup_reclaim_cookie *cookie);
DEFINE_STATIC_CALL_NULL(group_after, group_after_prototype);
void protect_prototype(struct mem_cgroup *root, struct mem_cgroup *memory);
DEFINE_STATIC_CALL_NULL(protect, protect_prototype);

int pb_shortage_set_up(void)
{
	void *reclaim = pb_symbol("try_to_free_mem_cgroup_pages");
	void *kill = pb_symbol("out_of_memory"), *wake = pb_symbol("wakeup_flusher_threads");
	void *after = pb_symbol("mem_cgroup_iter");
	void *protection = pb_symbol("mem_cgroup_calculate_protection");
	void *flush = pb_symbol("mem_cgroup_flush_stats"), *state = pb_symbol("memcg_page_state");

	/* They are no functions, and so have no signature. */
	kernel_oom_lock = (struct mutex *)pb_lookup("oom_lock");
	root_group = (struct mem_cgroup **)pb_lookup("root_mem_cgroup");
	if (!kernel_oom_lock)
		pr_err("this kernel has no mutex oom_lock\n");
	if (!root_group)
		pr_err("this kernel has no pointer root_mem_cgroup\n");
	if (!reclaim || !kill || !wake || !kernel_oom_lock || !root_group ||
	    !after || !protection || !flush || !state)
		return -EOPNOTSUPP;
	static_call_update(reclaim_group, reclaim);
	static_call_update(kill, kill);
	static_call_update(wake_flushers, wake);
	static_call_update(group_after, after);
	static_call_update(protect, protection);
	static_call_update(flush_stats, flush);
	static_call_update(state_of, state);
	return 0;
}

bool pb_may_relieve(gfp_t gfp)
{
	return gfpflags_allow_blocking(gfp) && !(current->flags & PF_MEMALLOC);
}

unsigned int pb_patience(gfp_t gfp, bool hard)
{
	if (gfp & __GFP_NORETRY)
		return 1;
	return hard ? PATIENCE : PATIENCE_OF_HINT;
}

/*
 * How much a group gives for another's want: nothing of what memory.min keeps for it, and of what
 * memory.low keeps only when all else failed. The asking group itself is as at a limit of its own.
 */
static bool keeps_all(struct mem_cgroup *memory, unsigned int idle)
{
	unsigned long kept = READ_ONCE(memory->memory.min);

	if (idle < LOW_IS_KEPT)
		kept = max(kept, READ_ONCE(memory->memory.low));
	return kept && page_counter_read(&memory->memory) <= kept;
}

static unsigned long reclaim(struct mem_cgroup *memory, gfp_t gfp)
{
	unsigned long freed = static_call(reclaim_group)(memory, PB_RELIEF, gfp,
							 PB_MAY_SWAP, NULL);

	barrier();
	return freed;
}

static unsigned long reclaim_owners(const struct pb_request *r, gfp_t gfp, unsigned int idle)
{
	struct mem_cgroup *own = pb_owner_of_current(r->mm), *other;
	unsigned long freed = 0;
	u64 last = 0;

	if (own)
		freed = reclaim(own, gfp);
	while (!freed && (other = pb_next_owner(r->set, &last))) {
		if (other != own && !keeps_all(other, idle))
			freed = reclaim(other, gfp);
		css_put(&other->css);
	}
	if (own)
		css_put(&own->css);
	return freed;
}

/*
 * Is much of what a group has dirty, or being written? It can be had once that is done. A few such pages, as many groups
 * always have, are no reason to wait.
 */
static bool is_writing(struct mem_cgroup *memory)
{
	static_call(flush_stats)(memory);
	return static_call(state_of)(memory, NR_FILE_DIRTY) + static_call(state_of)(memory, NR_WRITEBACK) >
	       page_counter_read(&memory->memory) / MOST;
}

/* Has the asking group, or another that owns a colour of the set? */
static bool owners_write(const struct pb_request *r)
{
	struct mem_cgroup *own = pb_owner_of_current(r->mm), *other;
	bool found = false;
	u64 last = 0;

	if (own) {
		found = is_writing(own);
		css_put(&own->css);
	}
	while (!found && (other = pb_next_owner(r->set, &last))) {
		found = is_writing(other);
		css_put(&other->css);
	}
	return found;
}

/* Pages that are dirty, or being written, cannot be had yet. */
static void wait_for_writing(gfp_t gfp)
{
	if (!(gfp & __GFP_IO) ||
	    !(global_node_page_state(NR_FILE_DIRTY) + global_node_page_state(NR_WRITEBACK)))
		return;
	static_call(wake_flushers)(WB_REASON_VMSCAN);
	__set_current_state(TASK_KILLABLE);
	io_schedule_timeout(WRITING);
}

/*
 * The kernel's reclaim of all memory goes by what the groups' guarantees came to when its own thread ran last
 * (lru_gen_age_node), which may be before they were given. There may be thousands of groups.
 */
void pb_protect_all(bool at_once)
{
	static unsigned long due;
	struct mem_cgroup *memory = NULL;

	if (!at_once && time_before(jiffies, READ_ONCE(due)))
		return;
	WRITE_ONCE(due, jiffies + PROTECTED);
	while ((memory = static_call(group_after)(NULL, memory, NULL))) {
		static_call(protect)(*root_group, memory);
		cond_resched();
	}
}

/* What comes free lies on this processor's lists, with that of the pages that left before. */
unsigned long pb_make_room(gfp_t gfp, unsigned long nodes, unsigned long *came)
{
	struct pb_marks marks;
	unsigned long freed;
	unsigned int node;

	*came = 0;
	pb_protect_all(false);
	migrate_disable();
	freed = reclaim(*root_group, gfp);
	for (node = 0; freed && node < pb_nr_nodes; node++) {
		if (!(nodes & BIT(node)))
			continue;
		pb_note_marks(node, &marks);
		*came += pb_pool_collect_freed(node, 0, 2 * PB_RELIEF);
		pb_restore_marks(node, &marks);
	}
	pb_count_many(PB_C_room_made, *came);
	migrate_enable();
	return freed;
}

/* Nodes of a request, a bit each, that have no frame above what the kernel keeps free. */
static unsigned long short_nodes(const struct pb_request *r)
{
	u8 nodes[PB_NODES];
	unsigned int i, n = pb_nodes_for(r, nodes);
	unsigned long those = 0;

	for (i = 0; i < n; i++)
		if (!pb_pool_collect(nodes[i], PB_BLOCK_GFP, 1))
			those |= BIT(nodes[i]);
	return those;
}

unsigned long pb_relieve(const struct pb_request *r, struct pb_relief *relief)
{
	/* What the task may not do in general it may not do here, whatever it asks for. */
	gfp_t flags = current_gfp_context(r->gfp) & ~(__GFP_ZERO | __GFP_NOFAIL);
	bool waits = flags & __GFP_IO && !(flags & __GFP_NORETRY), waited = relief->writing;
	unsigned long freed, moved, came, nodes;

	if (waits && (relief->idle || waited))
		wait_for_writing(flags);
	relief->writing = false;
	freed = reclaim_owners(r, flags, relief->idle);
	pb_set_event(r->set, PB_E_reclaimed, freed);
	if (freed && !relief->elsewhere)
		return freed;
	/* While a disk is waited for, others need not be asked again. */
	if (waited && waits && owners_write(r)) {
		relief->writing = true;
		return freed;
	}
	moved = pb_vacate_some(r, PB_RELIEF, flags);
	if (moved)
		return freed + moved;
	nodes = short_nodes(r);
	/* Frames of its colours may be among those that the kernel keeps free. */
	if (nodes)
		freed += pb_make_room(flags, nodes, &came);
	relief->writing = !freed && waits && owners_write(r);
	return freed;
}

bool pb_out_of_memory(const struct pb_request *r)
{
	struct mem_cgroup *memory = pb_owner_of_current(r->mm);
	struct oom_control control = { .memcg = memory, .gfp_mask = r->gfp };
	bool somebody_ends = true;

	/* Its colours were taken away meanwhile. */
	if (!memory)
		return false;
	if (!mutex_lock_killable(kernel_oom_lock)) {
		somebody_ends = fatal_signal_pending(current) || static_call(kill)(&control);
		mutex_unlock(kernel_oom_lock);
	}
	css_put(&memory->css);
	return somebody_ends;
}
