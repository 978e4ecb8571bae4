// SPDX-License-Identifier: GPL-2.0
/*
 * Colour sets: what each has, whether its colours bind, and what happened to it.
 *
 * A set is a directory in configfs (setfs.c); groups.c says who has it. Sets may overlap. They are
 * changed with pb_switch and pb_lock held, and found by number under pb_lock each time, since one may
 * go meanwhile.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/hashtable.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "trace.h"

static DEFINE_HASHTABLE(sets, 6);
unsigned int pb_nr_colored;	/* sets with colours */
static u64 numbers;

struct pb_set *pb_set_find(u64 number)
{
	struct pb_set *set;

	if (!number)
		return NULL;
	hash_for_each_possible(sets, set, node, number)
		if (set->number == number)
			return set;
	return NULL;
}

void pb_set_add(struct pb_set *set)
{
	pb_seat_clear(&set->seat);
	spin_lock(&pb_lock);
	set->number = ++numbers;
	hash_add(sets, &set->node, set->number);
	spin_unlock(&pb_lock);
}

/* With pb_lock held. */
static void uncolor(struct pb_set *set)
{
	if (!set->colored)
		return;
	WRITE_ONCE(set->colored, false);
	WRITE_ONCE(pb_nr_colored, pb_nr_colored - 1);
	pb_core_leave(pb_core, &set->seat);
	pb_new_version();
	trace_piebald_colors(set->number, false, false);
}

void pb_set_end(struct pb_set *set)
{
	pb_groups_release(set, false);
	spin_lock(&pb_lock);
	uncolor(set);
	hash_del(&set->node);
	spin_unlock(&pb_lock);
	/* A request may be looking at its groups. */
	synchronize_rcu();
	pb_switch_settle_later();
}

int pb_set_color(struct pb_set *set, const char *colors, char *why)
{
	int error;

	if (!strcmp(colors, "none")) {
		spin_lock(&pb_lock);
		uncolor(set);
		spin_unlock(&pb_lock);
		pb_switch_settle_later();
		return 0;
	}
	error = pb_switch_expect(why);
	if (error)
		return error;
	spin_lock(&pb_lock);
	error = pb_core_reserve(pb_core, &set->seat, colors, strlen(colors), why, PB_TEXT - 1);
	if (!error) {
		memset(set->pause, 0, sizeof(set->pause));
		if (!set->colored)
			WRITE_ONCE(pb_nr_colored, pb_nr_colored + 1);
		WRITE_ONCE(set->colored, true);
		trace_piebald_colors(set->number, true, set->hard);
	}
	pb_new_version();
	spin_unlock(&pb_lock);
	/* What was refused leaves nobody with colours, perhaps. */
	pb_switch_settle_later();
	return error;
}

void pb_sets_forget(void)
{
	struct pb_set *set;
	unsigned int bucket;

	spin_lock(&pb_lock);
	hash_for_each(sets, bucket, set, node)
		uncolor(set);
	spin_unlock(&pb_lock);
	pb_switch_settle_later();
}

size_t pb_set_print_colors(struct pb_set *set, char *out, size_t len)
{
	size_t used;

	spin_lock(&pb_lock);
	used = pb_core_print_colors(pb_core, &set->seat, out, len);
	spin_unlock(&pb_lock);
	return used;
}

bool pb_set_is_hard(u64 number)
{
	struct pb_set *set;
	bool hard;

	spin_lock(&pb_lock);
	set = pb_set_find(number);
	hard = set && set->hard;
	spin_unlock(&pb_lock);
	return hard;
}

void pb_set_event(u64 number, enum pb_event event, u64 n)
{
	struct pb_set *set;

	if (!number || !n)
		return;
	spin_lock(&pb_lock);
	set = pb_set_find(number);
	if (set)
		set->events[event] += n;
	spin_unlock(&pb_lock);
}
