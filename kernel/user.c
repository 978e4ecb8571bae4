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
	if (!is_movable(gfp)) {
		pb_count(unmovable_passed);
		return false;
	}
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

/*
 * Is a request answered, by *folio or (NULL) a refusal? If not, the kernel's own function serves it. The
 * group of this memory is charged, or (NULL) the running task's; `pages` counts what is served.
 */
static bool answers(gfp_t gfp, unsigned int order, const struct mempolicy *policy,
		    struct mm_struct *mm, enum pb_counter pages, struct folio **folio)
{
	bool is_file = pages == PB_C_file_pages;

	*folio = NULL;
	if (order)
		return is_file ? refuses_large_file(gfp) : refuses_large(mm);
	if (!allows_node(policy)) {
		pb_count(policy_passed);
		return false;
	}
	switch (take(gfp, mm, is_file, folio)) {
	case PB_PAGE:
		pb_count_many(pages, 1);
		return true;
	case PB_REFUSE:
		return true;
	case PB_PASS:
		break;
	}
	return false;
}

/* Was a block asked for in vain, which is worth another try, since the pool has made way for it? */
static bool is_worth_retrying(const struct folio *folio, unsigned int order)
{
	return !folio && order && pb_pool_make_way();
}

/*
 * The page cache's function, or the one below it where the compiler has split that: a part of its
 * callers then call that alone. What others ask that one for is not movable, and passed on.
 */
struct folio *file_prototype(gfp_t gfp, unsigned int order);
PB_ORIGINAL(file, file_prototype)

static noinline struct folio *replace_file(gfp_t gfp, unsigned int order)
{
	struct folio *folio;

	pb_enter();
	if (!answers(gfp, order, current->mempolicy, NULL, PB_C_file_pages, &folio)) {
		folio = static_call(original_file)(gfp, order);
		if (is_worth_retrying(folio, order))
			folio = static_call(original_file)(gfp, order);
	}
	pb_leave();
	return folio;
}

/*
 * Areas of shared memory may have policies of their own, which are not asked for: there is one
 * node (main.c), and they can only name that. Who asks for a large block goes on with less, down to
 * one page.
 */
static bool answers_anon(gfp_t gfp, int order, struct vm_area_struct *vma, struct folio **folio)
{
	return answers(gfp, order, vma->vm_policy ?: current->mempolicy, vma->vm_mm,
		       PB_C_anon_pages, folio);
}

/* The first variant is told whether a huge page is asked for. */
struct folio *anon_1_prototype(gfp_t gfp, int order, struct vm_area_struct *vma,
			       unsigned long address, bool hugepage);
PB_ORIGINAL(anon_1, anon_1_prototype)

static noinline struct folio *replace_anon_1(gfp_t gfp, int order, struct vm_area_struct *vma,
					     unsigned long address, bool hugepage)
{
	struct folio *folio;

	pb_enter();
	if (!answers_anon(gfp, order, vma, &folio)) {
		folio = static_call(original_anon_1)(gfp, order, vma, address, hugepage);
		if (is_worth_retrying(folio, order))
			folio = static_call(original_anon_1)(gfp, order, vma, address, hugepage);
	}
	pb_leave();
	return folio;
}

struct folio *anon_2_prototype(gfp_t gfp, int order, struct vm_area_struct *vma,
			       unsigned long address);
PB_ORIGINAL(anon_2, anon_2_prototype)

static noinline struct folio *replace_anon_2(gfp_t gfp, int order, struct vm_area_struct *vma,
					     unsigned long address)
{
	struct folio *folio;

	pb_enter();
	if (!answers_anon(gfp, order, vma, &folio)) {
		folio = static_call(original_anon_2)(gfp, order, vma, address);
		if (is_worth_retrying(folio, order))
			folio = static_call(original_anon_2)(gfp, order, vma, address);
	}
	pb_leave();
	return folio;
}

struct folio *mpol_prototype(gfp_t gfp, unsigned int order, struct mempolicy *policy,
			     pgoff_t ilx, int nid);
PB_ORIGINAL(mpol, mpol_prototype)

/*
 * Shared memory, which goes on with less as anonymous memory does, and what is read back from
 * swap with its neighbours.
 */
static noinline struct folio *replace_mpol(gfp_t gfp, unsigned int order,
					   struct mempolicy *policy, pgoff_t ilx, int nid)
{
	struct folio *folio;

	pb_enter();
	if (!answers(gfp, order, policy, NULL, PB_C_swap_and_shmem_pages, &folio)) {
		folio = static_call(original_mpol)(gfp, order, policy, ilx, nid);
		if (is_worth_retrying(folio, order))
			folio = static_call(original_mpol)(gfp, order, policy, ilx, nid);
	}
	pb_leave();
	return folio;
}

/* What the third argument is (words of flags, or a number) only the kernel's function asks. */
unsigned long thp_prototype(struct vm_area_struct *vma, unsigned long vm_flags,
			    unsigned long why, unsigned long orders);
PB_ORIGINAL(thp, thp_prototype)

/*
 * No huge pages for groups with colours, neither by faults nor by khugepaged nor because a program
 * asks for them.
 */
static noinline unsigned long replace_thp(struct vm_area_struct *vma, unsigned long vm_flags,
					  unsigned long why, unsigned long orders)
{
	unsigned long allowed = 0;

	pb_enter();
	if (pb_set_of_current(vma->vm_mm))
		pb_count(thp_refused);
	else
		allowed = static_call(original_thp)(vma, vm_flags, why, orders);
	pb_leave();
	return allowed;
}

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

int mergeable_prototype(struct vm_area_struct *vma, unsigned long start, unsigned long end,
			int advice, vm_flags_t *vm_flags);
PB_ORIGINAL(mergeable, mergeable_prototype)

static noinline int replace_mergeable(struct vm_area_struct *vma, unsigned long start,
				      unsigned long end, int advice, vm_flags_t *vm_flags)
{
	int error = 0;

	pb_enter();
	if (advice != MADV_MERGEABLE || !refuses_merging())
		error = static_call(original_mergeable)(vma, start, end, advice, vm_flags);
	pb_leave();
	return error;
}

PB_ORIGINAL(all_mergeable, ksm_enable_merge_any)

static noinline int replace_all_mergeable(struct mm_struct *mm)
{
	int error = 0;

	pb_enter();
	if (!refuses_merging())
		error = static_call(original_all_mergeable)(mm);
	pb_leave();
	return error;
}

const struct pb_variant pb_user_variants[] = {
	PB_VARIANT(PB_HOOK_FILE, "filemap_alloc_folio_noprof", 1, file),
	PB_VARIANT(PB_HOOK_FILE, "folio_alloc_noprof", 1, file),
	PB_VARIANT(PB_HOOK_ANON, "vma_alloc_folio_noprof", 1, anon_1),
	PB_VARIANT(PB_HOOK_ANON, "vma_alloc_folio_noprof", 2, anon_2),
	PB_VARIANT(PB_HOOK_MPOL, "folio_alloc_mpol_noprof", 1, mpol),
	PB_VARIANT(PB_HOOK_THP, "__thp_vma_allowable_orders", 1, thp),
	PB_VARIANT(PB_HOOK_MERGEABLE, "ksm_madvise", 1, mergeable),
	PB_VARIANT(PB_HOOK_ALL_MERGEABLE, "ksm_enable_merge_any", 1, all_mergeable),
	{ }
};
