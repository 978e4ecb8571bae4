// SPDX-License-Identifier: GPL-2.0
/*
 * The directories of colour sets: /sys/kernel/config/piebald/NAME, made by mkdir and ended by rmdir.
 * What each file says and takes stands in Documentation/ABI/testing/configfs-piebald.
 *
 * A directory holds the module. A write that is refused leaves the reason in /proc/piebald/error
 * and in the kernel's log.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/capability.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

static struct pb_set *set_of(struct config_item *item)
{
	return container_of(item, struct pb_set, item);
}

/* What is done with pb_switch held, for one line that was written. */
typedef int (*action)(struct pb_set *set, char *line, char *why);

static ssize_t act(struct config_item *item, const char *file, const char *text, size_t len,
		   action action)
{
	char *line;
	int error;

	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	line = kstrndup(text, len, GFP_KERNEL);
	if (!line)
		return -ENOMEM;
	error = pb_reason_begin();
	if (!error) {
		error = action(set_of(item), strim(line), pb_reason());
		pb_reason_end(config_item_name(item), file, error);
	}
	kfree(line);
	return error ?: len;
}

/* --- colors, mode, foreign --------------------------------------------------------- */

static ssize_t colors_show(struct config_item *item, char *page)
{
	size_t len = pb_set_print_colors(set_of(item), page, PAGE_SIZE - 1);

	page[len++] = '\n';
	return len;
}

static int set_colors(struct pb_set *set, char *line, char *why)
{
	return pb_set_color(set, line, why);
}

static ssize_t colors_store(struct config_item *item, const char *text, size_t len)
{
	ssize_t done = act(item, "colors", text, len, set_colors);

	return done < 0 ? done : pb_set_vacate(set_of(item)->number) ?: done;
}

/* Which of two words a line is; less and the reason if neither. */
static int word_of(const char *line, const char *no, const char *yes, char *why)
{
	if (!strcmp(line, no) || !strcmp(line, yes))
		return !strcmp(line, yes);
	snprintf(why, PB_TEXT, "\"%.20s\"; allowed: %s, %s", line, no, yes);
	return -EINVAL;
}

static int set_mode(struct pb_set *set, char *line, char *why)
{
	int hard = word_of(line, "hint", "hard", why);

	if (hard < 0)
		return hard;
	spin_lock(&pb_lock);
	set->hard = hard;
	spin_unlock(&pb_lock);
	return 0;
}

static ssize_t mode_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", READ_ONCE(set_of(item)->hard) ? "hard" : "hint");
}

static ssize_t mode_store(struct config_item *item, const char *text, size_t len)
{
	return act(item, "mode", text, len, set_mode);
}

static int set_foreign(struct pb_set *set, char *line, char *why)
{
	int migrate = word_of(line, "allow", "migrate", why);

	if (migrate < 0)
		return migrate;
	spin_lock(&pb_lock);
	set->migrates = migrate;
	spin_unlock(&pb_lock);
	return 0;
}

static ssize_t foreign_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", READ_ONCE(set_of(item)->migrates) ? "migrate" : "allow");
}

static ssize_t foreign_store(struct config_item *item, const char *text, size_t len)
{
	ssize_t done = act(item, "foreign", text, len, set_foreign);

	return done < 0 ? done : pb_set_vacate(set_of(item)->number) ?: done;
}

/* --- groups ------------------------------------------------------------------------ */

static ssize_t groups_show(struct config_item *item, char *page)
{
	size_t len;

	mutex_lock(&pb_switch);
	len = pb_set_print_groups(set_of(item), page, PAGE_SIZE);
	mutex_unlock(&pb_switch);
	return len;
}

static int attach(struct pb_set *set, char *line, char *why)
{
	return pb_set_attach(set, line, why);
}

static ssize_t attach_store(struct config_item *item, const char *text, size_t len)
{
	return act(item, "attach", text, len, attach);
}

static int detach(struct pb_set *set, char *line, char *why)
{
	return pb_set_detach(set, line, why);
}

static ssize_t detach_store(struct config_item *item, const char *text, size_t len)
{
	return act(item, "detach", text, len, detach);
}

/* --- counts ------------------------------------------------------------------------ */

