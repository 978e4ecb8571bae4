// SPDX-License-Identifier: GPL-2.0
/*
 * Replacements for the functions that give frames to processes: every page of the page cache
 * and of anonymous memory comes through one of the first three.
 *
 * What is left to the kernel's own function:
 *   - memory that may not move or that a device needs (unmovable_passed): its frames stay for
 *     long and are not the process's alone;
 *   - requests under a memory policy that names none of this machine's nodes (policy_passed);
 *   - whatever the pool cannot serve (other_frames), which then reclaims, waits or calls the
 *     out-of-memory killer as without the module.
 *
 * On a machine with more than one memory node, policies are as they were set: the nearest node is asked first,
 * or the one that the policy prefers, and no other than it binds to. Where only the kernel knows the next node, as
 * with interleaving, it is asked for a page, and that is exchanged for one of the same node (exchange).
 *
 * Blocks of several pages hold several colours if these follow from low bits of the address. A group with colours is
 * refused such blocks as if memory were too fragmented, and goes on with single pages. A file system with blocks larger than
 * a page cannot; its last try is the one without __GFP_NORETRY, which is passed on. Groups without
 * colours have them as ever, from what is left. A block of one colour is asked for again until it has one that the
 * group may have: blocks that have are put in front of the kernel's lists (pick.c).
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/cpuset.h>
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

/* Times that another block is asked for, as one has a colour that the group may not have. */
#define OTHERS 16

/* What a replacement is asked for, and what came of it. */
struct asked {
	struct pb_request request;	/* with flags, memory and kind */
	unsigned int order;
	enum pb_counter pages;		/* counts what is served */
	bool exchange;			/* the kernel's page tells the node */
	bool is_whole;			/* a block of one colour is asked for, which the group may have */
	bool must_fit;			/* rather none than one of another colour */
	int color;			/* the one whose turn it is, or -1 */
	unsigned int others;		/* blocks that had another */
	struct list_head aside;		/* these, until all is over */
	struct folio *folio;
};

/*
 * Does a policy allow the machine's node? There is one, so every such policy asks for what
 * everybody gets. To set one needs no right, so it must not lead out of the colours.
 */
static bool allows_node(const struct mempolicy *policy)
{
	return !policy || policy->mode == MPOL_LOCAL ||
	       node_isset(pb_node_number(0), policy->nodes);
}

enum placing { PLACED, ASK_KERNEL, ELSEWHERE };

/* Says where the kernel would look first under this policy, and where it may look. */
static enum placing place(struct pb_request *r, const struct mempolicy *policy, int nid)
{
	r->nid = nid == NUMA_NO_NODE ? numa_mem_id() : nid;
	if (pb_one_node())
		return allows_node(policy) ? PLACED : ELSEWHERE;
	switch (policy ? policy->mode : MPOL_LOCAL) {
	case MPOL_LOCAL:
		return PLACED;
	case MPOL_PREFERRED:
		r->nid = first_node(policy->nodes);
		return node_online(r->nid) ? PLACED : ASK_KERNEL;
	case MPOL_BIND:
		if (policy->home_node != NUMA_NO_NODE)
			r->nid = policy->home_node;
		/* Else what the cpuset allows, as the kernel does. */
		if (nodes_intersects(policy->nodes, cpuset_current_mems_allowed))
			r->nodes = &policy->nodes;
		return PLACED;
	default:
		return ASK_KERNEL;
	}
}

/* A single page for the running task. */
static enum pb_answer take(struct asked *a)
{
	enum pb_answer answer;
	struct page *page;

	answer = pb_pool_take(&a->request, &page);
	if (answer == PB_PAGE) {
		a->folio = page_folio(page);
		pb_count_many(a->pages, 1);
	}
	if (answer == PB_PASS)
		pb_count(other_frames);
	return answer;
}

