// SPDX-License-Identifier: GPL-2.0
/*
 * Which process has which colours.
 *
 * A table by process (thread group): its threads share its colours. A child gets its parent's
 * entry before it runs, by the tracepoint in fork; the entry goes when the last thread of the
 * process exits. The core counts the processes in each colour set and frees the colours with
 * the last one.
 *
 * An entry never outlives its process: who writes one checks under pb_lock that a thread is
 * alive, and the exit, which has counted that thread off before, takes pb_lock as well.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/hashtable.h>
#include <linux/pid.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "trace.h"

static DEFINE_HASHTABLE(tasks, 10);
static unsigned int nr_tasks;

struct pb_task *pb_task_of(pid_t tgid)
{
	struct pb_task *task;

	if (!nr_tasks)
		return NULL;
	hash_for_each_possible(tasks, task, node, tgid)
		if (task->tgid == tgid)
			return task;
	return NULL;
}

bool pb_tasks_any(void)
{
	return READ_ONCE(nr_tasks);
}

bool pb_is_colored(const struct task_struct *process)
{
	bool it;

	if (!READ_ONCE(nr_tasks))
		return false;
	spin_lock(&pb_lock);
	it = pb_task_of(process->tgid);
	spin_unlock(&pb_lock);
	return it;
}

/* With pb_lock held. */
static void insert(struct pb_task *task)
{
	hash_add(tasks, &task->node, task->tgid);
	trace_piebald_colors(task->tgid, true, task->hard);
	nr_tasks++;
}

/* With pb_lock held; who calls frees the entry afterwards. */
static void take_out(struct pb_task *task)
{
	hash_del(&task->node);
	if (!--nr_tasks)
		pb_switch_settle_later();
	pb_core_leave(pb_core, &task->seat);
	pb_new_version();
	trace_piebald_colors(task->tgid, false, false);
}

/* --- fork and exit ----------------------------------------------------------- */

/*
 * A child without an entry would get frames of any color. Where its parent's colors bind, it ends
 * before it runs instead, as if memory were out.
 */
static void fail_child(struct task_struct *child, bool hard)
{
	pb_count(inherit_failed);
	if (!hard)
		return;
	pb_count(hard_kills);
	pr_warn_ratelimited("process %d (%s) did not get its parent's colors, which are hard: killed\n",
			    child->tgid, child->comm);
	send_sig(SIGKILL, child, 1);
}

static void at_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	struct pb_task *entry, *of_parent;
	bool colored, hard, failed;

	if (child->tgid == parent->tgid)
		return;
	pb_zone_at_fork(parent, child);
	if (!READ_ONCE(nr_tasks))
		return;
	spin_lock(&pb_lock);
	colored = pb_task_of(parent->tgid);
	spin_unlock(&pb_lock);
	if (!colored)
		return;
	/* Tracepoints do not sleep. */
	entry = kzalloc(sizeof(*entry), GFP_ATOMIC | __GFP_NOWARN);
	spin_lock(&pb_lock);
	of_parent = pb_task_of(parent->tgid);
	hard = of_parent && of_parent->hard;
	failed = of_parent &&
		 (!entry || pb_core_inherit(pb_core, &of_parent->seat, &entry->seat));
	if (of_parent && !failed) {
		entry->tgid = child->tgid;
		entry->hard = hard;
		insert(entry);
		entry = NULL;
	}
	spin_unlock(&pb_lock);
	kfree(entry);
	if (failed)
		fail_child(child, hard);
}

static void at_exit(void *unused, struct task_struct *task)
{
	struct pb_task *entry;

	if (atomic_read(&task->signal->live))
		return;
	pb_zone_at_exit(task);
	if (!READ_ONCE(nr_tasks))
		return;
	spin_lock(&pb_lock);
	entry = pb_task_of(task->tgid);
	if (entry)
		take_out(entry);
	spin_unlock(&pb_lock);
	kfree(entry);
}

/* Tracepoints are not exported by name. */
static struct {
	const char *name;
	void *probe;
	struct tracepoint *point;
} points[] = {
	{ "sched_process_fork", at_fork },
	{ "sched_process_exit", at_exit },
};

static void find_point(struct tracepoint *point, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		if (!strcmp(point->name, points[i].name))
			points[i].point = point;
}

int pb_tasks_set_up(void)
{
	unsigned int i;
	int error;

	for_each_kernel_tracepoint(find_point, NULL);
	for (i = 0; i < ARRAY_SIZE(points); i++) {
		error = points[i].point ?
			tracepoint_probe_register(points[i].point, points[i].probe, NULL) :
			-EOPNOTSUPP;
		if (error) {
			pr_err("tracepoint %s of this kernel cannot be used: error %d\n",
			       points[i].name, error);
			goto undo;
		}
	}
	return 0;
undo:
	while (i--)
		tracepoint_probe_unregister(points[i].point, points[i].probe, NULL);
	tracepoint_synchronize_unregister();
	return error;
}

