/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The policy core (kernel/core, in Rust) as C sees it.
 *
 * Every function is called with pb_lock held, but for the three that tell sizes. Texts have a
 * length and no end; functions that answer a length never write more than they were lent.
 */
#ifndef PB_CORE_H
#define PB_CORE_H

#include <linux/types.h>

struct pb_core;

/* A colour set, where its round stands and what it had by colour; only the core looks inside. */
struct pb_seat {
	u64 words[40];
};

/* Arrays that are lent for good, for the frames of a memory node. */
struct pb_node_memory {
	void *states;		/* a byte per frame, zero */
	void *links;		/* 8 bytes per frame */
	void *pageblocks;	/* 4 bytes per 512 frames, zero */
	u64 first;		/* a multiple of 1024 */
	u64 frames;
	u64 nr_pageblocks;
};

/* What is lent for good; nodes have numbers from 0 on, in this order. */
struct pb_memory {
	const struct pb_node_memory *nodes;	/* until pb_core_set_up() is over */
	u64 nr_nodes;
	void *pools;		/* pb_node_bytes() for each node, zero */
	void *slots;		/* pb_slot_bytes() for each colour set */
	u64 nr_slots;
};

/* What a map of colours needs, each for every node. */
struct pb_needs {
	size_t list_bytes;
	size_t nr_lists;
	size_t nr_words;	/* of 8 bytes */
	u32 colors;
};

/* A frame that left the pool for a process. */
struct pb_given {
	u64 pfn;
	u32 color;
	u32 fallback;		/* 1: none of the allowed colours */
};

/* In the order of the names in counters.c. */
struct pb_core_counters {
	u64 grants, fallbacks, failures, splits, merges;
	u64 reserved, freed, resized, refused;
};

size_t pb_core_bytes(void);
size_t pb_node_bytes(void);
size_t pb_slot_bytes(void);
void pb_core_set_up(struct pb_core *core, const struct pb_memory *memory);

/* 0, or less and the reason in why. */
int pb_core_read_map(struct pb_core *core, const char *map, size_t map_len,
		     struct pb_needs *needs, char *why, size_t why_len);
/* Forgets all colour sets; the pools are empty, states and pageblocks are zero again. */
int pb_core_set_map(struct pb_core *core, const struct pb_needs *needs, void *lists, u64 *words);
size_t pb_core_print_map(struct pb_core *core, char *out, size_t len);
u32 pb_core_colors(struct pb_core *core);
/* The order of the largest blocks of which all frames have one colour. */
u32 pb_core_whole_order(struct pb_core *core);

int pb_core_add(struct pb_core *core, u32 node, u64 pfn, u32 order);
/* The order of a block of at most so many frames, or less if there is none. */
int pb_core_shed(struct pb_core *core, u32 node, u64 frames, u64 *pfn);
/* The same, if it leaves enough of its colours; less if the largest does not. */
int pb_core_shed_surplus(struct pb_core *core, u32 node, u64 frames, u64 *pfn);
/* Frames of the colour that the node's pool has most of; how many. */
size_t pb_core_shed_most(struct pb_core *core, u32 node, u64 *pfns, size_t len);
/* Which colours a frame may have: the one whose turn it is, the process's own, any. */
enum pb_reach { PB_TURN, PB_OWN, PB_ANY };

/* 0, -EAGAIN (only other colours are there) or -ENOMEM; no seat: a process without colours. */
int pb_core_take(struct pb_core *core, u32 node, struct pb_seat *seat, u32 reach,
		 struct pb_given *given);
/*
 * Deals up to len of the frames that the kernel has at hand; how many. Of nr_spare frames the first *fitting are known to be
 * such as the process may have. They are dealt as they come, but for colours of which it has had far more than of its others;
 * what is left stands first, and *fitting of it are such as it may have.
 */
size_t pb_core_deal_spare(struct pb_core *core, struct pb_seat *seat, struct pb_given *spare, size_t nr_spare,
			  size_t *fitting, struct pb_given *out, size_t len);
/* Deals up to len frames of the node's pool, in the order of the round; how many. */
size_t pb_core_deal_pool(struct pb_core *core, u32 node, struct pb_seat *seat, struct pb_given *out,
			 size_t len);
/* May the process have this frame, which the pool does not have? Says its colour. */
bool pb_core_may_have(struct pb_core *core, const struct pb_seat *seat, struct pb_given *given);
/* The colours from a place on of those that it may have, counted round and round; how many: len, or 0 if it has none. */
size_t pb_core_colors_at(struct pb_core *core, const struct pb_seat *seat, u32 place, u32 *out,
			 size_t len);
/* The colour set of a process, not 0; 0 for all that have none. */
u64 pb_core_set_of(struct pb_core *core, const struct pb_seat *seat);
/* Another one whenever colour sets came, went or changed, or the map. */
u64 pb_core_version(struct pb_core *core);
u64 pb_core_free(struct pb_core *core, u32 node);
/* Frames that left a node's pool one by one, since the map was set. */
u64 pb_core_granted(struct pb_core *core, u32 node);
/* Of all nodes. */
u32 pb_core_free_of(struct pb_core *core, u32 color);

