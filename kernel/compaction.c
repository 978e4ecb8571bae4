// SPDX-License-Identifier: GPL-2.0
/*
 * Compaction while control groups have colours.
 *
 * It gathers pages and free frames, and moves the pages to the frames. Pages in a colour that
 * somebody owns stay where they are: they are put back, as if somebody used them. The others move, but
 * not into owned colours: frames of these go back to the kernel's lists. (They cannot go back to
 * compaction, which gives first what it got last; and no frame at all would end it.) With SRM-buffer
 * on, pages of files stay as well.
 *
 * Whose page it is, is not known here: the colour of its frame says enough. Pages of more than one
 * frame belong to groups without colours.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/list.h>
#include <linux/migrate.h>
#include <linux/mm_inline.h>
#include <linux/static_call.h>

/* Frames that are looked at for one page. */
#define TRIES 256

PB_ORIGINAL(migrate, migrate_pages)

/* Where compaction gets frames, and puts those that it did not need. */
struct source {
	new_folio_t *get;
	free_folio_t *put;
	unsigned long private;
};

/* Is the frame of a colour that somebody owns? */
static bool is_owned(struct folio *folio)
{
	struct pb_given given = { .pfn = folio_pfn(folio) };
	bool unowned;

	spin_lock(&pb_lock);
	unowned = pb_core_may_have(pb_core, NULL, &given);
	spin_unlock(&pb_lock);
	return !unowned;
}

static struct folio *get_unowned(struct folio *from, unsigned long private)
{
	const struct source *source = (const struct source *)private;
	unsigned int tries = TRIES;
	struct folio *to;

	while ((to = source->get(from, source->private)) && !folio_test_large(to) && is_owned(to)) {
		/* Compaction counts it as returned, but does not get it: this reference is the last. */
		folio_get(to);
		source->put(to, source->private);
		folio_put(to);
		if (!--tries)
			return NULL;
	}
	return to;
}

static void put(struct folio *to, unsigned long private)
{
	const struct source *source = (const struct source *)private;

	source->put(to, source->private);
}

static bool stays(struct folio *folio)
{
	if (folio_test_large(folio))
		return false;
	return is_owned(folio) || (pb_zone_is_on() && folio_is_file_lru(folio));
}

/* Leaves pages that stay in `from`, which is what did not move; how many, or less. */
static int compact(struct list_head *from, struct source *source, enum migrate_mode mode,
		   unsigned int *succeeded)
{
	struct folio *folio, *next;
	unsigned int staying = 0;
	int error = 0;
	LIST_HEAD(stay);

	list_for_each_entry_safe(folio, next, from, lru) {
		/* Pages of drivers are not on lists of memory. */
		if (pb_is_of_driver(folio) || !stays(folio))
			continue;
		list_move_tail(&folio->lru, &stay);
		staying++;
	}
	pb_count_many(PB_C_compaction_refused, staying);
	if (!list_empty(from))
		error = static_call(original_migrate)(from, get_unowned, put,
						      (unsigned long)source, mode, MR_COMPACTION,
						      succeeded);
	else if (succeeded)
		*succeeded = 0;
	list_splice_tail(&stay, from);
	return error < 0 ? error : error + (int)staying;
}

static noinline int replace_migrate(struct list_head *from, new_folio_t get, free_folio_t put,
				    unsigned long private, enum migrate_mode mode, int reason,
				    unsigned int *succeeded)
{
	struct source source = { get, put, private };
	int error;

	pb_enter();
	if (reason == MR_COMPACTION)
		error = compact(from, &source, mode, succeeded);
	else
		error = static_call(original_migrate)(from, get, put, private, mode, reason,
						      succeeded);
	pb_leave();
	return error;
}

const struct pb_variant pb_compaction_variants[] = {
	PB_VARIANT(PB_HOOK_COMPACTION, "migrate_pages", 1, migrate),
	{ }
};
