// SPDX-License-Identifier: GPL-2.0
/*
 * A performance monitoring unit whose counters are those of the machine model: an emulated guest
 * has no others. The plugin in QEMU publishes them in the memory of a PCI device
 * (crates/qemu/src/system/published.rs has the layout), and this module, piebald_model.ko, makes
 * them the kernel's: for perf_event_open() and perf, per task and per processor.
 *
 * The model counts while there is an event, on all processors: a program is not alone on its
 * caches only because the others are not looked at. A reading begins with a mark, an instruction
 * that does nothing, at which the plugin brings the numbers up to date.
 */
#define pr_fmt(fmt) "piebald_model: " fmt

#include <linux/io.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/perf_event.h>

/* QEMU's ivshmem; the memory is its third region. */
#define VENDOR 0x1af4
#define DEVICE 0x1110
#define BAR 2

#define MAGIC 0x53544e554f434250ULL /* "PBCOUNTS" */
#define VERSION 2
#define EVENTS 12
#define NAME_BYTES 64

struct head {
	u64 magic, version, cpus, events, stride, first, updates, spare;
	char machine[NAME_BYTES];
};

static const u64 *words;
static u64 stride, first;

/* Marks, as crates/qemu/src/system/mark.rs has them. The region is this module's own. */
#define START 1
#define STOP 2
#define PUBLISH 5
#define REGION 4095
#define MARK(op)                                                                                   \
	asm volatile(".byte 0x0f, 0x1f, 0x80; .long %c0" ::"i"(0x4b430000 | (REGION << 4) | (op))  \
		     : "memory")

static u64 counted(u64 event)
{
	MARK(PUBLISH);
	return READ_ONCE(words[first + smp_processor_id() * stride + event]);
}

/* --- events ------------------------------------------------------------------------ */

static struct pmu model;

static DEFINE_MUTEX(watching_lock);
static unsigned int watching;

/* The model watches as long as somebody counts. */
static void watch(int change)
{
	mutex_lock(&watching_lock);
	if (!watching && change > 0)
		MARK(START);
	watching += change;
	if (!watching)
		MARK(STOP);
	mutex_unlock(&watching_lock);
}

static void event_destroy(struct perf_event *event)
{
	watch(-1);
}

static int event_init(struct perf_event *event)
{
	if (event->attr.type != model.type)
		return -ENOENT;
	if (event->attr.config >= EVENTS)
		return -EINVAL;
	/* Nothing interrupts when so many have been counted. */
	if (is_sampling_event(event) || has_branch_stack(event))
		return -EOPNOTSUPP;
	watch(1);
	event->destroy = event_destroy;
	return 0;
}

static void event_read(struct perf_event *event)
{
	u64 now = counted(event->attr.config);

	local64_add(now - local64_xchg(&event->hw.prev_count, now), &event->count);
}

static void event_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, counted(event->attr.config));
	event->hw.state = 0;
}

