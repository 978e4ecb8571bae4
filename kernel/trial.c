// SPDX-License-Identifier: GPL-2.0
/*
 * The trial when colouring is switched on: do the kernel's ways to a frame come by the functions that
 * are replaced?
 *
 * A compiler may put a function into its callers, or a part of it. Its name, its signature and ftrace
 * look right then, and frames come by another way. So each way is gone once, by the task that switches
 * on, and the functions count who comes by (hooks.c); nothing is replaced meanwhile. Where one was not
 * called, colouring stays off. What was found holds as long as the module is loaded. A file for it lies in a file system in memory that nobody sees (ramfs),
 * which reads ahead only if the file asks for it.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/fs.h>
#include <linux/mman.h>
#include <linux/mount.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/shmem_fs.h>
#include <linux/swap.h>
#include <linux/uaccess.h>

/* Pages of the file, and which of them is got by which way. */
#define PAGES 64
enum { AHEAD = 0, ALONE = 40, CACHED = 44, MAPPED = 48, WRITTEN = PAGES - 1 };

/* Ways that have been gone: what a compiler did stays. */
static u32 gone;
static struct vfsmount *mount;
static struct file *file;

/* A way was not gone: there is no swap, for example. */
#define NOT_TRIED 1

static int write_page(struct file *to, pgoff_t page)
{
	static const char byte[1] = "x";
	loff_t at = (loff_t)page << PAGE_SHIFT;
	ssize_t done = kernel_write(to, byte, 1, &at);

	return done == 1 ? 0 : done < 0 ? done : -EIO;
}

static int read_page(pgoff_t page, unsigned int ahead)
{
	loff_t at = (loff_t)page << PAGE_SHIFT;
	ssize_t done;
	char byte;

	file->f_ra.ra_pages = ahead;
	done = kernel_read(file, &byte, 1, &at);
	file->f_ra.ra_pages = 0;
	return done == 1 ? 0 : done < 0 ? done : -EIO;
}

/* The last page, so that the others are there to be read. */
static int by_write(void)
{
	return write_page(file, WRITTEN);
}

static int by_readahead(void)
{
	return read_page(AHEAD, 16);
}

static int by_read(void)
{
	return read_page(ALONE, 0);
}

static int by_cache(void)
{
	struct folio *folio = read_cache_folio(file->f_mapping, CACHED, NULL, NULL);

	if (IS_ERR(folio))
		return PTR_ERR(folio);
	folio_put(folio);
	return 0;
}

static int by_shared_memory(void)
{
	struct file *shared = shmem_file_setup(KBUILD_MODNAME, PAGE_SIZE, PB_NORESERVE);
	int error;

	if (IS_ERR(shared))
		return PTR_ERR(shared);
	error = write_page(shared, 0);
	fput(shared);
	return error;
}

/* --- ways through a mapping ----------------------------------------------------- */

static int look_at(unsigned long address)
{
	char byte;

	return get_user(byte, (char __user *)address);
}

static int touch(unsigned long address)
{
	return put_user('x', (char __user *)address);
}

/* Maps the file, or nothing, goes the way and takes the mapping away. */
static int with_mapping(struct file *of, unsigned long flags, int (*way)(unsigned long address))
{
	unsigned long len = PAGES * PAGE_SIZE, address;
	int error;

	address = vm_mmap(of, 0, len, flags & MAP_SHARED ? PROT_READ : PROT_READ | PROT_WRITE, flags,
			  0);
	if (IS_ERR_VALUE(address))
		return address;
	error = way(address);
	vm_munmap(address, len);
	return error;
}

static int look_at_mapped(unsigned long address)
{
	return look_at(address + MAPPED * PAGE_SIZE);
}

static int by_mapping(void)
{
	return with_mapping(file, MAP_SHARED, look_at_mapped);
}

static int by_fault(void)
{
	return with_mapping(NULL, MAP_PRIVATE | MAP_ANONYMOUS, touch);
}

/* A page of the file that is there already. */
static int look_and_touch(unsigned long address)
{
	return look_at(address) ?: touch(address);
}

static int by_copy(void)
{
	return with_mapping(file, MAP_PRIVATE, look_and_touch);
}

/* The page at an address without a reference, or NULL. */
static struct folio *folio_at(unsigned long address)
{
	struct folio *folio;
	struct page *page;

	if (get_user_pages_fast(address, 1, 0, &page) != 1)
		return NULL;
	folio = page_folio(page);
	folio_put(folio);
	return folio;
}

/*
 * Twice: the first time it is written, and may stay in memory until that is done. Nothing is lost if
 * the page is another's by now: it is one that was swapped out as well, or is left alone.
 */