void pb_tasks_end(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(points); i++)
		tracepoint_probe_unregister(points[i].point, points[i].probe, NULL);
	tracepoint_synchronize_unregister();
	pb_tasks_forget();
}

void pb_tasks_forget(void)
{
	struct pb_task *task;
	struct hlist_node *next;
	HLIST_HEAD(gone);
	unsigned int bucket;

	spin_lock(&pb_lock);
	hash_for_each_safe(tasks, bucket, next, task, node) {
		take_out(task);
		hlist_add_head(&task->node, &gone);
	}
	spin_unlock(&pb_lock);
	hlist_for_each_entry_safe(task, next, &gone, node)
		kfree(task);
}

/* --- the file ---------------------------------------------------------------- */

struct task_struct *pb_process(pid_t number, char *why)
{
	struct task_struct *task;
	struct pid *pid = find_get_pid(number);

	rcu_read_lock();
	task = pid_task(pid, PIDTYPE_PID);
	if (task)
		get_task_struct(task);
	rcu_read_unlock();
	put_pid(pid);
	if (!task) {
		snprintf(why, PB_TEXT, "there is no process %d", number);
	} else if (task->flags & PF_KTHREAD) {
		snprintf(why, PB_TEXT, "%d is the kernel's own", number);
		put_task_struct(task);
		task = NULL;
	}
	return task;
}

static void take_away(pid_t tgid)
{
	struct pb_task *entry;

	spin_lock(&pb_lock);
	entry = pb_task_of(tgid);
	if (entry)
		take_out(entry);
	spin_unlock(&pb_lock);
	kfree(entry);
}

static int give(struct task_struct *process, const char *colors, bool hard, char *why)
{
	struct pb_task *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL), *entry;
	int error;

	if (!fresh) {
		strscpy(why, "no memory", PB_TEXT);
		return -ENOMEM;
	}
	pb_seat_clear(&fresh->seat);
	fresh->tgid = process->tgid;
	spin_lock(&pb_lock);
	if (!atomic_read(&process->signal->live)) {
		strscpy(why, "the process has ended", PB_TEXT);
		error = -ESRCH;
		goto out;
	}
	entry = pb_task_of(process->tgid) ?: fresh;
	error = pb_core_reserve(pb_core, &entry->seat, colors, strlen(colors), why, PB_TEXT - 1);
	pb_new_version();
	if (error)
		goto out;
	entry->hard = hard;
	entry->pause = (struct pb_pause){ 0 };
	if (entry == fresh) {
		insert(fresh);
		fresh = NULL;
	} else {
		trace_piebald_colors(entry->tgid, true, hard);
	}
out:
	spin_unlock(&pb_lock);
	kfree(fresh);
	return error;
}

/* `PID COLORS [hard|hint]`, or `PID none`. The line is changed. */
int pb_tasks_write(char *line, char *why)
{
	char *word = strsep(&line, " \t"), *colors = strsep(&line, " \t");
	char *mode = line ? strim(line) : "hint";
	struct task_struct *process;
	int number, error = 0;

	if (!colors || !*colors) {
		strscpy(why, "allowed: PID COLORS [hard|hint], or PID none", PB_TEXT);
		return -EINVAL;
	}
	if (strcmp(mode, "hint") && strcmp(mode, "hard")) {
		snprintf(why, PB_TEXT, "mode %.20s; allowed: hard, hint", mode);
		return -EINVAL;
	}
	if (kstrtoint(word, 10, &number) || number <= 0) {
		snprintf(why, PB_TEXT, "%.20s is no process; allowed: PID COLORS [hard|hint]", word);
		return -EINVAL;
	}
	process = pb_process(number, why);
	if (!process)
		return -ESRCH;
	if (is_global_init(process) && !strcmp(mode, "hard")) {
		strscpy(why, "the first process cannot be killed; allowed for it: hint", PB_TEXT);
		error = -EINVAL;
	} else if (!strcmp(colors, "none"))
		take_away(process->tgid);
	else
		error = pb_switch_expect(why) ?:
			give(process, colors, !strcmp(mode, "hard"), why);
	put_task_struct(process);
	return error;
}

int pb_tasks_show(struct seq_file *m, void *unused)
{
	char *text = kmalloc(PB_TEXT, GFP_KERNEL);
	struct pb_task *task;
	unsigned int bucket;
	size_t len;

	if (!text)
		return -ENOMEM;
	spin_lock(&pb_lock);
	hash_for_each(tasks, bucket, task, node) {
		len = pb_core_print_colors(pb_core, &task->seat, text, PB_TEXT);
		seq_printf(m, "%d %.*s %s\n", task->tgid, (int)len, text,
			   task->hard ? "hard" : "hint");
	}
	len = pb_core_print_colors(pb_core, NULL, text, PB_TEXT);
	seq_printf(m, "others %.*s hint\n", (int)len, text);
	spin_unlock(&pb_lock);
	kfree(text);
	return 0;
}