/* Exchanges the kernel's page, if that has another colour, for one of the same node. */
static void exchange(struct asked *a)
{
	struct pb_request *r = &a->request;
	struct folio *theirs = a->folio;
	enum pb_answer answer;
	nodemask_t there;

	if (!theirs || folio_test_large(theirs) || pb_node_at(folio_nid(theirs)) < 0)
		return;
	if (pb_fits(r->set, folio_pfn(theirs))) {
		pb_count_many(a->pages, 1);
		return;
	}
	there = nodemask_of_node(folio_nid(theirs));
	r->nid = folio_nid(theirs);
	r->nodes = &there;
	r->own_only = true;
	a->folio = NULL;
	answer = take(a);
	/* None of these policies forbids another node. */
	if (answer != PB_PAGE) {
		r->own_only = false;
		r->nodes = NULL;
		answer = take(a);
	}
	if (answer == PB_PASS)
		a->folio = theirs;
	else
		folio_put(theirs);
}

/*
 * Is a block of several pages refused? Blocks of one colour are had as single pages are. SRM-buffer has all files in single
 * pages.
 */
static bool refuses_large(struct asked *a)
{
	struct pb_request *r = &a->request;
	bool may_refuse = !r->is_file || r->gfp & __GFP_NORETRY;

	if (!is_movable(r->gfp)) {
		pb_count(unmovable_passed);
		return false;
	}
	r->set = pb_set_of_current(r->mm);
	a->is_whole = a->order <= READ_ONCE(pb_whole_order) && !(r->is_file && pb_zone_is_on());
	a->must_fit = r->set && may_refuse;
	if (a->is_whole) {
		INIT_LIST_HEAD(&a->aside);
		a->color = pb_turn_of_block(r->set);
		return false;
	}
	if (may_refuse && (r->set || (r->is_file && pb_zone_is_on()))) {
		pb_count(large_refused);
		return true;
	}
	pb_count(large_passed);
	return false;
}

/* Is the kernel to be asked once more, as its block has another colour and there are better ones? */
static bool wants_other(struct asked *a)
{
	struct pb_request *r = &a->request;
	int node;

	if (!a->is_whole || !a->folio || a->others == OTHERS || pb_suits(r->set, folio_pfn(a->folio), a->color))
		return false;
	node = pb_node_of(&a->folio->page);
	if (node < 0)
		return false;
	if (!pb_pick_forward(node, r->set, a->order, a->color)) {
		/* Another one of its colours is as good. */
		if (a->color < 0 || pb_fits(r->set, folio_pfn(a->folio)))
			return false;
		a->color = -1;
		if (!pb_pick_forward(node, r->set, a->order, a->color))
			return false;
	}
	a->others++;
	list_add(&a->folio->lru, &a->aside);
	a->folio = NULL;
	/* Nothing is to be reclaimed for its colour. */
	r->gfp = (r->gfp & ~__GFP_DIRECT_RECLAIM) | __GFP_NORETRY | __GFP_NOWARN;
	return true;
}

/* Who has no colours keeps a block of any, if there is no better one. */
static void settle_block(struct asked *a)
{
	u64 set = a->request.set;
	struct folio *folio, *next;

	if (a->folio)
		list_add(&a->folio->lru, &a->aside);
	a->folio = NULL;
	list_for_each_entry(folio, &a->aside, lru) {
		if (!a->folio && !a->must_fit)
			a->folio = folio;
		if (pb_fits(set, folio_pfn(folio))) {
			a->folio = folio;
			break;
		}
	}
	if (!a->folio && a->must_fit)
		pb_count(large_refused);
	else if (a->folio && set && pb_fits(set, folio_pfn(a->folio)))
		pb_count(large_colored);
	else
		pb_count(large_passed);
	list_for_each_entry_safe(folio, next, &a->aside, lru) {
		list_del(&folio->lru);
		if (folio != a->folio)
			folio_put(folio);
	}
}

