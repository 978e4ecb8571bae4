// SPDX-License-Identifier: GPL-2.0
/*
 * Which control groups have which colour sets.
 *
 * A set is attached to groups of the memory controller, and a page has the colours of the nearest
 * group above its own, from that one up, that has a set with colours: of the group that is charged
 * for the page. So children inherit, and moving a task moves no page. A set may belong to several groups.
 *
 * A group that was removed has no set any more: what it is still charged for has the colours of the
 * groups above it. Its record stays until somebody looks at the set's groups.
 *
 * Records are changed with pb_switch and pb_lock held, and looked up under RCU alone.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/cgroup.h>
#include <linux/hashtable.h>
#include <linux/memcontrol.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

/* A group with a set. */
struct pb_group {
	struct hlist_node node;
	struct list_head beside;	/* in all */
	struct mem_cgroup *memory;	/* with a reference */
	struct pb_set *set;
	u64 number;			/* rises with each group */
	struct rcu_head rcu;
	char path[];			/* when it was attached */
};

static DEFINE_HASHTABLE(groups, 8);
static LIST_HEAD(all);		/* groups, oldest first */
static u64 numbers;

/* --- whose page it is ---------------------------------------------------------- */

/* From rmdir on a group is none; the kernel calls it online for a moment more. */
bool pb_group_lives(struct mem_cgroup *memory)
{
	return !css_is_dying(&memory->css);
}

/* Under RCU. */
static struct pb_group *record_of(const struct mem_cgroup *memory)
{
	struct pb_group *group;

	hash_for_each_possible_rcu(groups, group, node, (unsigned long)memory)
		if (group->memory == memory)
			return group;
	return NULL;
}

/* The record whose colours the pages of a group have, or none. Under RCU. */
static struct pb_group *colored_above(struct mem_cgroup *memory)
{
	struct pb_group *group;

	for (; memory; memory = parent_mem_cgroup(memory)) {
		group = record_of(memory);
		if (group && READ_ONCE(group->set->colored) && pb_group_lives(memory))
			return group;
	}
	return NULL;
}

u64 pb_set_of_group(struct mem_cgroup *memory)
{
	struct pb_group *group = colored_above(memory);

	return group ? group->set->number : 0;
}

/* Which group a page for the running task is charged to; under RCU, as charging does it. */
static struct mem_cgroup *charged(struct mm_struct *mm)
{
	if (!mm) {
		if (current->active_memcg)
			return current->active_memcg;
		mm = current->mm;
	}
	return mm ? mem_cgroup_from_task(rcu_dereference(mm->owner)) : NULL;
}

u64 pb_set_of_current(struct mm_struct *mm)
{
	u64 number = 0;

	if (!pb_sets_any())
		return 0;
	rcu_read_lock();
	number = pb_set_of_group(charged(mm));
	rcu_read_unlock();
	return number;
}

bool pb_current_is_colored(void)
{
	return pb_set_of_current(NULL);
}

/* --- the groups of a set -------------------------------------------------------- */

struct mem_cgroup *pb_owner_of_current(struct mm_struct *mm)
{
	struct mem_cgroup *memory = NULL;
	struct pb_group *group;

	rcu_read_lock();
	group = colored_above(charged(mm));
	if (group && css_tryget_online(&group->memory->css))
		memory = group->memory;
	rcu_read_unlock();
	return memory;
}

struct mem_cgroup *pb_next_owner(u64 number, u64 *last)
{
	struct mem_cgroup *memory = NULL;
	struct pb_group *group;
	struct pb_set *set;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	list_for_each_entry(group, &all, beside) {
		if (!set || group->number <= *last || !group->set->colored ||
		    !pb_core_overlap(pb_core, &set->seat, &group->set->seat) ||
		    !css_tryget_online(&group->memory->css))
			continue;
		*last = group->number;
		memory = group->memory;
		break;
	}
	spin_unlock(&pb_lock);
	return memory;
}

static void free_group(struct pb_group *group)
{
	css_put(&group->memory->css);
	kfree_rcu(group, rcu);
}

/* With pb_lock held; who calls frees it afterwards. */
static void take_out(struct pb_group *group)
{
	hash_del_rcu(&group->node);
	list_del(&group->beside);
}

void pb_groups_release(struct pb_set *set, bool removed_only)
{
	struct pb_group *group, *next;
	LIST_HEAD(gone);

	spin_lock(&pb_lock);
	list_for_each_entry_safe(group, next, &all, beside) {
		if (group->set != set || (removed_only && pb_group_lives(group->memory)))
			continue;
		take_out(group);
		list_add(&group->beside, &gone);
	}
	pb_new_version();
	spin_unlock(&pb_lock);
	list_for_each_entry_safe(group, next, &gone, beside)
		free_group(group);
}

