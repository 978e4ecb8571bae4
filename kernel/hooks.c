// SPDX-License-Identifier: GPL-2.0
/*
 * Functions of the kernel that are replaced while colouring is on.
 *
 * One ftrace operation changes the instruction pointer at the entry of all of them, unless the
 * caller is this module: so a replacement can call the original, as long as that is no tail
 * call. (A live patch would act on each task only when it leaves the kernel, and hide the
 * original.) Whether it does so is a static key, which turns in milliseconds; to put the operation in
 * takes some more, and to take it out waits until every task has left the kernel or slept, which may
 * take seconds. So it stays for a while after the last use (switch.c).
 *
 * While a function is replaced, nobody can switch ftrace off (the sysctl kernel.ftrace_enabled), which
 * would end colouring without a word.
 *
 * A replacement may sleep, so code of the module may be on a task's stack when it is unloaded.
 * Who enters counts itself (user.c). After the operation is out, nobody new is sent here; a task that
 * was sent and has not counted itself yet, or has uncounted itself and not returned yet, does not sleep
 * there, and synchronize_rcu_tasks() waits for it.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

/* A test of the self-test builds the module with one that is not looked after. */
#ifndef PB_UNSEEN
#define PB_UNSEEN PB_NR_HOOKS
#endif

/* Bytes from a function's beginning to where ftrace is called: a landing mark at most. */
#define MARK 4

static struct pb_hook {
	const struct pb_variant *variant;	/* what is replaced in this kernel, and by what */
	unsigned long address;
	unsigned int seen;	/* times that the task that tries them came by */
} hooks[PB_NR_HOOKS];

/*
 * A kernel that has free pages by colour (lists.c) calls the replacements of some by itself. Here is what these
 * functions are without that. ftrace sees them for the trial alone.
 */
static void *const calls_itself[PB_NR_HOOKS] = {
#ifdef CONFIG_PAGE_COLORING
	[PB_HOOK_FILE] = __filemap_alloc_folio_noprof,
	[PB_HOOK_ANON] = __vma_alloc_folio_noprof,
	[PB_HOOK_MPOL] = __folio_alloc_mpol_noprof,
#endif
};

/* The code of this module. */
static unsigned long text_start, text_size;
static DEFINE_STATIC_KEY_FALSE(redirecting);
/* Who tries whether the functions are called at all. */
static const struct task_struct *trying;
/* Functions that the operation is in, from the first: 0, those of frames, or all. With pb_switch held. */
static unsigned int nr_in;
/* And is it in those that the kernel calls itself? */
static bool in_all;

static struct pb_hook *hook_at(unsigned long ip)
{
	struct pb_hook *hook;

	for (hook = hooks; hook < hooks + PB_NR_HOOKS; hook++)
		if (ip - hook->address <= MARK)
			return hook;
	return NULL;
}

static void notrace redirect(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			     struct ftrace_regs *regs)
{
	struct pb_hook *hook;

	if (static_branch_likely(&redirecting)) {
		if (parent_ip - text_start < text_size)
			return;
		hook = hook_at(ip);
		if (hook)
			ftrace_regs_set_instruction_pointer(
				regs, (unsigned long)hook->variant->replacement);
	} else if (READ_ONCE(trying) == current) {
		hook = hook_at(ip);
		if (hook)
			hook->seen++;
	}
}

static struct ftrace_ops operation = {
	.func = redirect,
	.flags = FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT,
};

/* Has the operation look after the first n functions and no others; all of them, or those that the kernel does not call. */
static int look_after(unsigned int n, bool all)
{
	unsigned long at[PB_NR_HOOKS];
	unsigned int i, len = 0;

	for (i = 0; i < n; i++)
		if (i != PB_UNSEEN && (all || !calls_itself[i]))
			at[len++] = hooks[i].address;
	return ftrace_set_filter_ips(&operation, at, len, 0, 1);
}

/* Has this kernel that variant of the function, and whole? Says why not. */
static bool fits(const struct pb_variant *variant, bool say)
{
	if (!pb_lookup(variant->function)) {
		if (say)
			pr_err("this kernel has no function %s\n", variant->function);
		return false;
	}
	return pb_known_variant(variant->function, say) == variant->number &&
	       pb_known_whole(variant->function, say);
}

