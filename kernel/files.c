// SPDX-License-Identifier: GPL-2.0
/*
 * /proc/piebald: what an administrator reads and writes (docs/kernel.md), beside the sets, which
 * have directories of their own (setfs.c). For root alone: the files show where memory lies and
 * decide who gets which.
 *
 * A write that is refused leaves the reason in the file error and in the kernel's log.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/capability.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

/* Longest text that is written at once. */
#define MAX_WRITE 2048

static char reason[PB_TEXT];	/* with pb_switch held */

int pb_reason_begin(void)
{
	int error = pb_switch_lock();

	if (!error)
		memset(reason, 0, sizeof(reason));
	return error;
}

char *pb_reason(void)
{
	return reason;
}

/* What was written may be in the reason: nothing of it is to look like a line of the log's own. */
void pb_reason_end(const char *directory, const char *file, int error)
{
	if (error)
		pr_warn_ratelimited("%s%s%s: %*pE\n", directory, *directory ? "/" : "", file,
				    (int)strlen(reason), reason);
	mutex_unlock(&pb_switch);
}

/* --- what the files say ------------------------------------------------------ */

static int show_on(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", pb_switch_is_on());
	return 0;
}

static int show_map(struct seq_file *m, void *unused)
{
	char *text = kmalloc(MAX_WRITE, GFP_KERNEL);
	size_t len;

	if (!text)
		return -ENOMEM;
	spin_lock(&pb_lock);
	len = pb_core_print_map(pb_core, text, MAX_WRITE);
	spin_unlock(&pb_lock);
	seq_write(m, text, len);
	kfree(text);
	return 0;
}

static int show_colors(struct seq_file *m, void *unused)
{
	spin_lock(&pb_lock);
	seq_printf(m, "%u\n", pb_core_colors(pb_core));
	spin_unlock(&pb_lock);
	return 0;
}

static int show_free(struct seq_file *m, void *unused)
{
	u32 color, colors;

	spin_lock(&pb_lock);
	colors = pb_core_colors(pb_core);
	for (color = 0; color < colors; color++)
		seq_printf(m, "%u %u\n", color, pb_core_free_of(pb_core, color));
	spin_unlock(&pb_lock);
	return 0;
}

static int show_srm(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", pb_zone_is_on());
	return 0;
}

static int show_threshold(struct seq_file *m, void *unused)
{
	seq_printf(m, "%u\n", pb_zone_get_threshold());
	return 0;
}

static int show_zone(struct seq_file *m, void *unused)
{
	struct pb_zone_color of;
	u32 color, colors;

	spin_lock(&pb_lock);
	colors = pb_zone_is_on() ? pb_core_colors(pb_core) : 0;
	for (color = 0; color < colors; color++) {
		pb_zone_color(pb_core, color, &of);
		seq_printf(m, "%u %u %u %u\n", color, of.free, of.pages - of.free, of.marked);
	}
	spin_unlock(&pb_lock);
	return 0;
}

static int show_pool_max(struct seq_file *m, void *unused)
{
	seq_printf(m, "%lu\n", READ_ONCE(pb_pool_max));
	return 0;
}

static int show_check(struct seq_file *m, void *unused)
{
	char text[128];
	size_t len;

	spin_lock(&pb_lock);
	len = pb_core_check(pb_core, text, sizeof(text));
	spin_unlock(&pb_lock);
	seq_printf(m, "%.*s\n", len ? (int)len : 2, len ? text : "ok");
	return 0;
}

static int show_nothing(struct seq_file *m, void *unused)
{
	return 0;
}

static int show_error(struct seq_file *m, void *unused)
{
	mutex_lock(&pb_switch);
	if (*reason)
		seq_printf(m, "%s\n", reason);
	mutex_unlock(&pb_switch);
	return 0;
}

/* --- what is written to them ------------------------------------------------- */

static int write_on(char *text)
{
	bool on;

	if (kstrtobool(text, &on)) {
		strscpy(reason, "on: allowed: 0, 1", PB_TEXT);
		return -EINVAL;
	}
	return pb_switch_on(on, reason);
}

static int write_srm(char *text)
{
	bool srm;

	if (kstrtobool(text, &srm)) {
		strscpy(reason, "srm: allowed: 0, 1", PB_TEXT);
		return -EINVAL;
	}
	return pb_switch_srm(srm, reason);
}

