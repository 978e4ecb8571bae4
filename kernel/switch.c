// SPDX-License-Identifier: GPL-2.0
/*
 * What is switched on, and what has to be replaced for it.
 *
 * Colouring that nobody uses costs nothing: while no process has colours and SRM-buffer is off,
 * everybody may have every frame, which is what the kernel does by itself. So the functions of
 * the kernel are replaced when the first process gets colours, and put back some time after the
 * last one has ended. Until then frames go round through all colours as before: right after a
 * process with colours, what the kernel has at hand is mostly of the others.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/string.h>
#include <linux/workqueue.h>

/* How long colours that nobody has any more are waited with: programs start one after another. */
#define CALM (2 * HZ)

DEFINE_MUTEX(pb_switch);
/* With pb_switch held, but for looks. */
static bool on;
static bool expecting;	/* a process is about to get colours */
static char unheard[PB_TEXT];	/* reasons that nobody reads */

static void settle_now(struct work_struct *unused);
static DECLARE_DELAYED_WORK(calm, settle_now);

bool pb_switch_is_on(void)
{
	return READ_ONCE(on);
}

static int replace(enum pb_hook_group group, bool wanted, const char *what, char *why)
{
	if (!wanted)
		pb_hooks_off(group);
	else if (!pb_hooks_are_on(group) && pb_hooks_on(group)) {
		snprintf(why, PB_TEXT,
			 "%s: a function of the kernel cannot be replaced: the sysctl kernel.ftrace_enabled is 0, or a live patch has replaced it; see the log",
			 what);
		return -EBUSY;
	}
	return 0;
}

/* Replaces what the switches need, and only that. */
static int settle(char *why)
{
	bool frames = on && (expecting || pb_tasks_any() || pb_zone_is_on());
	bool files = on && pb_zone_is_on();
	int error;

	if (!files)
		replace(PB_GROUP_FILES, false, "srm", why);
	error = replace(PB_GROUP_FRAMES, frames, "on", why);
	if (!error)
		error = replace(PB_GROUP_FILES, files, "srm", why);
	if (!frames)
		pb_pool_drain();
	return error;
}

static void settle_now(struct work_struct *unused)
{
	mutex_lock(&pb_switch);
	/* Nothing is replaced here that is not yet. */
	if (!pb_tasks_any() && !pb_zone_is_on())
		settle(unheard);
	mutex_unlock(&pb_switch);
}

void pb_switch_settle_later(void)
{
	if (READ_ONCE(on) && !pb_tasks_any())
		mod_delayed_work(system_wq, &calm, CALM);
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
	WRITE_ONCE(on, to);
	error = settle(why);
	if (error) {
		WRITE_ONCE(on, false);
		settle(why);
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
		settle(why);
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
}