/*
 * Is a request answered, by a page or (NULL) a refusal? If not, the kernel's own function serves it. It
 * begins at a node, or (NUMA_NO_NODE) at the nearest. Where pages are spread, the kernel is asked for the next node.
 */
static bool answers(struct asked *a, const struct mempolicy *policy, int nid, bool spread)
{
	struct pb_request *r = &a->request;
	enum placing placing;

	if (a->order)
		return refuses_large(a);
	placing = place(r, policy, nid);
	if (placing == ELSEWHERE) {
		pb_count(policy_passed);
		return false;
	}
	if (!is_movable(r->gfp)) {
		pb_count(unmovable_passed);
		return false;
	}
	r->tgid = current->tgid;
	r->set = pb_set_of_current(r->mm);
	a->exchange = placing == ASK_KERNEL || (spread && !pb_one_node());
	return !a->exchange && take(a) != PB_PASS;
}

/* Was a block asked for in vain, which is worth another try, since the pool has made way for it? */
static bool is_worth_retrying(const struct asked *a)
{
	return !a->folio && a->order && pb_pool_make_way();
}

/* Asks the kernel, if the request is not answered. What the kernel's function is, the caller knows. */
#define answer(a, policy, nid, spread, original) do { \
	if (answers(a, policy, nid, spread)) \
		break; \
	(a)->folio = original; \
	if (is_worth_retrying(a)) \
		(a)->folio = original; \
	while (wants_other(a)) \
		(a)->folio = original; \
	if ((a)->is_whole) \
		settle_block(a); \
	if ((a)->exchange) \
		exchange(a); \
} while (0)

/*
 * The page cache's function, or the one below it where the compiler has split that: a part of its
 * callers then call that alone. What others ask that one for is not movable, and passed on.
 */
struct folio *file_prototype(gfp_t gfp, unsigned int order);
PB_ORIGINAL(file, file_prototype)

static noinline struct folio *replace_file(gfp_t gfp, unsigned int order)
{
	struct asked a = {
		.request = { .gfp = gfp, .is_file = true },
		.order = order,
		.pages = PB_C_file_pages,
	};

	pb_enter();
	answer(&a, current->mempolicy, NUMA_NO_NODE, cpuset_do_page_mem_spread(),
	       static_call(original_file)(a.request.gfp, order));
	pb_leave();
	return a.folio;
}

/* Who asks for a large block goes on with less, down to one page. */
static __always_inline struct asked for_anon(gfp_t gfp, int order, struct vm_area_struct *vma)
{
	return (struct asked){
		.request = { .gfp = gfp, .mm = vma->vm_mm },
		.order = order,
		.pages = PB_C_anon_pages,
	};
}

struct folio *mpol_prototype(gfp_t gfp, unsigned int order, struct mempolicy *policy,
			     pgoff_t ilx, int nid);
PB_ORIGINAL(mpol, mpol_prototype)

/*
 * The policy at an address, to be let go: an area of shared memory may have its own, of which private mappings are too. With
 * one node all that are possible mean the same.
 */
static struct mempolicy *policy_at(struct vm_area_struct *vma, unsigned long address, pgoff_t *at)
{
	struct mempolicy *policy = vma->vm_policy;

	*at = 0;
	if (!pb_one_node() && vma->vm_ops && vma->vm_ops->get_policy)
		policy = vma->vm_ops->get_policy(vma, address, at);
	return policy ?: current->mempolicy;
}

/*
 * The kernel's page for an address, by the function below the one that was called: that would ask the replacement of
 * this one, which does not know whose memory it is for.
 */
static struct folio *by_policy(gfp_t gfp, struct vm_area_struct *vma, unsigned long address,
			       struct mempolicy *policy, pgoff_t at)
{
	if (policy->mode == MPOL_INTERLEAVE || policy->mode == MPOL_WEIGHTED_INTERLEAVE)
		at += vma->vm_pgoff + ((address - vma->vm_start) >> PAGE_SHIFT);
	return static_call(original_mpol)(gfp, 0, policy, at, numa_mem_id());
}