void pb_seat_clear(struct pb_seat *seat);
int pb_core_reserve(struct pb_core *core, struct pb_seat *seat, const char *ask, size_t ask_len,
		    char *why, size_t why_len);
void pb_core_leave(struct pb_core *core, struct pb_seat *seat);
size_t pb_core_print_colors(struct pb_core *core, const struct pb_seat *seat, char *out, size_t len);

void pb_core_counters(struct pb_core *core, struct pb_core_counters *out);
/* Do two sets have a colour in common? */
bool pb_core_overlap(struct pb_core *core, const struct pb_seat *one, const struct pb_seat *other);
/* 1 for each of len frames that has a colour of the set, else 0. */
void pb_core_mark(struct pb_core *core, const struct pb_seat *seat, u64 first, u8 *out, size_t len);
/* Does the process have colours, and the frame none of them? */
bool pb_core_misplaced(struct pb_core *core, const struct pb_seat *seat, u64 pfn);
/*
 * SRM-buffer's zone, which all frames for processes come out of while it is there. Its memory
 * is lent from begin to end.
 */

/* The name of a file or a process; zero is nobody's. */
struct pb_key {
	u64 words[2];
};

/* A request for a frame out of the zone. */
struct pb_zone_ask {
	struct pb_key file;	/* if it is known */
	u64 file_blocks;	/* its size, with this one */
	struct pb_key process;
	u32 is_file;		/* 1: a block of a file; 0: memory */
	u32 spent;		/* 1: the zone cannot be refilled now */
};

/* A frame that left the zone. */
struct pb_zone_found {
	u64 pfn;
	u32 color;
	u32 cold;	/* 1: it has a page, to be evicted first */
	u32 how;	/* in the order of the names in trace.h */
	u32 begins;	/* 1: a sequence begins */
};

struct pb_zone_color {
	u32 pages, free, marked;
};

/* In the order of the names in counters.c. */
struct pb_zone_counters {
	u64 filled, pulled, free, cold, any, sequences, cut, idle, shorts, shared, next;
	u64 refills, empty, declined;
};

/* T_l for so many frames of memory, where nobody sets it. */
u32 pb_zone_default(u64 memory);
size_t pb_zone_bytes(struct pb_core *core);
int pb_zone_begin(struct pb_core *core, void *at, u32 threshold, u64 memory, char *why,
		  size_t why_len);
/* The zone must be empty. */
int pb_zone_end(struct pb_core *core);
int pb_zone_threshold(struct pb_core *core, u32 threshold, u64 memory, char *why, size_t why_len);
/* 0, -EAGAIN (refill it first) or -ENOMEM; no seat: a process without colours. */
int pb_zone_take(struct pb_core *core, const struct pb_seat *seat, const struct pb_zone_ask *ask,
		 struct pb_zone_found *found);
/* The frame that was found could not be used. */
void pb_zone_declined(struct pb_core *core, const struct pb_zone_ask *ask);
/* Moves free frames out of the pool into the zone; how many. */
u32 pb_zone_fill(struct pb_core *core, u32 most);
bool pb_zone_wants(struct pb_core *core);
u32 pb_zone_missing(struct pb_core *core);
int pb_zone_add(struct pb_core *core, u64 pfn, bool cold);
/* What can be spared best; 0 or -ENOMEM. */
int pb_zone_spare(struct pb_core *core, struct pb_zone_found *found);
void pb_zone_fork(struct pb_core *core, const struct pb_key *parent, const struct pb_key *child);
void pb_zone_exit(struct pb_core *core, const struct pb_key *process);
u32 pb_zone_pages(struct pb_core *core);
void pb_zone_color(struct pb_core *core, u32 color, struct pb_zone_color *out);
void pb_zone_counters(struct pb_core *core, struct pb_zone_counters *out);

/*
 * A kernel's type information; the four that follow need no lock.
 */
struct pb_btf {
	const void *parts[6];
};

struct pb_btf_field {
	u64 bit;	/* from the beginning of its structure */
	u64 bytes;
};

/* Number of types, 0 if the data cannot be read. */
size_t pb_btf_types(const u8 *data, size_t len);
/* index: a place for each type; it stays as long as what is opened. False: it cannot be read. */
bool pb_btf_open(const u8 *data, size_t len, u32 *index, size_t types, struct pb_btf *btf);
/* Length of the text, 0: there is no such function, or the text is longer than that. */
size_t pb_btf_signature(const struct pb_btf *btf, const char *name, size_t name_len, char *out,
			size_t len);
bool pb_btf_field(const struct pb_btf *btf, const char *type, size_t type_len, const char *name,
		  size_t name_len, struct pb_btf_field *out);
bool pb_btf_value(const struct pb_btf *btf, const char *name, size_t name_len, s64 *out);

/* 0, or the length of a text that says what does not hold. */
size_t pb_core_check(struct pb_core *core, char *out, size_t len);

#endif
