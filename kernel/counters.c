// SPDX-License-Identifier: GPL-2.0
/* What was done, one number per name. They only rise while the module is loaded. */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/percpu.h>

#define CREATE_TRACE_POINTS
#include "trace.h"

static DEFINE_PER_CPU(u64[PB_NR_COUNTERS], counts);

#define PB_NAME(name) #name,
static const char *const names[] = { PB_COUNTERS(PB_NAME) };
#undef PB_NAME

static const char *const core_names[] = {
	"core_grants", "core_fallbacks", "core_failures", "core_splits", "core_merges",
	"sets_reserved", "sets_freed", "sets_resized", "requests_refused",
};

static_assert(sizeof(struct pb_core_counters) == ARRAY_SIZE(core_names) * sizeof(u64));

static const char *const zone_names[] = {
	"zone_filled", "zone_pulled", "zone_free_taken", "zone_cold_taken", "zone_spared",
	"sequences", "sequences_cut", "sequences_idle", "sequences_short", "sequences_shared",
	"zone_next_color", "zone_refills", "zone_empty", "zone_declined",
};

static_assert(sizeof(struct pb_zone_counters) == ARRAY_SIZE(zone_names) * sizeof(u64));

void pb_count_many(enum pb_counter counter, u64 n)
{
	this_cpu_add(counts[counter], n);
}

static u64 sum_of(enum pb_counter counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(counts, cpu)[counter]);
	return sum;
}

int pb_counters_show(struct seq_file *m, void *unused)
{
	struct pb_core_counters core;
	struct pb_zone_counters zone;
	const u64 *of_core = (const u64 *)&core, *of_zone = (const u64 *)&zone;
	unsigned int i;

	for (i = 0; i < PB_NR_COUNTERS; i++)
		seq_printf(m, "%s %llu\n", names[i], sum_of(i));
	spin_lock(&pb_lock);
	pb_core_counters(pb_core, &core);
	pb_zone_counters(pb_core, &zone);
	spin_unlock(&pb_lock);
	for (i = 0; i < ARRAY_SIZE(core_names); i++)
		seq_printf(m, "%s %llu\n", core_names[i], of_core[i]);
	for (i = 0; i < ARRAY_SIZE(zone_names); i++)
		seq_printf(m, "%s %llu\n", zone_names[i], of_zone[i]);
	return 0;
}