size_t pb_set_print_groups(struct pb_set *set, char *out, size_t len)
{
	struct pb_group *group;
	size_t at = 0;

	pb_groups_release(set, true);
	spin_lock(&pb_lock);
	list_for_each_entry(group, &all, beside)
		if (group->set == set)
			at += scnprintf(out + at, len - at, "%s\n", group->path);
	spin_unlock(&pb_lock);
	return at;
}

/* The group that a path or a descriptor names, with a reference, or an error and the reason. */
static struct cgroup *group_named(const char *name, char *why)
{
	struct cgroup *found;
	int fd;

	if (*name == '/') {
		found = cgroup_get_from_path(name);
	} else if (!kstrtoint(name, 10, &fd) && fd >= 0) {
		found = cgroup_get_from_fd(fd);
	} else {
		snprintf(why, PB_TEXT, "\"%.200s\"; allowed: the path of a control group, as in /proc/PID/cgroup, or the number of a descriptor of its directory",
			 name);
		return ERR_PTR(-EINVAL);
	}
	if (IS_ERR(found))
		snprintf(why, PB_TEXT, "%.200s is no control group of version 2; allowed: the path of one, as in /proc/PID/cgroup, or the number of a descriptor of its directory",
			 name);
	return found;
}

/* The memory controller's side of a group, with a reference, or an error and the reason. */
static struct mem_cgroup *memory_of(struct cgroup *group, const char *name, char *why)
{
	struct cgroup_subsys_state *css;

	rcu_read_lock();
	css = rcu_dereference(group->subsys[memory_cgrp_id]);
	if (css && !css_tryget_online(css))
		css = NULL;
	rcu_read_unlock();
	if (!css) {
		snprintf(why, PB_TEXT, "%.200s has no memory controller; write +memory to cgroup.subtree_control of the group above it",
			 name);
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (css->parent)
		return mem_cgroup_from_css(css);
	css_put(css);
	strscpy(why, "the root group stands for everyone else; allowed: a group below it", PB_TEXT);
	return ERR_PTR(-EINVAL);
}

/* With pb_switch held. */
static int add_group(struct pb_set *set, struct pb_group *fresh, char *why)
{
	struct pb_group *old;

	spin_lock(&pb_lock);
	rcu_read_lock();
	old = record_of(fresh->memory);
	rcu_read_unlock();
	if (!old) {
		fresh->set = set;
		fresh->number = ++numbers;
		hash_add_rcu(groups, &fresh->node, (unsigned long)fresh->memory);
		list_add_tail(&fresh->beside, &all);
		pb_new_version();
	}
	spin_unlock(&pb_lock);
	if (!old)
		return 0;
	snprintf(why, PB_TEXT, "%.200s has the set %.40s already; detach it there first",
		 fresh->path, config_item_name(&old->set->item));
	return old->set == set ? -EEXIST : -EBUSY;
}

int pb_set_attach(struct pb_set *set, const char *name, char *why)
{
	struct cgroup *group = group_named(name, why);
	struct mem_cgroup *memory;
	struct pb_group *fresh;
	int error;

	pb_groups_release(set, true);
	if (IS_ERR(group))
		return PTR_ERR(group);
	memory = memory_of(group, name, why);
	if (IS_ERR(memory)) {
		cgroup_put(group);
		return PTR_ERR(memory);
	}
	fresh = kzalloc(sizeof(*fresh) + PATH_MAX, GFP_KERNEL);
	if (!fresh) {
		strscpy(why, "no memory", PB_TEXT);
		error = -ENOMEM;
		css_put(&memory->css);
		goto out;
	}
	fresh->memory = memory;
	cgroup_path(group, fresh->path, PATH_MAX);
	error = add_group(set, fresh, why);
	if (error) {
		css_put(&memory->css);
		kfree(fresh);
	}
out:
	cgroup_put(group);
	return error;
}

int pb_set_detach(struct pb_set *set, const char *name, char *why)
{
	struct cgroup *named = NULL;
	struct pb_group *group, *found = NULL;

	pb_groups_release(set, true);
	if (*name != '/') {
		named = group_named(name, why);
		if (IS_ERR(named))
			return PTR_ERR(named);
	}
	spin_lock(&pb_lock);
	list_for_each_entry(group, &all, beside) {
		if (group->set != set ||
		    (named ? group->memory->css.cgroup != named : strcmp(group->path, name)))
			continue;
		found = group;
		take_out(found);
		pb_new_version();
		break;
	}
	spin_unlock(&pb_lock);
	if (named)
		cgroup_put(named);
	if (!found) {
		snprintf(why, PB_TEXT, "%.200s does not have this set; allowed: a line of the file groups",
			 name);
		return -ENOENT;
	}
	free_group(found);
	return 0;
}