/* The first variant of a hook that this kernel has, or NULL; each function that is none is said once. */
static const struct pb_variant *find_variant(enum pb_hook_id id, bool say)
{
	static const struct pb_variant *const tables[] = {
		pb_user_variants, pb_migration_variants, pb_reading_variants,
	};
	const struct pb_variant *variant;
	const char *said = "";
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		for (variant = tables[i]; variant->function; variant++) {
			if (variant->hook != id)
				continue;
			if (fits(variant, say && strcmp(variant->function, said)))
				return variant;
			said = variant->function;
		}
	return NULL;
}

int pb_hooks_find(void)
{
	unsigned int i;
	int error;

	text_start = (unsigned long)THIS_MODULE->mem[MOD_TEXT].base;
	text_size = THIS_MODULE->mem[MOD_TEXT].size;
	for (i = 0; i < PB_NR_HOOKS; i++) {
		struct pb_hook *hook = &hooks[i];

		hook->variant = find_variant(i, false) ?: find_variant(i, true);
		if (!hook->variant)
			return -EOPNOTSUPP;
		hook->address = pb_lookup(hook->variant->function);
		hook->variant->set_original(calls_itself[i] ?: (void *)hook->address);
		error = ftrace_set_filter_ip(&operation, hook->address, 0, 0);
		if (error) {
			pr_err("function %s of this kernel cannot be replaced: error %d\n",
			       hook->variant->function, error);
			return error == -ENOMEM ? error : -EOPNOTSUPP;
		}
	}
	return 0;
}

/* Puts the operation into frames' functions, and into those of files or not; into all, or those that the kernel does not call. */
static int put_in(bool files, bool all)
{
	unsigned int n = files ? PB_NR_HOOKS : PB_NR_FRAME_HOOKS;
	int error;

	if (nr_in == n && in_all == all)
		return 0;
	error = look_after(n, all) ?: nr_in ? 0 : register_ftrace_function(&operation);
	if (error)
		pr_err("functions cannot be replaced: error %d; a live patch may have replaced one, or the sysctl kernel.ftrace_enabled is 0\n",
		       error);
	else
		nr_in = n, in_all = all;
	return error;
}

#ifdef CONFIG_PAGE_COLORING

static int lists_on(void)
{
	const struct page_coloring_calls calls = {
		.filemap_alloc = hooks[PB_HOOK_FILE].variant->replacement,
		.vma_alloc = hooks[PB_HOOK_ANON].variant->replacement,
		.mpol_alloc = hooks[PB_HOOK_MPOL].variant->replacement,
	};

	return pb_lists_on(&calls);
}

static void lists_rest(void)
{
	page_coloring_rest();
}

static void lists_off(void)
{
	pb_lists_off();
}

#else

static int lists_on(void)
{
	return 0;
}

static void lists_rest(void)
{
}

static void lists_off(void)
{
}

#endif

int pb_hooks_on(bool files)
{
	int error = put_in(files, false);

	if (!error && !pb_hooks_are_on())
		error = lists_on();
	if (!error)
		static_branch_enable(&redirecting);
	return error;
}

void pb_hooks_rest(void)
{
	lists_rest();
	static_branch_disable(&redirecting);
}

bool pb_hooks_are_on(void)
{
	return static_branch_unlikely(&redirecting);
}

int pb_hooks_try(void)
{
	int error = put_in(true, true);

	if (!error)
		WRITE_ONCE(trying, current);
	return error;
}

void pb_hooks_tried(void)
{
	WRITE_ONCE(trying, NULL);
}

unsigned int pb_hooks_seen(enum pb_hook_id hook)
{
	unsigned int seen = hooks[hook].seen;

	hooks[hook].seen = 0;
	return seen;
}

const char *pb_hook_name(enum pb_hook_id hook)
{
	return hooks[hook].variant->function;
}

void pb_hooks_out(void)
{
	int error = nr_in ? unregister_ftrace_function(&operation) : 0;

	WARN_ONCE(error, "the functions cannot be put back: %d\n", error);
	nr_in = 0;
	lists_off();
	synchronize_rcu_tasks();
}

void pb_hooks_end(void)
{
	pb_hooks_out();
	while (pb_inside())
		msleep(20);
	synchronize_rcu_tasks();
	ftrace_free_filter(&operation);
}
