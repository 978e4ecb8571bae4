// SPDX-License-Identifier: GPL-2.0
/*
 * Fork and exit, by tracepoints: SRM-buffer's zone keeps where each process stands in its round
 * through the colours. Colours are no matter of processes but of their groups (groups.c).
 *
 * The file tasks, by which processes had colours before, says for one release how it is done now.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/sched/signal.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

static void at_fork(void *unused, struct task_struct *parent, struct task_struct *child)
{
	if (child->tgid != parent->tgid)
		pb_zone_at_fork(parent, child);
}

static void at_exit(void *unused, struct task_struct *task)
{
	if (!atomic_read(&task->signal->live))
		pb_zone_at_exit(task);
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
}

/* --- the file that was ---------------------------------------------------------------- */

#define NEW_WAY "colors belong to control groups: mkdir /sys/kernel/config/piebald/SET, " \
		"write COLORS to its file colors and the group's path to attach"

int pb_tasks_write(char *line, char *why)
{
	strscpy(why, "tasks: " NEW_WAY, PB_TEXT);
	return -EOPNOTSUPP;
}

int pb_tasks_show(struct seq_file *m, void *unused)
{
	seq_puts(m, "# " NEW_WAY "\n");
	return 0;
}
