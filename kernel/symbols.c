// SPDX-License-Identifier: GPL-2.0
/*
 * Where functions of the kernel lie that are not exported.
 *
 * They are called by static calls, never by pointers: a static call is patched into a direct
 * one, while an indirect call needs a landing mark at its target, and the kernel removes the
 * marks of functions that nobody calls indirectly where processors look for them.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/kprobes.h>
#include <linux/static_call.h>

unsigned long lookup_prototype(const char *name);
DEFINE_STATIC_CALL_NULL(lookup, lookup_prototype);

/* kallsyms_lookup_name() is not exported either; a probe on it tells where it is. */
int pb_symbols_set_up(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name" };

	if (register_kprobe(&probe)) {
		pr_err("this kernel has no kallsyms_lookup_name that can be probed\n");
		return -EOPNOTSUPP;
	}
	static_call_update(lookup, (typeof(&lookup_prototype))probe.addr);
	unregister_kprobe(&probe);
	return 0;
}

unsigned long pb_lookup(const char *name)
{
	return static_call(lookup)(name);
}

void *pb_symbol(const char *name)
{
	unsigned long address = pb_lookup(name);

	if (!address)
		pr_err("this kernel has no function %s\n", name);
	else if (pb_known_variant(name, true) < 0)
		return NULL;
	return (void *)address;
}
