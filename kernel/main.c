// SPDX-License-Identifier: GPL-2.0
/* Loading and unloading. What the module does is said in docs/kernel.md. */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/module.h>
#include <linux/string.h>
#include <linux/utsname.h>

static char *map = "";
module_param(map, charp, 0400);
MODULE_PARM_DESC(map, "map of colors: address bits to combine, as in the file map, with ';' between lines");

static bool on;
module_param(on, bool, 0400);
MODULE_PARM_DESC(on, "start with coloring on (needs map)");

static int refuse_machine(void)
{
	/* Its spinlocks sleep, and they are taken here where that is not allowed. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		pr_err("kernel %s is a real-time one (PREEMPT_RT), which this module cannot run on\n",
		       init_utsname()->release);
		return -EOPNOTSUPP;
	}
	return pb_nodes_set_up();
}

static bool srm;
module_param(srm, bool, 0400);
MODULE_PARM_DESC(srm, "start with SRM-buffer as well (needs map)");

static int set_parameters(void)
{
	char *text, *why;
	int error = 0;

	if (!*map) {
		if (on || srm)
			pr_err("%s=1 needs a map\n", on ? "on" : "srm");
		return on || srm ? -EINVAL : 0;
	}
	text = kstrdup(map, GFP_KERNEL);
	why = kzalloc(PB_TEXT, GFP_KERNEL);
	if (!text || !why) {
		error = -ENOMEM;
		goto out;
	}
	strreplace(text, ';', '\n');
	mutex_lock(&pb_switch);
	error = pb_pool_set_map(text, strlen(text), why);
	if (error) {
		pr_err("map: %s\n", why);
	} else {
		error = pb_switch_srm(srm, why) ?: pb_switch_on(on, why);
		if (error)
			pr_err("%s\n", why);
	}
	mutex_unlock(&pb_switch);
out:
	kfree(text);
	kfree(why);
	return error;
}

/* Finds all functions of the kernel, if they are those that the module was written for. */
static int refuse_unknown(void)
{
	int error = pb_symbols_set_up() ?: pb_known_begin() ?: pb_hooks_find() ?:
		    pb_recolor_set_up() ?: pb_cold_set_up() ?: pb_pick_set_up() ?:
		    pb_shortage_set_up() ?: pb_user_set_up();

	if (error == -EOPNOTSUPP)
		pr_err("kernel %s is none that this module was written for\n",
		       init_utsname()->release);
	pb_known_end();
	return error;
}

static int __init piebald_init(void)
{
	int error = refuse_machine() ?: refuse_unknown();

	if (error)
		return error;
	error = pb_pool_set_up();
	if (error)
		return error;
	error = pb_tasks_set_up();
	if (error)
		goto no_tasks;
	error = set_parameters();
	if (error)
		goto no_files;
	error = pb_files_set_up();
	if (error)
		goto no_files;
	error = pb_setfs_set_up();
	if (error)
		goto no_sets;
	pr_info("loaded; switched in /proc/" KBUILD_MODNAME ", sets in configfs\n");
	if (IS_ENABLED(CONFIG_PAGE_COLORING))
		pr_info("this kernel has its free pages by color itself\n");
	return 0;

no_sets:
	pb_files_end();
no_files:
	pb_tasks_end();
	pb_switch_end();
	pb_trial_end();
no_tasks:
	pb_pool_end();
	return error;
}

static void __exit piebald_exit(void)
{
	pb_setfs_end();
	pb_files_end();
	pb_tasks_end();
	pb_switch_end();
	pb_trial_end();
	pb_pool_end();
	/* Records of groups may be waiting for their end. */
	rcu_barrier();
	pr_info("unloaded\n");
}

module_init(piebald_init);
module_exit(piebald_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("Piebald");
MODULE_DESCRIPTION("Frames for processes by color (Rainbow, SRM-buffer)");
