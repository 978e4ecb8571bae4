// SPDX-License-Identifier: GPL-2.0
/*
 * Replacements for the functions that give frames to processes: every page of the page cache
 * and of anonymous memory comes through one of the first three.
 *
 * What is left to the kernel's own function:
 *   - memory that may not move or that a device needs (unmovable_passed): its frames stay for
 *     long and are not the process's alone;
 *   - requests under a memory policy that does not allow this machine's node (policy_passed);
 *   - whatever the pool cannot serve (other_frames), which then reclaims, waits or calls the
 *     out-of-memory killer as without the module.
 *
 * Blocks of more than a page hold several colours, so a group with colours is refused them as if
 * memory were too fragmented, and goes on with single pages. A file system with blocks larger than a
 * page cannot; its last try is the one without __GFP_NORETRY, which is passed on. Groups without
 * colours have large blocks as ever, from what is left.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/huge_mm.h>
#include <linux/ksm.h>
#include <linux/mempolicy.h>
#include <linux/mman.h>
#include <linux/pagemap.h>
#include <linux/percpu.h>
#include <linux/static_call.h>

static DEFINE_PER_CPU(long, inside);

/*
 * A task may leave on another processor than it entered on, so only the sum means something.
 * When nobody enters any more, the counts only fall while they are added up, and a sum of zero
 * is one.
 */
long pb_inside(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(inside, cpu));
	return sum;
}

void pb_enter(void)
{
	this_cpu_inc(inside);
}

void pb_leave(void)
{
	barrier();
	this_cpu_dec(inside);
}

static bool is_movable(gfp_t gfp)
{
	const gfp_t needed = __GFP_HIGHMEM | __GFP_MOVABLE;
	const gfp_t special = __GFP_DMA | __GFP_DMA32 | __GFP_ACCOUNT;

	return (gfp & needed) == needed && !(gfp & special);
}

/*
 * Does a policy allow the machine's node? There is one (main.c), so every such policy asks for what
 * everybody gets. To set one needs no right, so it must not lead out of the colours.
 */
static bool allows_node(const struct mempolicy *policy)
{
	return !policy || policy->mode == MPOL_LOCAL ||
	       node_isset(first_online_node, policy->nodes);
}

/* A single page for the running task, which the group of this memory is charged for. */
static enum pb_answer take(gfp_t gfp, struct mm_struct *mm, bool is_file, struct folio **folio)
{
	const struct pb_request request = {
		.tgid = current->tgid,
		.set = pb_set_of_current(mm),
		.mm = mm,
		.gfp = gfp,
		.is_file = is_file,
	};
	struct page *page;
	enum pb_answer answer;

	if (!is_movable(gfp)) {
		pb_count(unmovable_passed);
		return PB_PASS;
	}
	answer = pb_pool_take(&request, &page);
	if (answer == PB_PAGE)
		*folio = page_folio(page);
	if (answer == PB_PASS)
		pb_count(other_frames);
	return answer;
}

/* Is a block of several pages of a file refused? SRM-buffer has all files in single pages. */
static bool refuses_large_file(gfp_t gfp)
{
	if (gfp & __GFP_NORETRY && (pb_zone_is_on() || pb_current_is_colored())) {
		pb_count(large_refused);
		return true;
	}
	pb_count(large_passed);
	return false;
}

/* And one of memory, which the group of this mm is charged for, or (NULL) the running task's? */
static bool refuses_large(struct mm_struct *mm)
{
	if (pb_set_of_current(mm)) {
		pb_count(large_refused);
		return true;
	}
	pb_count(large_passed);
	return false;
}

struct folio *file_prototype(gfp_t gfp, unsigned int order);
DEFINE_STATIC_CALL_NULL(original_file, file_prototype);

static struct folio *file_folio(gfp_t gfp, unsigned int order)
{
	struct folio *folio = NULL;

	if (order) {
		if (refuses_large_file(gfp))
			return NULL;
	} else if (!allows_node(current->mempolicy)) {
		pb_count(policy_passed);
	} else {
		switch (take(gfp, NULL, true, &folio)) {
		case PB_PAGE:
			pb_count(file_pages);
			return folio;
		case PB_REFUSE:
			return NULL;
		case PB_PASS:
			break;
		}
	}
	folio = static_call(original_file)(gfp, order);
	barrier();
	return folio;
}

static noinline struct folio *replace_file(gfp_t gfp, unsigned int order)
{
	struct folio *folio;

	pb_enter();
	folio = file_folio(gfp, order);
	pb_leave();
	return folio;
}

struct folio *anon_prototype(gfp_t gfp, int order, struct vm_area_struct *vma,
			     unsigned long address, bool hugepage);
DEFINE_STATIC_CALL_NULL(original_anon, anon_prototype);

/*
 * Areas of shared memory may have policies of their own, which are not asked for: there is one
 * node (main.c), and they can only name that.
 */
