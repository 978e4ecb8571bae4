// SPDX-License-Identifier: GPL-2.0
/*
 * Is this a kernel that the module was written for?
 *
 * Its version does not say: distributions change functions without changing that, and a function with
 * another argument corrupts memory. So before anything is called or replaced, the kernel's own type
 * information (BTF) is asked: each function has a signature of those in known.tsv, each field that the
 * module reaches lies where the compiler had it, and each number that it compares has its name's
 * value. A function of which the compiler made a second one by its name (.part, .isra, .constprop)
 * cannot be replaced: some of its callers may call the other. (.cold is no function.)
 *
 * known.tsv is made from the kernels' packages by known.py, and built in.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/fs.h>
#include <linux/list_lru.h>
#include <linux/memcontrol.h>
#include <linux/mempolicy.h>
#include <linux/migrate.h>
#include <linux/oom.h>
#include <linux/mm_inline.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/shrinker.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

/* Room for a signature. */
#define TEXT 512

static const struct known {
	const char *function;
	unsigned int variant;
	const char *signature;
} known[] = {
#include "known.h"
};

/* What the kernel's symbols say of the function in the same row of `known`. */
static struct seen {
	unsigned int times;
	char split[64];	/* another function that was made of it */
} seen[ARRAY_SIZE(known)];

static struct pb_btf btf;
static u32 *index;

/* --- fields and values -------------------------------------------------------- */

#define FIELD(type, member) \
	{ #type, #member, offsetof(struct type, member), sizeof_field(struct type, member) }
/* An array without a length at the end of a structure. */
#define LAST_FIELD(type, member) { #type, #member, offsetof(struct type, member), 0 }

static const struct {
	const char *type, *member;
	u32 offset, bytes;
} fields[] = {
	FIELD(address_space, host), FIELD(address_space, a_ops), FIELD(address_space, gfp_mask),
	FIELD(folio, flags), FIELD(folio, lru), FIELD(folio, mapping), FIELD(folio, index),
	FIELD(folio, _refcount),
	FIELD(free_area, free_list), FIELD(free_area, nr_free),
	FIELD(inode, i_sb), FIELD(inode, i_ino), FIELD(inode, i_generation), FIELD(inode, i_size),
	FIELD(lru_gen_folio, max_seq), FIELD(lru_gen_folio, min_seq),
	FIELD(lru_gen_folio, folios), FIELD(lru_gen_folio, enabled),
	FIELD(lruvec, lists), FIELD(lruvec, lru_lock), FIELD(lruvec, lrugen),
	FIELD(mem_cgroup, css), FIELD(mem_cgroup, memory), LAST_FIELD(mem_cgroup, nodeinfo),
	FIELD(mem_cgroup_per_node, lruvec), FIELD(mem_cgroup_per_node, lru_zone_size),
	FIELD(mem_cgroup_reclaim_cookie, pgdat), FIELD(mem_cgroup_reclaim_cookie, generation),
	FIELD(mempolicy, mode), FIELD(mempolicy, nodes), FIELD(mempolicy, home_node),
	FIELD(mm_struct, owner), FIELD(mm_struct, mmap_lock),
	FIELD(page, flags), FIELD(page, lru), FIELD(page, private), FIELD(page, _refcount),
	FIELD(oom_control, memcg), FIELD(oom_control, gfp_mask),
	FIELD(page_counter, usage), FIELD(page_counter, min), FIELD(page_counter, low), FIELD(page_counter, high),
	FIELD(page_counter, max), FIELD(page_counter, parent),
	FIELD(pglist_data, node_zones), FIELD(pglist_data, __lruvec), FIELD(pglist_data, node_zonelists),
	FIELD(pglist_data, node_start_pfn), FIELD(pglist_data, node_spanned_pages),
	FIELD(pglist_data, node_present_pages),
	FIELD(readahead_control, mapping), FIELD(readahead_control, _index),
	FIELD(shrink_control, nr_to_scan), FIELD(shrink_control, nid),
	FIELD(shrinker, count_objects), FIELD(shrinker, scan_objects),
	FIELD(signal_struct, live), FIELD(super_block, s_dev),
	FIELD(task_struct, flags), FIELD(task_struct, tgid), FIELD(task_struct, group_leader),
	FIELD(task_struct, start_boottime), FIELD(task_struct, signal), FIELD(task_struct, mm),
	FIELD(task_struct, mempolicy), FIELD(task_struct, mems_allowed), FIELD(task_struct, comm),
	FIELD(tracepoint, name),
	FIELD(vm_area_struct, vm_mm), FIELD(vm_area_struct, vm_flags),
	FIELD(vm_area_struct, vm_policy), FIELD(vm_area_struct, vm_pgoff), FIELD(vm_area_struct, vm_ops),
	FIELD(vm_operations_struct, get_policy),
	FIELD(zone, watermark_boost), FIELD(zone, lock), FIELD(zone, free_area),
	FIELD(zone, zone_pgdat), FIELD(zone, node), FIELD(zonelist, _zonerefs), FIELD(zoneref, zone),
};

#define VALUE(name) { #name, name }

static const struct {
	const char *name;
	s64 value;
} values[] = {
	VALUE(LRU_INACTIVE_FILE), VALUE(MIGRATE_MOVABLE), VALUE(MIGRATE_SYNC),
	VALUE(MPOL_BIND), VALUE(MPOL_INTERLEAVE), VALUE(MPOL_LOCAL), VALUE(MPOL_PREFERRED),
	VALUE(MPOL_WEIGHTED_INTERLEAVE),
	VALUE(MR_COMPACTION), VALUE(MR_DAMON), VALUE(MR_DEMOTION), VALUE(MR_MEMORY_FAILURE),
	VALUE(MR_MEMPOLICY_MBIND), VALUE(MR_NUMA_MISPLACED), VALUE(MR_SYSCALL), VALUE(N_MEMORY),
	VALUE(NR_INACTIVE_FILE), VALUE(NR_ISOLATED_ANON),
	VALUE(PG_active), VALUE(PG_dirty), VALUE(PG_head), VALUE(PG_locked), VALUE(PG_lru),
	VALUE(PG_private), VALUE(PG_referenced), VALUE(PG_swapbacked), VALUE(PG_unevictable),
	VALUE(PG_writeback),
	VALUE(ZONE_DMA32), VALUE(ZONE_MOVABLE), VALUE(ZONE_NORMAL),
};

static int check_fields(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		struct pb_btf_field found;

		if (!pb_btf_field(&btf, fields[i].type, strlen(fields[i].type), fields[i].member,
				  strlen(fields[i].member), &found)) {
			pr_err("struct %s of this kernel has no field %s\n", fields[i].type,
			       fields[i].member);
			return -EOPNOTSUPP;
		}
		if (found.bit != 8ULL * fields[i].offset || found.bytes != fields[i].bytes) {
			pr_err("field %s of this kernel's struct %s has %llu bytes from bit %llu; allowed: %u from bit %u, as in the headers that this module was built with\n",
			       fields[i].member, fields[i].type, found.bytes, found.bit,
			       fields[i].bytes, 8 * fields[i].offset);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static int check_values(void)
{
	unsigned int i;
	s64 found;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		if (pb_btf_value(&btf, values[i].name, strlen(values[i].name), &found) &&
		    found == values[i].value)
			continue;
		pr_err("%s of this kernel is not %lld, as in the headers that this module was built with\n",
		       values[i].name, values[i].value);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* --- functions ------------------------------------------------------------------ */

static int see(void *unused, const char *name, unsigned long address)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		size_t len = strlen(known[i].function);

		if (*name != *known[i].function || strncmp(name, known[i].function, len))
			continue;
		if (!name[len])
			seen[i].times++;
		else if (name[len] == '.' && strncmp(name + len, ".cold", 5))
			strscpy(seen[i].split, name, sizeof(seen[i].split));
	}
	return 0;
}

static const struct known *row_of(const char *function)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].function, function))
			return &known[i];
	return NULL;
}

