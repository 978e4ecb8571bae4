// SPDX-License-Identifier: GPL-2.0
/*
 * What is switched on, and what has to be replaced for it.
 *
 * Colouring that nobody uses costs nothing: while no set has colours and SRM-buffer is off,
 * everybody may have every frame, which is what the kernel does by itself. So the functions of
 * the kernel are replaced when the first set gets colours, and act by themselves again some time
 * after the last one has lost them. Until then frames go round through all colours as before: right after a
 * set with colours, what the kernel has at hand is mostly of the others.
 *
 * Switching does not wait for tasks that are inside a replacement: they may wait for a disk, or for
 * ever for a server. They finish by themselves, and what they leave in the pool is cleared up
 * afterwards, in the background and without pb_switch (rest_now). Only a new map and unloading need
 * that nobody is inside; the first can be interrupted.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/* How long colours that nobody has any more are waited with: programs start one after another. */
#define CALM (2 * HZ)
/* How long the operation stays in functions that act by themselves again: switched off, and idle. */
#define REST HZ
#define IDLE_REST (10 * HZ)
/* How often tasks that are inside are asked for. */
#define ASK (HZ / 10)

DEFINE_MUTEX(pb_switch);
/* With pb_switch held, but for looks. */
static bool on;
static bool expecting;	/* a set is about to get colours */
static bool leaving;	/* the operation is being taken out, without pb_switch */
static bool quiet = true;	/* it is out, nobody is inside, and the pool is empty */
static char unheard[PB_TEXT];	/* reasons that nobody reads */
/* `leaving` and `quiet` have changed. */
static DECLARE_WAIT_QUEUE_HEAD(changed);

static void settle_now(struct work_struct *unused);
static DECLARE_DELAYED_WORK(calm, settle_now);
static void rest_now(struct work_struct *unused);
static DECLARE_DELAYED_WORK(rest, rest_now);

bool pb_switch_is_on(void)
{
	return READ_ONCE(on);
}

int pb_switch_lock(void)
{
	for (;;) {
		int error = mutex_lock_killable(&pb_switch);

		if (error || !leaving)
			return error;
		mutex_unlock(&pb_switch);
		error = wait_event_killable(changed, !READ_ONCE(leaving));
		if (error)
			return error;
	}
}

int pb_switch_quiet(char *why)
{
	while (!quiet) {
		int error;

		if (pb_hooks_are_on()) {
			strscpy(why, "coloring is on", PB_TEXT);
			return -EBUSY;
		}
		mod_delayed_work(system_long_wq, &rest, 0);
		mutex_unlock(&pb_switch);
		error = wait_event_killable(changed, READ_ONCE(quiet) || pb_hooks_are_on());
		mutex_lock(&pb_switch);
		if (error) {
			strscpy(why, "killed while tasks were waited for that get memory", PB_TEXT);
			return -EINTR;
		}
	}
	return 0;
}

/* Replaces what the switches need, and only that. */
static int settle(char *why)
{
	if (on && (expecting || pb_sets_any() || pb_zone_is_on())) {
		int error = pb_hooks_on(pb_zone_is_on());

		if (error)
			snprintf(why, PB_TEXT,
				 "functions of the kernel cannot be replaced (error %d): the sysctl kernel.ftrace_enabled is 0, or a live patch has replaced one; see the log",
				 error);
		else
			quiet = false;
		return error;
	}
	pb_hooks_rest();
	if (!quiet) {
		pb_pool_drain();
		mod_delayed_work(system_long_wq, &rest, on ? IDLE_REST : REST);
	}
	return 0;
}

static void settle_now(struct work_struct *unused)
{
	mutex_lock(&pb_switch);
	/* Nothing is replaced here that is not yet. */
	if (!pb_sets_any() && !pb_zone_is_on())
		settle(unheard);
	mutex_unlock(&pb_switch);
}

static void rest_now(struct work_struct *unused)
{
	mutex_lock(&pb_switch);
	if (quiet || pb_hooks_are_on()) {
		mutex_unlock(&pb_switch);
		return;
	}
	leaving = true;
	mutex_unlock(&pb_switch);
	pb_hooks_out();
	mutex_lock(&pb_switch);
	leaving = false;
	/* Whoever is not inside now has put into the pool what there was. */
	quiet = !pb_inside();
	pb_pool_drain();
	if (!quiet)
		mod_delayed_work(system_long_wq, &rest, ASK);
	mutex_unlock(&pb_switch);
	wake_up_all(&changed);
}

void pb_switch_settle_later(void)
{
	if (READ_ONCE(on) && !pb_sets_any())
		mod_delayed_work(system_long_wq, &calm, CALM);
}

int pb_switch_expect(char *why)
{
	int error;

	expecting = true;
	error = settle(why);
	expecting = false;
	return error;
}

int pb_switch_on(bool to, char *why)
{
	u32 colors;
	int error;

	if (to == on)
		return 0;
	spin_lock(&pb_lock);
	colors = pb_core_colors(pb_core);
	spin_unlock(&pb_lock);
	if (to && !colors) {
		strscpy(why, "on: no map of colors is set; write one to the file map first", PB_TEXT);
		return -EINVAL;
	}
	if (to) {
		error = pb_trial(why);
		/* The operation is in, in any case. */
		quiet = false;
		if (error) {
			settle(unheard);
			return error;
		}
	}
	WRITE_ONCE(on, to);
	error = settle(why);
	if (error) {
		WRITE_ONCE(on, false);
		settle(unheard);
	} else if (to) {
		pb_count(switched_on);
	}
	return error;
}

int pb_switch_srm(bool to, char *why)
{
	int error;

	if (to == pb_zone_is_on())
		return 0;
	error = pb_zone_switch(to, why);
	if (error)
		return error;
	error = settle(why);
	if (error) {
		pb_zone_switch(false, why);
		settle(unheard);
	}
	return error;
}

void pb_switch_end(void)
{
	mutex_lock(&pb_switch);
	WRITE_ONCE(on, false);
	settle(unheard);
	mutex_unlock(&pb_switch);
	cancel_delayed_work_sync(&calm);
	cancel_delayed_work_sync(&rest);
	pb_hooks_end();
}