static struct folio *anon_folio(gfp_t gfp, int order, struct vm_area_struct *vma,
				unsigned long address, bool hugepage)
{
	struct folio *folio = NULL;

	if (order) {
		/* Every caller goes on with less, down to one page. */
		if (refuses_large(vma->vm_mm))
			return NULL;
	} else if (!allows_node(vma->vm_policy ?: current->mempolicy)) {
		pb_count(policy_passed);
	} else {
		switch (take(gfp, vma->vm_mm, false, &folio)) {
		case PB_PAGE:
			pb_count(anon_pages);
			return folio;
		case PB_REFUSE:
			return NULL;
		case PB_PASS:
			break;
		}
	}
	folio = static_call(original_anon)(gfp, order, vma, address, hugepage);
	barrier();
	return folio;
}

static noinline struct folio *replace_anon(gfp_t gfp, int order, struct vm_area_struct *vma,
					   unsigned long address, bool hugepage)
{
	struct folio *folio;

	pb_enter();
	folio = anon_folio(gfp, order, vma, address, hugepage);
	pb_leave();
	return folio;
}

struct folio *mpol_prototype(gfp_t gfp, unsigned int order, struct mempolicy *policy,
			     pgoff_t ilx, int nid);
DEFINE_STATIC_CALL_NULL(original_mpol, mpol_prototype);

/*
 * Shared memory, which goes on with less as anonymous memory does, and what is read back from
 * swap with its neighbours.
 */
static struct folio *mpol_folio(gfp_t gfp, unsigned int order, struct mempolicy *policy,
				pgoff_t ilx, int nid)
{
	struct folio *folio = NULL;

	if (order) {
		if (refuses_large(NULL))
			return NULL;
	} else if (!allows_node(policy)) {
		pb_count(policy_passed);
	} else {
		switch (take(gfp, NULL, false, &folio)) {
		case PB_PAGE:
			pb_count(swap_and_shmem_pages);
			return folio;
		case PB_REFUSE:
			return NULL;
		case PB_PASS:
			break;
		}
	}
	folio = static_call(original_mpol)(gfp, order, policy, ilx, nid);
	barrier();
	return folio;
}

static noinline struct folio *replace_mpol(gfp_t gfp, unsigned int order,
					   struct mempolicy *policy, pgoff_t ilx, int nid)
{
	struct folio *folio;

	pb_enter();
	folio = mpol_folio(gfp, order, policy, ilx, nid);
	pb_leave();
	return folio;
}

DEFINE_STATIC_CALL_NULL(original_thp, __thp_vma_allowable_orders);

/*
 * No huge pages for groups with colours, neither by faults nor by khugepaged nor because a program
 * asks for them.
 */
static noinline unsigned long replace_thp(struct vm_area_struct *vma, unsigned long vm_flags,
					  unsigned long tva_flags, unsigned long orders)
{
	unsigned long allowed = 0;

	pb_enter();
	if (pb_set_of_current(vma->vm_mm))
		pb_count(thp_refused);
	else
		allowed = static_call(original_thp)(vma, vm_flags, tva_flags, orders);
	pb_leave();
	return allowed;
}

DEFINE_STATIC_CALL_NULL(original_mergeable, ksm_madvise);
DEFINE_STATIC_CALL_NULL(original_all_mergeable, ksm_enable_merge_any);

/*
 * Equal pages of several processes would become one, which has the colour of any of them. A
 * process with colours asks for it in vain, as where the kernel does not merge.
 */
static bool refuses_merging(void)
{
	if (!pb_current_is_colored())
		return false;
	pb_count(merging_refused);
	return true;
}

static noinline int replace_mergeable(struct vm_area_struct *vma, unsigned long start,
				      unsigned long end, int advice, unsigned long *vm_flags)
{
	int error = 0;

	pb_enter();
	if (advice != MADV_MERGEABLE || !refuses_merging())
		error = static_call(original_mergeable)(vma, start, end, advice, vm_flags);
	pb_leave();
	return error;
}

static noinline int replace_all_mergeable(struct mm_struct *mm)
{
	int error = 0;

	pb_enter();
	if (!refuses_merging())
		error = static_call(original_all_mergeable)(mm);
	pb_leave();
	return error;
}

void *pb_replacement(enum pb_hook_id hook)
{
	switch (hook) {
	case PB_HOOK_FILE:
		return replace_file;
	case PB_HOOK_ANON:
		return replace_anon;
	case PB_HOOK_MPOL:
		return replace_mpol;
	case PB_HOOK_THP:
		return replace_thp;
	case PB_HOOK_COMPACTION:
		return pb_compaction_replacement();
	case PB_HOOK_MERGEABLE:
		return replace_mergeable;
	case PB_HOOK_ALL_MERGEABLE:
		return replace_all_mergeable;
	default:
		return pb_reading_replacement(hook);
	}
}

void pb_set_original(enum pb_hook_id hook, void *original)
{
	switch (hook) {
	case PB_HOOK_FILE:
		static_call_update(original_file, original);
		break;
	case PB_HOOK_ANON:
		static_call_update(original_anon, original);
		break;
	case PB_HOOK_MPOL:
		static_call_update(original_mpol, original);
		break;
	case PB_HOOK_MERGEABLE:
		static_call_update(original_mergeable, original);
		break;
	case PB_HOOK_ALL_MERGEABLE:
		static_call_update(original_all_mergeable, original);
		break;
	case PB_HOOK_THP:
		static_call_update(original_thp, original);
		break;
	case PB_HOOK_COMPACTION:
		pb_compaction_set_original(original);
		break;
	default:
		pb_reading_set_original(hook, original);
	}
}