static int write_threshold(char *text)
{
	u32 pages;

	if (kstrtou32(text, 10, &pages)) {
		snprintf(reason, PB_TEXT, "threshold: %.20s; allowed: a number of pages", text);
		return -EINVAL;
	}
	return pb_zone_set_threshold(pages, reason);
}

static int write_map(char *text)
{
	if (pb_zone_is_on()) {
		strscpy(reason, "map: it cannot change while srm is on", PB_TEXT);
		return -EBUSY;
	}
	if (pb_switch_is_on()) {
		strscpy(reason, "map: it cannot change while coloring is on", PB_TEXT);
		return -EBUSY;
	}
	return pb_switch_quiet(reason) ?: pb_pool_set_map(text, strlen(text), reason);
}

static int write_tasks(char *text)
{
	return pb_tasks_write(text, reason);
}

static int show_others(struct seq_file *m, void *unused)
{
	char *text = kmalloc(PB_TEXT, GFP_KERNEL);
	size_t len;

	if (!text)
		return -ENOMEM;
	spin_lock(&pb_lock);
	len = pb_core_print_colors(pb_core, NULL, text, PB_TEXT);
	spin_unlock(&pb_lock);
	seq_printf(m, "%.*s\n", (int)len, text);
	kfree(text);
	return 0;
}

static int write_recolor(char *text)
{
	int number;

	if (kstrtoint(text, 10, &number) || number <= 0) {
		snprintf(reason, PB_TEXT, "recolor: %.20s is no process; allowed: PID", text);
		return -EINVAL;
	}
	if (!pb_switch_is_on()) {
		strscpy(reason, "recolor: coloring is off", PB_TEXT);
		return -EINVAL;
	}
	return pb_recolor(number, reason);
}

static int write_pool_max(char *text)
{
	unsigned long frames;

	if (kstrtoul(text, 10, &frames) || frames < 1024 || frames > totalram_pages() / 2) {
		snprintf(reason, PB_TEXT, "pool_max: allowed: 1024 to %lu frames",
			 totalram_pages() / 2);
		return -EINVAL;
	}
	WRITE_ONCE(pb_pool_max, frames);
	return 0;
}

/* --- the tree ---------------------------------------------------------------- */

static const struct entry {
	const char *name;
	int (*show)(struct seq_file *m, void *unused);
	int (*write)(char *text);
} entries[] = {
	{ "on", show_on, write_on },
	{ "map", show_map, write_map },
	{ "colors", show_colors },
	{ "others", show_others },
	{ "free", show_free },
	{ "tasks", pb_tasks_show, write_tasks },
	{ "recolor", show_nothing, write_recolor },
	{ "pool_max", show_pool_max, write_pool_max },
	{ "srm", show_srm, write_srm },
	{ "threshold", show_threshold, write_threshold },
	{ "zone", show_zone },
	{ "counters", pb_counters_show },
	{ "check", show_check },
	{ "error", show_error },
};

static const struct entry *entry_of(const struct inode *inode)
{
	return pde_data(inode);
}

static int open_entry(struct inode *inode, struct file *file)
{
	/* A root without the right, in a container for example, is none. */
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	return single_open(file, entry_of(inode)->show, NULL);
}

static ssize_t write_entry(struct file *file, const char __user *from, size_t len, loff_t *at)
{
	const struct entry *entry = entry_of(file_inode(file));
	char *text;
	int error;

	if (!entry->write)
		return -EACCES;
	if (!len || len > MAX_WRITE || *at)
		return -EINVAL;
	text = memdup_user_nul(from, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	error = pb_reason_begin();
	if (error) {
		kfree(text);
		return error;
	}
	error = entry->write(strim(text));
	pb_reason_end("", entry->name, error);
	kfree(text);
	*at += len;
	return error ?: len;
}

static const struct proc_ops operations = {
	.proc_open = open_entry,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = write_entry,
};

static struct proc_dir_entry *tree;

int pb_files_set_up(void)
{
	unsigned int i;

	tree = proc_mkdir_mode(KBUILD_MODNAME, 0500, NULL);
	if (!tree)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(entries); i++) {
		umode_t mode = entries[i].write ? 0600 : 0400;

		if (!proc_create_data(entries[i].name, mode, tree, &operations,
				      (void *)&entries[i])) {
			proc_remove(tree);
			return -ENOMEM;
		}
	}
	return 0;
}

/* Waits for everyone who is inside one of the files. */
void pb_files_end(void)
{
	proc_remove(tree);
}
