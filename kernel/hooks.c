// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the kernel that are replaced while colouring is on.
 *
 * Each has an ftrace operation that changes the instruction pointer at its entry, unless the
 * caller is this module: so a replacement can call the original, as long as that is no tail
 * call. (A live patch would act on each task only when it leaves the kernel, and hide the
 * original.) Switched off, the kernel runs as if the module were not there. While a function is
 * replaced, nobody can switch ftrace off (the sysctl kernel.ftrace_enabled), which would end colouring
 * without a word.
 *
 * A replacement may sleep, so code of the module may be on a task's stack when the hooks are
 * taken off. Who enters counts itself (user.c). After the last hook is off, nobody new is
 * sent here; a task that was sent and has not counted itself yet, or has uncounted itself and
 * not returned yet, does not sleep there, and synchronize_rcu_tasks() waits for it.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/module.h>

struct pb_hook {
	const char *name;
	unsigned long address;
	void *replacement;
	struct ftrace_ops ops;
};

/* The code of this module. */
static unsigned long text_start, text_size;

static void notrace redirect(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			     struct ftrace_regs *regs)
{
	struct pb_hook *hook = container_of(ops, struct pb_hook, ops);

	if (parent_ip - text_start >= text_size)
		ftrace_regs_set_instruction_pointer(regs, (unsigned long)hook->replacement);
}

#define HOOK(function) {							\
	.name = function,							\
	.ops = {								\
		.func = redirect,						\
		.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,	\
	},									\
}

static struct pb_hook hooks[PB_NR_HOOKS] = {
	[PB_HOOK_FILE] = HOOK("filemap_alloc_folio_noprof"),
	[PB_HOOK_ANON] = HOOK("vma_alloc_folio_noprof"),
	[PB_HOOK_MPOL] = HOOK("folio_alloc_mpol_noprof"),
	[PB_HOOK_THP] = HOOK("__thp_vma_allowable_orders"),
	[PB_HOOK_COMPACTION] = HOOK("migrate_pages"),
	[PB_HOOK_MERGEABLE] = HOOK("ksm_madvise"),
	[PB_HOOK_ALL_MERGEABLE] = HOOK("ksm_enable_merge_any"),
	[PB_HOOK_READAHEAD] = HOOK("page_cache_ra_unbounded"),
	[PB_HOOK_LARGE_READAHEAD] = HOOK("page_cache_ra_order"),
	[PB_HOOK_GET_FOLIO] = HOOK("__filemap_get_folio"),
};

/* The hooks of a group, first and behind the last. */
static const struct {
	unsigned int first, end;
} groups[PB_NR_GROUPS] = {
	[PB_GROUP_FRAMES] = { 0, PB_NR_FRAME_HOOKS },
	[PB_GROUP_FILES] = { PB_NR_FRAME_HOOKS, PB_NR_HOOKS },
};

static bool are_on[PB_NR_GROUPS];

bool pb_hooks_are_on(enum pb_hook_group group)
{
	return READ_ONCE(are_on[group]);
}

int pb_hooks_find(void)
{
	unsigned int i;
	int error;

	text_start = (unsigned long)THIS_MODULE->mem[MOD_TEXT].base;
	text_size = THIS_MODULE->mem[MOD_TEXT].size;
	for (i = 0; i < PB_NR_HOOKS; i++) {
		struct pb_hook *hook = &hooks[i];

		hook->replacement = pb_replacement(i);
		hook->address = (unsigned long)pb_symbol(hook->name);
		if (!hook->address)
			return -EOPNOTSUPP;
		pb_set_original(i, (void *)hook->address);
		/* With indirect branch tracking the place is behind the landing mark. */
		error = ftrace_set_filter_ip(&hook->ops, hook->address + 4, 0, 0);
		if (error)
			error = ftrace_set_filter_ip(&hook->ops, hook->address, 0, 0);
		if (error) {
			pr_err("function %s of this kernel cannot be replaced: error %d\n",
			       hook->name, error);
			return -EOPNOTSUPP;
		}
	}
	return 0;
}

static void take_off(unsigned int first, unsigned int end)
{
	while (end-- > first) {
		int error = unregister_ftrace_function(&hooks[end].ops);

		WARN_ONCE(error, "hook %s cannot be taken off: %d\n", hooks[end].name, error);
	}
	synchronize_rcu_tasks();
	while (pb_inside())
		msleep(10);
	synchronize_rcu_tasks();
}

int pb_hooks_on(enum pb_hook_group group)
{
	unsigned int i;
	int error;

	for (i = groups[group].first; i < groups[group].end; i++) {
		error = register_ftrace_function(&hooks[i].ops);
		if (error) {
			pr_err("function %s cannot be replaced: error %d; a live patch may have replaced it, or the sysctl kernel.ftrace_enabled is 0\n",
			       hooks[i].name, error);
			take_off(groups[group].first, i);
			return error;
		}
	}
	WRITE_ONCE(are_on[group], true);
	return 0;
}

void pb_hooks_off(enum pb_hook_group group)
{
	if (!are_on[group])
		return;
	WRITE_ONCE(are_on[group], false);
	take_off(groups[group].first, groups[group].end);
}