static int read_back(unsigned long address)
{
	struct folio *folio;
	unsigned long before;
	int error = touch(address);

	if (error)
		return error;
	folio = folio_at(address);
	/* A huge page would take many others along. */
	if (!folio || !folio_try_get(folio))
		return NOT_TRIED;
	if (folio_test_large(folio)) {
		folio_put(folio);
		return NOT_TRIED;
	}
	pb_cold_push_out(folio);
	if (folio_try_get(folio)) {
		if (folio_test_swapcache(folio)) {
			folio_wait_writeback(folio);
			pb_cold_push_out(folio);
		} else {
			folio_put(folio);
		}
	}
	before = READ_ONCE(current->maj_flt);
	error = look_at(address);
	return error ?: READ_ONCE(current->maj_flt) == before ? NOT_TRIED : 0;
}

static int by_swap(void)
{
	if (get_nr_swap_pages() <= 0)
		return NOT_TRIED;
	return with_mapping(NULL, MAP_PRIVATE | MAP_ANONYMOUS, read_back);
}

/* --- all of them ------------------------------------------------------------------ */

static const struct way {
	const char *name;
	int (*go)(void);
	/* Functions that have to be called, each or any. */
	bool any;
	u32 hooks;
} ways[] = {
	{ "writing to a file", by_write, false, BIT(PB_HOOK_FILE) | BIT(PB_HOOK_GET_FOLIO) },
	{ "readahead", by_readahead, false,
	  BIT(PB_HOOK_FILE) | BIT(PB_HOOK_READAHEAD) | BIT(PB_HOOK_LARGE_READAHEAD) },
	{ "reading without readahead", by_read, false, BIT(PB_HOOK_FILE) },
	{ "read_cache_folio", by_cache, false, BIT(PB_HOOK_FILE) },
	{ "a fault on a mapped file", by_mapping, false,
	  BIT(PB_HOOK_FILE) | BIT(PB_HOOK_GET_FOLIO) },
	{ "a fault on anonymous memory", by_fault, false, BIT(PB_HOOK_ANON) },
	{ "copy on write", by_copy, false, BIT(PB_HOOK_ANON) },
	{ "shared memory", by_shared_memory, false, BIT(PB_HOOK_MPOL) },
	{ "reading back from swap", by_swap, true, BIT(PB_HOOK_ANON) | BIT(PB_HOOK_MPOL) },
};

/* Functions that were called since this was asked last. */
static u32 called(void)
{
	u32 those = 0;
	unsigned int i;

	for (i = 0; i < PB_NR_HOOKS; i++)
		if (pb_hooks_seen(i))
			those |= BIT(i);
	return those;
}

static int try(const struct way *way, char *why)
{
	int error;
	u32 missing;

	called();
	error = way->go();
	if (error < 0) {
		snprintf(why, PB_TEXT, "on: %s cannot be tried: error %d", way->name, error);
		return error;
	}
	missing = way->hooks & ~called();
	if (error == NOT_TRIED) {
		pr_info("%s was not tried\n", way->name);
		return 0;
	}
	if (!missing || (way->any && missing != way->hooks)) {
		gone |= BIT(way - ways);
		return 0;
	}
	snprintf(why, PB_TEXT, "on: %s does not call %s in this kernel, so its frames would have any color",
		 way->name, pb_hook_name(__ffs(missing)));
	return -EOPNOTSUPP;
}

/* Once for the file of all trials: to take a file system away waits. */
static int open_file(void)
{
	struct file_system_type *type = get_fs_type("ramfs");
	struct path root;

	if (!type)
		return -ENODEV;
	mount = kern_mount(type);
	module_put(type->owner);
	if (IS_ERR(mount)) {
		int error = PTR_ERR(mount);

		mount = NULL;
		return error;
	}
	root = (struct path){ .mnt = mount, .dentry = mount->mnt_root };
	file = file_open_root(&root, "trial", O_RDWR | O_CREAT | O_LARGEFILE, 0600);
	if (IS_ERR(file)) {
		int error = PTR_ERR(file);

		file = NULL;
		pb_trial_end();
		return error;
	}
	return 0;
}

static void empty_file(void)
{
	struct inode *inode = file_inode(file);

	inode_lock(inode);
	truncate_setsize(inode, 0);
	inode_unlock(inode);
}

int pb_trial(char *why)
{
	unsigned int i;
	int error = current->mm ? 0 : -EINVAL;

	if (!error && !file)
		error = open_file();
	if (error) {
		snprintf(why, PB_TEXT, "on: the kernel's functions cannot be tried: error %d", error);
		return error;
	}
	error = pb_hooks_try();
	if (error) {
		snprintf(why, PB_TEXT,
			 "on: functions of the kernel cannot be replaced (error %d): the sysctl kernel.ftrace_enabled is 0, or a live patch has replaced one; see the log",
			 error);
		return error;
	}
	for (i = 0; i < ARRAY_SIZE(ways) && !error; i++)
		if (!(gone & BIT(i)))
			error = try(&ways[i], why);
	pb_hooks_tried();
	empty_file();
	return error;
}

void pb_trial_end(void)
{
	if (file)
		fput(file);
	if (mount)
		kern_unmount(mount);
	file = NULL;
	mount = NULL;
}
