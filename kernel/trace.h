/* SPDX-License-Identifier: GPL-2.0 */
/* Tracepoints: what was decided, one event each, in events/piebald of tracefs. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM piebald

#if !defined(PB_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define PB_TRACE_H

#include <linux/tracepoint.h>

#include "core.h"

/* A process got a frame. */
TRACE_EVENT(piebald_frame,
	TP_PROTO(pid_t tgid, u64 pfn, u32 color, bool fallback),
	TP_ARGS(tgid, pfn, color, fallback),
	TP_STRUCT__entry(
		__field(pid_t, tgid)
		__field(u64, pfn)
		__field(u32, color)
		__field(bool, fallback)
	),
	TP_fast_assign(
		__entry->tgid = tgid;
		__entry->pfn = pfn;
		__entry->color = color;
		__entry->fallback = fallback;
	),
	TP_printk("tgid=%d pfn=%#llx color=%u fallback=%d", __entry->tgid, __entry->pfn,
		  __entry->color, __entry->fallback)
);

/* The pool had no frame for a process; the kernel's own function serves it, or nobody. */
TRACE_EVENT(piebald_no_frame,
	TP_PROTO(pid_t tgid, bool refused),
	TP_ARGS(tgid, refused),
	TP_STRUCT__entry(
		__field(pid_t, tgid)
		__field(bool, refused)
	),
	TP_fast_assign(
		__entry->tgid = tgid;
		__entry->refused = refused;
	),
	TP_printk("tgid=%d refused=%d", __entry->tgid, __entry->refused)
);

/* Frames came from the kernel or went back to it. */
DECLARE_EVENT_CLASS(piebald_frames,
	TP_PROTO(u64 frames),
	TP_ARGS(frames),
	TP_STRUCT__entry(__field(u64, frames)),
	TP_fast_assign(__entry->frames = frames;),
	TP_printk("frames=%llu", __entry->frames)
);
DEFINE_EVENT(piebald_frames, piebald_refill, TP_PROTO(u64 frames), TP_ARGS(frames));
DEFINE_EVENT(piebald_frames, piebald_give_back, TP_PROTO(u64 frames), TP_ARGS(frames));

/* A set got colours or other ones, or lost them. */
TRACE_EVENT(piebald_colors,
	TP_PROTO(u64 set, bool has, bool hard),
	TP_ARGS(set, has, hard),
	TP_STRUCT__entry(
		__field(u64, set)
		__field(bool, has)
		__field(bool, hard)
	),
	TP_fast_assign(
		__entry->set = set;
		__entry->has = has;
		__entry->hard = hard;
	),
	TP_printk("set=%llu has=%d hard=%d", __entry->set, __entry->has, __entry->hard)
);

/* Pages were moved to the colors of a set, or (0) of the groups that are charged for them. */
TRACE_EVENT(piebald_recolor,
	TP_PROTO(u64 set, u32 moved, u32 failed),
	TP_ARGS(set, moved, failed),
	TP_STRUCT__entry(
		__field(u64, set)
		__field(u32, moved)
		__field(u32, failed)
	),
	TP_fast_assign(
		__entry->set = set;
		__entry->moved = moved;
		__entry->failed = failed;
	),
	TP_printk("set=%llu moved=%u failed=%u", __entry->set, __entry->moved, __entry->failed)
);

/* A process got a frame out of SRM-buffer's zone: how its color was found. */
TRACE_EVENT(piebald_zone_frame,
	TP_PROTO(pid_t tgid, bool is_file, const struct pb_zone_found *found),
	TP_ARGS(tgid, is_file, found),
	TP_STRUCT__entry(
		__field(pid_t, tgid)
		__field(bool, is_file)
		__field(u64, pfn)
		__field(u32, color)
		__field(u32, cold)
		__field(u32, how)
		__field(u32, begins)
	),
	TP_fast_assign(
		__entry->tgid = tgid;
		__entry->is_file = is_file;
		__entry->pfn = found->pfn;
		__entry->color = found->color;
		__entry->cold = found->cold;
		__entry->how = found->how;
		__entry->begins = found->begins;
	),
	TP_printk("tgid=%d file=%d pfn=%#llx color=%u cold=%u how=%s begins=%u", __entry->tgid,
		  __entry->is_file, __entry->pfn, __entry->color, __entry->cold,
		  __print_symbolic(__entry->how, { 0, "meant" }, { 1, "idle" }, { 2, "short" },
				   { 3, "shared" }, { 4, "next" }, { 5, "outside" }, { 6, "any" }),
		  __entry->begins)
);

/* The zone was refilled: free frames, and pages from the kernel's lists. */
TRACE_EVENT(piebald_zone_refill,
	TP_PROTO(u32 free, u32 cold),
	TP_ARGS(free, cold),
	TP_STRUCT__entry(
		__field(u32, free)
		__field(u32, cold)
	),
	TP_fast_assign(
		__entry->free = free;
		__entry->cold = cold;
	),
	TP_printk("free=%u cold=%u", __entry->free, __entry->cold)
);

/* A cold page's frame was wanted. */
TRACE_EVENT(piebald_evict,
	TP_PROTO(u64 pfn, bool evicted),
	TP_ARGS(pfn, evicted),
	TP_STRUCT__entry(
		__field(u64, pfn)
		__field(bool, evicted)
	),
	TP_fast_assign(
		__entry->pfn = pfn;
		__entry->evicted = evicted;
	),
	TP_printk("pfn=%#llx evicted=%d", __entry->pfn, __entry->evicted)
);

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
