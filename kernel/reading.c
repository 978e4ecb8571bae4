// SPDX-License-Identifier: GPL-2.0
/*
 * Which file a task gets a block of.
 *
 * The kernel's function that gives a frame to the page cache is not told for which file. So
 * those that call it are replaced while SRM-buffer is on: readahead, which all reads and most
 * faults on mapped files go through, and the lookup that makes a page, which writes and the
 * other faults go through. Each notes its file for as long as it runs, on its own stack, under
 * the task; a note in a note, of a file that reclaim writes for example, hides the outer one.
 * A block that comes by another way (a file system's own, or a read while readahead finds no
 * memory) counts as one of a small file of its process (srm_unknown_file).
 *
 * A file's name is not where its record lies, so that it holds when the record is used again.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/fs.h>
#include <linux/hash.h>
#include <linux/list.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/static_call.h>

#define BUCKET_BITS 7

/* What a task is about, on its stack. */
struct note {
	struct hlist_node node;
	const struct task_struct *task;
	struct pb_key file;
	u64 blocks;
};

struct bucket {
	spinlock_t lock;
	struct hlist_head notes;
};

static struct bucket buckets[1 << BUCKET_BITS] = {
	[0 ... (1 << BUCKET_BITS) - 1] = { .lock = __SPIN_LOCK_UNLOCKED(buckets.lock) },
};

static struct bucket *bucket_of_current(void)
{
	return &buckets[hash_ptr(current, BUCKET_BITS)];
}

static void put_note(struct note *note, const struct address_space *mapping, pgoff_t last)
{
	const struct inode *inode = mapping->host;
	u64 size = DIV_ROUND_UP_ULL(i_size_read(inode), PAGE_SIZE);
	struct bucket *bucket = bucket_of_current();

	note->task = current;
	note->file.words[0] = (u64)inode->i_sb->s_dev << 32 | inode->i_generation;
	note->file.words[1] = inode->i_ino;
	note->blocks = max_t(u64, size, last + 1);
	spin_lock(&bucket->lock);
	hlist_add_head(&note->node, &bucket->notes);
	spin_unlock(&bucket->lock);
}

static void drop_note(struct note *note)
{
	struct bucket *bucket = bucket_of_current();

	spin_lock(&bucket->lock);
	hlist_del(&note->node);
	spin_unlock(&bucket->lock);
}

bool pb_reading(struct pb_key *file, u64 *blocks)
{
	struct bucket *bucket = bucket_of_current();
	const struct note *note;
	bool found = false;

	spin_lock(&bucket->lock);
	hlist_for_each_entry(note, &bucket->notes, node) {
		if (note->task != current)
			continue;
		*file = note->file;
		*blocks = note->blocks;
		found = true;
		break;
	}
	spin_unlock(&bucket->lock);
	return found;
}

PB_ORIGINAL(readahead, page_cache_ra_unbounded)

static noinline void replace_readahead(struct readahead_control *control, unsigned long pages,
				       unsigned long lookahead)
{
	struct note note;

	pb_enter();
	/* Readahead ends with the file, whatever is asked for. */
	put_note(&note, control->mapping, control->_index);
	static_call(original_readahead)(control, pages, lookahead);
	drop_note(&note);
	pb_leave();
}

/* The first variant is told the order of blocks, the second finds it in the state. */
void large_readahead_1_prototype(struct readahead_control *control, struct file_ra_state *state,
				 unsigned int order);
PB_ORIGINAL(large_readahead_1, large_readahead_1_prototype)

static noinline void replace_large_readahead_1(struct readahead_control *control,
					       struct file_ra_state *state, unsigned int order)
{
	struct note note;

	pb_enter();
	put_note(&note, control->mapping, control->_index);
	static_call(original_large_readahead_1)(control, state, order);
	drop_note(&note);
	pb_leave();
}

void large_readahead_2_prototype(struct readahead_control *control, struct file_ra_state *state);
PB_ORIGINAL(large_readahead_2, large_readahead_2_prototype)

static noinline void replace_large_readahead_2(struct readahead_control *control,
					       struct file_ra_state *state)
{
	struct note note;

	pb_enter();
	put_note(&note, control->mapping, control->_index);
	static_call(original_large_readahead_2)(control, state);
	drop_note(&note);
	pb_leave();
}

/* Does this call make a page of a file? A page of the swap cache belongs to no file. */
static bool makes_page(const struct address_space *mapping, fgf_t flags)
{
	return flags & FGP_CREAT && mapping->host;
}

struct folio *get_folio_prototype(struct address_space *mapping, pgoff_t index, fgf_t flags,
				  gfp_t gfp);
PB_ORIGINAL(get_folio, get_folio_prototype)

static noinline struct folio *replace_get_folio(struct address_space *mapping, pgoff_t index,
						fgf_t flags, gfp_t gfp)
{
	bool makes = makes_page(mapping, flags);
	struct folio *folio;
	struct note note;

	pb_enter();
	if (makes)
		put_note(&note, mapping, index);
	folio = static_call(original_get_folio)(mapping, index, flags, gfp);
	if (makes)
		drop_note(&note);
	pb_leave();
	return folio;
}

struct folio *get_folio_mpol_prototype(struct address_space *mapping, pgoff_t index, fgf_t flags,
				       gfp_t gfp, struct mempolicy *policy);
PB_ORIGINAL(get_folio_mpol, get_folio_mpol_prototype)

static noinline struct folio *replace_get_folio_mpol(struct address_space *mapping, pgoff_t index,
						     fgf_t flags, gfp_t gfp,
						     struct mempolicy *policy)
{
	bool makes = makes_page(mapping, flags);
	struct folio *folio;
	struct note note;

	pb_enter();
	if (makes)
		put_note(&note, mapping, index);
	folio = static_call(original_get_folio_mpol)(mapping, index, flags, gfp, policy);
	if (makes)
		drop_note(&note);
	pb_leave();
	return folio;
}

const struct pb_variant pb_reading_variants[] = {
	PB_VARIANT(PB_HOOK_READAHEAD, "page_cache_ra_unbounded", 1, readahead),
	PB_VARIANT(PB_HOOK_LARGE_READAHEAD, "page_cache_ra_order", 1, large_readahead_1),
	PB_VARIANT(PB_HOOK_LARGE_READAHEAD, "page_cache_ra_order", 2, large_readahead_2),
	PB_VARIANT(PB_HOOK_GET_FOLIO, "__filemap_get_folio", 1, get_folio),
	PB_VARIANT(PB_HOOK_GET_FOLIO, "__filemap_get_folio_mpol", 1, get_folio_mpol),
	{ }
};
