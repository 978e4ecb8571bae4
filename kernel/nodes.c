// SPDX-License-Identifier: GPL-2.0
/*
 * Memory nodes: which there are, and which of them a request may have frames of, in what order.
 *
 * There is a pool for each node that has memory when the module is loaded. A request goes from node to
 * node as the kernel's own would: from the nearest on, and only to those that its memory policy and the
 * task's cpuset allow. Frames of nodes that come later are the kernel's.
 */
#include "piebald.h" /* first: it says how messages begin */

#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>

unsigned int pb_nr_nodes;
static int numbers[PB_NODES];
static s8 places[MAX_NUMNODES];

int pb_nodes_set_up(void)
{
	int nid;

	memset(places, -1, sizeof(places));
	for_each_node_state(nid, N_MEMORY) {
		if (pb_nr_nodes == PB_NODES) {
			pr_err("%d memory nodes; this module knows machines with %d at most\n",
			       num_node_state(N_MEMORY), PB_NODES);
			return -EOPNOTSUPP;
		}
		places[nid] = pb_nr_nodes;
		numbers[pb_nr_nodes++] = nid;
	}
	return 0;
}

int pb_node_number(unsigned int node)
{
	return numbers[node];
}

int pb_node_at(int nid)
{
	return nid >= 0 && nid < MAX_NUMNODES ? places[nid] : -1;
}

int pb_node_of(const struct page *page)
{
	return pb_node_at(page_to_nid(page));
}

bool pb_has_plenty(unsigned int node)
{
	struct pglist_data *pgdat = NODE_DATA(pb_node_number(node));
	enum zone_type type;

	for (type = 0; type < MAX_NR_ZONES; type++) {
		struct zone *zone = &pgdat->node_zones[type];

		if (populated_zone(zone) && zone_page_state(zone, NR_FREE_PAGES) >
		    low_wmark_pages(zone) + zone->lowmem_reserve[ZONE_MOVABLE] +
		    (1UL << PB_REFILL_ORDER))
			return true;
	}
	return false;
}

int pb_node_near(int nid)
{
	struct zoneref *at;

	/* Processors that are not there yet may have no node. */
	if (pb_nr_nodes == 1 || nid < 0 || nid >= MAX_NUMNODES || !node_online(nid))
		return 0;
	for (at = node_zonelist(nid, 0)->_zonerefs; at->zone; at++) {
		int node = pb_node_at(zone_to_nid(at->zone));

		if (node >= 0)
			return node;
	}
	return -1;
}

bool pb_may_use_node(const struct pb_request *r, int nid)
{
	return node_isset(nid, cpuset_current_mems_allowed) &&
	       (!r->nodes || node_isset(nid, *r->nodes));
}

unsigned int pb_nodes_for(const struct pb_request *r, u8 *nodes)
{
	unsigned long seen = 0;
	struct zoneref *at;
	unsigned int n = 0;

	if (pb_one_node()) {
		nodes[0] = 0;
		return 1;
	}
	for (at = node_zonelist(r->nid, r->gfp)->_zonerefs; at->zone; at++) {
		int nid = zone_to_nid(at->zone), node = pb_node_at(nid);

		if (node < 0 || seen & BIT(node) || !pb_may_use_node(r, nid))
			continue;
		seen |= BIT(node);
		nodes[n++] = node;
	}
	return n;
}