void put_prototype(struct mempolicy *policy);
DEFINE_STATIC_CALL_NULL(put_policy, put_prototype);

static void let_go(struct mempolicy *policy)
{
	if (mpol_needs_cond_ref(policy))
		static_call(put_policy)(policy);
}

int pb_user_set_up(void)
{
	void *put = pb_symbol("__mpol_put");

	if (!put)
		return -EOPNOTSUPP;
	static_call_update(put_policy, put);
	return 0;
}

/* The first variant is told whether a huge page is asked for. */
struct folio *anon_1_prototype(gfp_t gfp, int order, struct vm_area_struct *vma,
			       unsigned long address, bool hugepage);
PB_ORIGINAL(anon_1, anon_1_prototype)

static noinline struct folio *replace_anon_1(gfp_t gfp, int order, struct vm_area_struct *vma,
					     unsigned long address, bool hugepage)
{
	struct asked a = for_anon(gfp, order, vma);
	struct mempolicy *policy;
	pgoff_t at;

	pb_enter();
	policy = policy_at(vma, address, &at);
	answer(&a, policy, NUMA_NO_NODE, false, a.exchange ? by_policy(gfp, vma, address, policy, at) :
	       static_call(original_anon_1)(a.request.gfp, order, vma, address, hugepage));
	let_go(policy);
	pb_leave();
	return a.folio;
}

struct folio *anon_2_prototype(gfp_t gfp, int order, struct vm_area_struct *vma,
			       unsigned long address);
PB_ORIGINAL(anon_2, anon_2_prototype)

static noinline struct folio *replace_anon_2(gfp_t gfp, int order, struct vm_area_struct *vma,
					     unsigned long address)
{
	struct asked a = for_anon(gfp, order, vma);
	struct mempolicy *policy;
	pgoff_t at;

	pb_enter();
	policy = policy_at(vma, address, &at);
	answer(&a, policy, NUMA_NO_NODE, false, a.exchange ? by_policy(gfp, vma, address, policy, at) :
	       static_call(original_anon_2)(a.request.gfp, order, vma, address));
	let_go(policy);
	pb_leave();
	return a.folio;
}

/*
 * Shared memory, which goes on with less as anonymous memory does, and what is read back from
 * swap with its neighbours.
 */
static noinline struct folio *replace_mpol(gfp_t gfp, unsigned int order,
					   struct mempolicy *policy, pgoff_t ilx, int nid)
{
	struct asked a = {
		.request = { .gfp = gfp },
		.order = order,
		.pages = PB_C_swap_and_shmem_pages,
	};

	pb_enter();
	answer(&a, policy, nid, false,
	       static_call(original_mpol)(a.request.gfp, order, policy, ilx, nid));
	pb_leave();
	return a.folio;
}

/* What the third argument is (words of flags, or a number) only the kernel's function asks. */
unsigned long thp_prototype(struct vm_area_struct *vma, unsigned long vm_flags,
			    unsigned long why, unsigned long orders);
PB_ORIGINAL(thp, thp_prototype)

/*
 * Groups with colours have no huge pages that hold several, and none that khugepaged or a program's wish puts together,
 * as these ask for a block of any colour.
 */
static noinline unsigned long replace_thp(struct vm_area_struct *vma, unsigned long vm_flags,
					  unsigned long why, unsigned long orders)
{
	unsigned long allowed = 0;

	pb_enter();
	if (pb_set_of_current(vma->vm_mm))
		orders &= pb_asks_for_fault(why) ? (2UL << READ_ONCE(pb_whole_order)) - 1 : 0;
	if (orders)
		allowed = static_call(original_thp)(vma, vm_flags, why, orders);
	else
		pb_count(thp_refused);
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