/* Those allowed, as text. */
static void list_allowed(const char *function, char *text)
{
	unsigned int i;
	size_t len = 0;

	*text = 0;
	for (i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].function, function))
			len += scnprintf(text + len, 2 * TEXT - len, "%s\"%s\"", len ? " or " : "",
					 known[i].signature);
}

static int find_variant(const char *function, char *found, char *allowed, bool say)
{
	unsigned int i;
	size_t len = pb_btf_signature(&btf, function, strlen(function), found, TEXT - 1);

	found[len] = 0;
	for (i = 0; i < ARRAY_SIZE(known) && len; i++)
		if (!strcmp(known[i].function, function) && !strcmp(known[i].signature, found))
			return known[i].variant;
	list_allowed(function, allowed);
	if (say)
		pr_err("function %s of this kernel is \"%s\"; allowed: %s\n", function,
		       len ? found : "not described", *allowed ? allowed : "nothing");
	return -EOPNOTSUPP;
}

int pb_known_variant(const char *function, bool say)
{
	const struct known *row = row_of(function);
	char *text;
	int variant;

	if (row && seen[row - known].times > 1) {
		if (say)
			pr_err("this kernel has %u functions %s; allowed: 1\n",
			       seen[row - known].times, function);
		return -EOPNOTSUPP;
	}
	text = kmalloc(3 * TEXT, GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	variant = find_variant(function, text, text + TEXT, say);
	kfree(text);
	return variant;
}

bool pb_known_whole(const char *function, bool say)
{
	const struct known *row = row_of(function);

	if (!row || !*seen[row - known].split)
		return true;
	if (say)
		pr_err("function %s of this kernel cannot be replaced: some callers may call %s, which the compiler has made of it\n",
		       function, seen[row - known].split);
	return false;
}

/* --- the whole ------------------------------------------------------------------- */

int each_symbol_prototype(int (*see)(void *data, const char *name, unsigned long address), void *data);
DEFINE_STATIC_CALL_NULL(each_symbol, each_symbol_prototype);

static int open_types(void)
{
	const u8 *begin = (const u8 *)pb_lookup("__start_BTF");
	const u8 *end = (const u8 *)pb_lookup("__stop_BTF");
	size_t types = begin && begin < end ? pb_btf_types(begin, end - begin) : 0;

	if (!types) {
		pr_err("this kernel has no type information (BTF) that can be read, so its functions cannot be told\n");
		return -EOPNOTSUPP;
	}
	index = kvcalloc(types, sizeof(*index), GFP_KERNEL);
	if (!index)
		return -ENOMEM;
	return pb_btf_open(begin, end - begin, index, types, &btf) ? 0 : -EOPNOTSUPP;
}

int pb_known_begin(void)
{
	void *each;
	int error = open_types();

	if (error)
		return error;
	each = pb_symbol("kallsyms_on_each_symbol");
	if (!each || pb_known_variant("kallsyms_lookup_name", true) < 0)
		return -EOPNOTSUPP;
	static_call_update(each_symbol, (typeof(&each_symbol_prototype))each);
	static_call(each_symbol)(see, NULL);
	return check_fields() ?: check_values();
}

void pb_known_end(void)
{
	kvfree(index);
	index = NULL;
}
