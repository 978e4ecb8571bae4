// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the kernel that are replaced while colouring is on.
 *
 * Each has an ftrace operation that changes the instruction pointer at its entry, unless the
 * caller is this module: so a replacement can call the original, as long as that is no tail
 * call. (A live patch would act on each task only when it leaves the kernel, and hide the
 * original.) Switched off, the kernel runs as if the module were not there.
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

static void notrace redirect(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			     struct ftrace_regs *regs)
{
	struct pb_hook *hook = container_of(ops, struct pb_hook, ops);

	if (!within_module(parent_ip, THIS_MODULE))
		ftrace_regs_set_instruction_pointer(regs, (unsigned long)hook->replacement);
}

#define HOOK(function) {							\
	.name = function,							\
	.ops = {								\
		.func = redirect,						\
		.flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY,	\
	},									\
}

static struct pb_hook hooks[PB_NR_HOOKS] = {
	[PB_HOOK_FILE] = HOOK("filemap_alloc_folio_noprof"),
	[PB_HOOK_ANON] = HOOK("vma_alloc_folio_noprof"),
	[PB_HOOK_MPOL] = HOOK("folio_alloc_mpol_noprof"),
	[PB_HOOK_THP] = HOOK("__thp_vma_allowable_orders"),
	[PB_HOOK_COMPACTION] = HOOK("compaction_alloc"),
};

static bool are_on;

bool pb_hooks_are_on(void)
{
	return READ_ONCE(are_on);
}

int pb_hooks_find(void)
{
	unsigned int i;
	int error;

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

static void take_off(unsigned int n)
{
	while (n--) {
		int error = unregister_ftrace_function(&hooks[n].ops);

		WARN_ONCE(error, "hook %s cannot be taken off: %d\n", hooks[n].name, error);
	}
	synchronize_rcu_tasks();
	while (pb_inside())
		msleep(10);
	synchronize_rcu_tasks();
}

int pb_hooks_on(void)
{
	unsigned int i;
	int error;

	for (i = 0; i < PB_NR_HOOKS; i++) {
		error = register_ftrace_function(&hooks[i].ops);
		if (error) {
			pr_err("function %s is replaced by someone else already: error %d\n",
			       hooks[i].name, error);
			take_off(i);
			return error;
		}
	}
	WRITE_ONCE(are_on, true);
	pb_count(switched_on);
	return 0;
}

void pb_hooks_off(void)
{
	if (!are_on)
		return;
	WRITE_ONCE(are_on, false);
	take_off(PB_NR_HOOKS);
}
