//! Recounts the stock allocator from scratch.

use piebald_policy::contract::Broken;
use piebald_units::Pfn;

use super::{
    super::table::State,
    Stock,
    config::{MAX_ORDER, NR_ORDERS, NR_TYPES},
    zone::Zone,
};

fn broken(rule: &'static str, frame: u32) -> Broken {
    Broken {
        rule,
        frame: Pfn(u64::from(frame)),
    }
}

/// What a walk over the table found in one zone.
#[derive(Default)]
struct Found {
    free: u32,
    cached: u32,
    listed: [[u32; NR_ORDERS]; NR_TYPES],
}

pub(super) fn recount(s: &Stock) -> Result<(), Broken> {
    for (z, zone) in s.zones.iter().enumerate() {
        let found = walk(s, zone)?;
        let held = held(s, z)?;
        if found.free != zone.free {
            return Err(broken(
                "free frames of a zone differ from a recount",
                zone.first,
            ));
        }
        if found.cached != held {
            return Err(broken(
                "frames on per-core lists differ from a recount",
                zone.first,
            ));
        }
        lists(s, zone, &found)?;
    }
    let granted = s.counters.grants - s.counters.frees;
    let heads =
        (0..s.table.frames()).filter(|f| matches!(s.table.state(*f), State::Granted { .. }));
    if heads.count() as u64 != granted {
        return Err(broken("granted blocks differ from grants less frees", 0));
    }
    Ok(())
}

fn walk(s: &Stock, zone: &Zone) -> Result<Found, Broken> {
    let (mut at, mut found) = (zone.first, Found::default());
    while at < zone.end {
        let state = s.table.state(at);
        let Some(order) = state.order().filter(|o| *o <= MAX_ORDER) else {
            return Err(broken("frame is in no block", at));
        };
        let size = 1u32 << order;
        if at % size != 0 || zone.end - at < size {
            return Err(broken("block is misaligned or leaves its zone", at));
        }
        if (at + 1..at + size).any(|f| s.table.state(f) != State::Inner) {
            return Err(broken("blocks overlap", at));
        }
        match state {
            State::Free { kind, .. } => {
                if order < MAX_ORDER && zone.free_buddy(&s.table, at, order).is_some() {
                    return Err(broken("two free buddies are not merged", at));
                }
                found.free += size;
                found.listed[usize::from(kind)][usize::from(order)] += 1;
            }
            State::Cached { .. } => found.cached += size,
            _ => {}
        }
        at += size;
    }
    Ok(found)
}

fn lists(s: &Stock, zone: &Zone, found: &Found) -> Result<(), Broken> {
    for (kind, orders) in zone.lists.iter().enumerate() {
        for (order, list) in orders.iter().enumerate() {
            let want = State::Free {
                order: order as u8,
                kind: kind as u8,
            };
            s.table.validate_list(list, want)?;
            if list.len() != found.listed[kind][order] {
                return Err(broken("a free block is on no list", zone.first));
            }
        }
    }
    Ok(())
}

/// Frames on the per-core lists of a zone.
fn held(s: &Stock, zone: usize) -> Result<u32, Broken> {
    let mut frames = 0;
    let cores = s.core_lists.iter().skip(zone * s.cores).take(s.cores);
    for core in cores {
        let mut own = 0;
        for (list, state) in core.lists() {
            s.table.validate_list(list, state)?;
            own += list.len() << state.order().unwrap_or(0);
        }
        if own != core.held() {
            return Err(broken("a core's frame count differs from a recount", 0));
        }
        frames += own;
    }
    Ok(frames)
}

#[cfg(test)]
mod tests {
    use piebald_policy::contract::{FrameAllocator, FrameRequest};
    use piebald_units::{CoreId, TaskId, Vpn};

    use super::{super::Flavour, super::StockConfig, *};

    fn used() -> Stock {
        let mut s = Stock::new(&StockConfig::new(1 << 13, 2, Flavour::V2_6_30)).unwrap();
        for i in 0..100 {
            s.alloc(&FrameRequest::fault(TaskId(0), CoreId(0), Vpn(i)))
                .unwrap();
        }
        s
    }

    fn rule(s: &Stock) -> &'static str {
        s.validate().map_or_else(|b| b.rule, |()| "none")
    }

    #[test]
    fn a_recount_finds_each_kind_of_damage() {
        assert_eq!(rule(&used()), "none");

        let mut s = used();
        s.zones[0].free += 1;
        assert_eq!(rule(&s), "free frames of a zone differ from a recount");

        let mut s = used();
        let first = s.zones[1].lists[2][10].first().unwrap();
        s.table.set(first, State::Granted { order: 10 });
        assert_eq!(rule(&s), "free frames of a zone differ from a recount");

        let mut s = used();
        let first = s.zones[1].lists[2][10].first().unwrap();
        s.table.set(first + 7, State::Granted { order: 0 });
        assert_eq!(rule(&s), "blocks overlap");

        let mut s = used();
        let first = s.zones[1].lists[2][10].first().unwrap();
        s.table.set(first, State::Inner);
        assert_eq!(rule(&s), "frame is in no block");

        let mut s = used();
        let first = s.zones[1].lists[2][10].first().unwrap();
        s.table.unlink(&mut s.zones[1].lists[2][10], first);
        assert_eq!(rule(&s), "a free block is on no list");

        let mut s = used();
        s.counters.grants += 1;
        assert_eq!(rule(&s), "granted blocks differ from grants less frees");
    }

    #[test]
    fn two_free_buddies_are_a_defect() {
        let mut s = used();
        let first = s.zones[1].lists[2][10].first().unwrap();
        s.table.unlink(&mut s.zones[1].lists[2][10], first);
        for half in [first, first + 512] {
            s.table.set(half, State::Free { order: 9, kind: 2 });
            s.table.push_front(&mut s.zones[1].lists[2][9], half);
        }
        assert_eq!(rule(&s), "two free buddies are not merged");
    }
}