static void event_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event_read(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

static void event_update(struct perf_event *event)
{
	if (!(event->hw.state & PERF_HES_STOPPED))
		event_read(event);
}

static int event_add(struct perf_event *event, int flags)
{
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
}

/* --- what /sys/bus/event_source/devices/piebald_model says ------------------------- */

PMU_FORMAT_ATTR(event, "config:0-7");
PMU_EVENT_ATTR_STRING(instructions, event_instructions, "event=0x00");
PMU_EVENT_ATTR_STRING(cycles, event_cycles, "event=0x01");
PMU_EVENT_ATTR_STRING(references, event_references, "event=0x02");
PMU_EVENT_ATTR_STRING(l2-misses, event_l2_misses, "event=0x03");
PMU_EVENT_ATTR_STRING(llc-references, event_llc_references, "event=0x04");
PMU_EVENT_ATTR_STRING(llc-misses, event_llc_misses, "event=0x05");
PMU_EVENT_ATTR_STRING(memory-reads, event_memory_reads, "event=0x06");
PMU_EVENT_ATTR_STRING(memory-writes, event_memory_writes, "event=0x07");
PMU_EVENT_ATTR_STRING(row-hits, event_row_hits, "event=0x08");
PMU_EVENT_ATTR_STRING(row-conflicts, event_row_conflicts, "event=0x09");
PMU_EVENT_ATTR_STRING(locked, event_locked, "event=0x0a");
PMU_EVENT_ATTR_STRING(shared-writes, event_shared_writes, "event=0x0b");

static struct attribute *formats[] = { &format_attr_event.attr, NULL };
static const struct attribute_group format_group = { .name = "format", .attrs = formats };

static struct attribute *events[] = {
	&event_instructions.attr.attr,	 &event_cycles.attr.attr,
	&event_references.attr.attr,	 &event_l2_misses.attr.attr,
	&event_llc_references.attr.attr, &event_llc_misses.attr.attr,
	&event_memory_reads.attr.attr,	 &event_memory_writes.attr.attr,
	&event_row_hits.attr.attr,	 &event_row_conflicts.attr.attr,
	&event_locked.attr.attr,	 &event_shared_writes.attr.attr,
	NULL,
};
static_assert(ARRAY_SIZE(events) == EVENTS + 1);
static const struct attribute_group event_group = { .name = "events", .attrs = events };

static const struct attribute_group *groups[] = { &format_group, &event_group, NULL };

static struct pmu model = {
	.module = THIS_MODULE,
	.attr_groups = groups,
	/* Events are as many as one likes, as the kernel's own in software are. */
	.task_ctx_nr = perf_sw_context,
	.capabilities = PERF_PMU_CAP_NO_INTERRUPT | PERF_PMU_CAP_NO_EXCLUDE,
	.event_init = event_init,
	.add = event_add,
	.del = event_del,
	.start = event_start,
	.stop = event_stop,
	.read = event_update,
};

/* --- the device -------------------------------------------------------------------- */

static int check(const struct head *head, resource_size_t bytes)
{
	u64 all = bytes / sizeof(u64);

	if (head->magic != MAGIC || head->version != VERSION || head->events != EVENTS) {
		pr_err("this memory holds no counters of version %d (QEMU with Piebald's plugin and counters=FILE?)\n",
		       VERSION);
		return -ENODEV;
	}
	if (num_possible_cpus() > head->cpus || head->stride < EVENTS || head->stride > all ||
	    head->first > all || (all - head->first) / head->stride < num_possible_cpus()) {
		pr_err("counters of %llu processors for %u\n", head->cpus, num_possible_cpus());
		return -EINVAL;
	}
	return 0;
}

static int probe(struct pci_dev *dev, const struct pci_device_id *id)
{
	const struct head *head;
	int error = pcim_enable_device(dev);

	if (error)
		return error;
	if (words)
		return -EBUSY;
	if (pci_resource_len(dev, BAR) < sizeof(*head))
		return -ENODEV;
	head = devm_memremap(&dev->dev, pci_resource_start(dev, BAR), pci_resource_len(dev, BAR),
			     MEMREMAP_WB);
	if (IS_ERR(head))
		return PTR_ERR(head);
	error = check(head, pci_resource_len(dev, BAR));
	if (error)
		return error;
	words = &head->magic;
	stride = head->stride;
	first = head->first;
	error = perf_pmu_register(&model, "piebald_model", -1);
	if (error) {
		words = NULL;
		return error;
	}
	pr_info("counters of the modelled machine %.*s\n", NAME_BYTES, head->machine);
	return 0;
}

static void leave(struct pci_dev *dev)
{
	perf_pmu_unregister(&model);
	words = NULL;
}

static const struct pci_device_id ids[] = { { PCI_DEVICE(VENDOR, DEVICE) }, {} };
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver driver = {
	.name = "piebald_model",
	.id_table = ids,
	.probe = probe,
	.remove = leave,
	/* Events would be left without their unit. */
	.driver.suppress_bind_attrs = true,
};

static int __init enter(void)
{
	int error = pci_register_driver(&driver);

	if (error)
		return error;
	/* Loaded without a device it would do nothing, and say nothing. */
	if (!words) {
		pr_err("no device with counters of the machine model\n");
		pci_unregister_driver(&driver);
		return -ENODEV;
	}
	return 0;
}

static void __exit finish(void)
{
	pci_unregister_driver(&driver);
}

module_init(enter);
module_exit(finish);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Counters of Piebald's machine model in an emulated guest, as a perf unit");
