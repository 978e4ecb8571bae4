/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Where headers of kernels differ: one line for each name, and the version that has the new one. Built
 * and run are 6.12 and 7.3. Functions that are called or replaced by their address are no matter of
 * versions but of their signatures (known.tsv).
 */
#ifndef PB_COMPAT_H
#define PB_COMPAT_H

#include <linux/version.h>

#define PB_SINCE(major, minor) (LINUX_VERSION_CODE >= KERNEL_VERSION(major, minor, 0))

#if PB_SINCE(6, 14) /* has one name for pages in an array and on a list */
#define pb_alloc_bulk(gfp, nid, n, pages) alloc_pages_bulk_node(gfp, nid, n, pages)
#else
#define pb_alloc_bulk(gfp, nid, n, pages) alloc_pages_bulk_array_node(gfp, nid, n, pages)
#endif

#if PB_SINCE(6, 14) /* counts the first use as well */
#define pb_uses_beyond_first(folio) (folio_lru_refs(folio) > 1)
#else
#define pb_uses_beyond_first(folio) (folio_lru_refs(folio) > 0)
#endif

#if PB_SINCE(6, 15) /* knows, instead of guessing */
#define pb_is_mapped_shared(folio) folio_maybe_mapped_shared(folio)
#else
#define pb_is_mapped_shared(folio) folio_likely_mapped_shared(folio)
#endif

#if PB_SINCE(6, 17) /* tells them by their type, not by their mapping */
#define pb_is_of_driver(folio) page_has_movable_ops(&(folio)->page)
#else
#define pb_is_of_driver(folio) __folio_test_movable(folio)
#endif

#if PB_SINCE(6, 18) /* has a type for them */
#define pb_flags(folio) (&(folio)->flags.f)
#else
#define pb_flags(folio) (&(folio)->flags)
#endif

#ifdef TVA_IN_PF /* flags; then a number */
#define pb_asks_for_fault(why) ((why) & (TVA_IN_PF | TVA_SMAPS))
#else
#define pb_asks_for_fault(why) ((why) == TVA_PAGEFAULT || (why) == TVA_SMAPS)
#endif

#if PB_SINCE(7, 3) /* at the latest: has a type for them */
#define PB_NORESERVE mk_vma_flags(VMA_NORESERVE_BIT)
#else
#define PB_NORESERVE VM_NORESERVE
#endif

#if PB_SINCE(7, 3) /* at the latest: keeps it to itself */
#define PB_MAY_SWAP (1 << 1)
#else
#define PB_MAY_SWAP MEMCG_RECLAIM_MAY_SWAP
#endif

#endif