#define PB_NAME(name) #name,
static const char *const events[] = { PB_EVENTS(PB_NAME) };
static const char *const held[] = { PB_HELD(PB_NAME) };
#undef PB_NAME

static ssize_t events_show(struct config_item *item, char *page)
{
	const struct pb_set *set = set_of(item);
	unsigned int i;
	int len = 0;

	spin_lock(&pb_lock);
	for (i = 0; i < PB_NR_EVENTS; i++)
		len += sysfs_emit_at(page, len, "%s %llu\n", events[i], set->events[i]);
	spin_unlock(&pb_lock);
	return len;
}

static ssize_t frames_show(struct config_item *item, char *page)
{
	struct pb_held found = { 0 };
	int error = pb_survey(set_of(item)->number, &found);
	unsigned int i;
	int len = 0;

	if (error)
		return error;
	for (i = 0; i < PB_NR_HELD; i++)
		len += sysfs_emit_at(page, len, "%s %llu\n", held[i], found.frames[i]);
	return len;
}

static ssize_t capacity_show(struct config_item *item, char *page)
{
	struct pb_held found = { 0 };
	int error = pb_survey(set_of(item)->number, &found);

	return error ?: sysfs_emit(page, "%llu\n", pb_capacity(&found));
}

/* --- the tree ---------------------------------------------------------------------- */

#define READ_ONLY(name)								\
static struct configfs_attribute attr_##name = {				\
	.ca_name = #name, .ca_mode = 0400, .ca_owner = THIS_MODULE, .show = name##_show,	\
}
#define WRITE_ONLY(name)							\
static struct configfs_attribute attr_##name = {				\
	.ca_name = #name, .ca_mode = 0200, .ca_owner = THIS_MODULE, .store = name##_store,	\
}
#define READ_WRITE(name)							\
static struct configfs_attribute attr_##name = {				\
	.ca_name = #name, .ca_mode = 0600, .ca_owner = THIS_MODULE,		\
	.show = name##_show, .store = name##_store,				\
}

READ_WRITE(colors);
READ_WRITE(mode);
READ_WRITE(foreign);
READ_ONLY(groups);
WRITE_ONLY(attach);
WRITE_ONLY(detach);
READ_ONLY(events);
READ_ONLY(frames);
READ_ONLY(capacity);

static struct configfs_attribute *attributes[] = {
	&attr_colors, &attr_mode, &attr_foreign, &attr_groups, &attr_attach, &attr_detach,
	&attr_events, &attr_frames, &attr_capacity, NULL,
};

static void release(struct config_item *item)
{
	kfree(set_of(item));
}

static struct configfs_item_operations set_operations = {
	.release = release,
};

static const struct config_item_type set_type = {
	.ct_item_ops = &set_operations,
	.ct_attrs = attributes,
	.ct_owner = THIS_MODULE,
};

static struct config_item *make(struct config_group *group, const char *name)
{
	struct pb_set *set;

	if (!capable(CAP_SYS_ADMIN))
		return ERR_PTR(-EPERM);
	set = kzalloc(sizeof(*set), GFP_KERNEL);
	if (!set)
		return ERR_PTR(-ENOMEM);
	config_item_init_type_name(&set->item, name, &set_type);
	set->migrates = true;
	mutex_lock(&pb_switch);
	pb_set_add(set);
	mutex_unlock(&pb_switch);
	return &set->item;
}

static void drop(struct config_group *group, struct config_item *item)
{
	mutex_lock(&pb_switch);
	pb_set_end(set_of(item));
	mutex_unlock(&pb_switch);
	config_item_put(item);
}

static struct configfs_group_operations tree_operations = {
	.make_item = make,
	.drop_item = drop,
};

static const struct config_item_type tree_type = {
	.ct_group_ops = &tree_operations,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem tree = {
	.su_group.cg_item = {
		.ci_namebuf = KBUILD_MODNAME,
		.ci_type = &tree_type,
	},
};

int pb_setfs_set_up(void)
{
	config_group_init(&tree.su_group);
	mutex_init(&tree.su_mutex);
	return configfs_register_subsystem(&tree);
}

void pb_setfs_end(void)
{
	configfs_unregister_subsystem(&tree);
}
