//! Pages, frames and mappings, recounted.

use std::collections::HashMap;

use super::super::{Kernel, KernelBroken, validate::broken};
use crate::space::{Entry, VPN_MASK};
use piebald_units::Vpn;

impl Kernel {
    /// Adds what the pool and the tasks hold to the users of frames, and compares the
    /// pool with page tables and file side.
    pub(in super::super) fn check_pool(
        &mut self,
        users: &mut HashMap<u32, u32>,
    ) -> Result<(), KernelBroken> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let mut pages = 0;
        for (number, slot) in pool.pages.iter().enumerate() {
            let what = || format!("page {number}");
            let Some(frame) = slot.frame else {
                if !slot.maps.is_empty() || slot.holds > 0 {
                    let maps = slot.maps.len() as u64;
                    return Err(broken(
                        "a page without frame is not mapped",
                        what(),
                        maps,
                        0,
                    ));
                }
                continue;
            };
            pages += 1;
            *users.entry(frame).or_default() += 1;
            if pool.page_in(frame).map(|p| p.index()) != Some(number) {
                return Err(broken("a frame knows its page", what(), 0, frame.into()));
            }
            for (process, vpn) in &slot.maps {
                let entry = self.process(*process).space.entry(*vpn);
                if entry.map(Entry::frame) != Some(frame) {
                    return Err(broken("a mapping leads to its page", what(), 0, vpn.0));
                }
            }
        }
        let held = pool.tasks.iter().flat_map(|t| {
            let transfer = t.transfer.and_then(|t| t.held);
            [t.got, t.old, transfer].into_iter().flatten()
        });
        for held in held {
            *users.entry(held.frame).or_default() += 1;
        }
        let Some(paging) = &pool.paging.0 else {
            return Ok(());
        };
        let resident = u64::from(paging.resident());
        if resident != pages {
            return Err(broken("pages with frames", "pool".into(), resident, pages));
        }
        paging
            .validate()
            .map_err(|why| broken("file side", why.to_string(), 0, 0))?;
        self.check_zone(paging.in_zone())?;
        self.check_maps()
    }

    /// Every entry of a page table is among its page's mappings.
    fn check_maps(&mut self) -> Result<(), KernelBroken> {
        for number in 0..self.processes.len() {
            let Some(p) = self.processes[number].as_mut() else {
                continue;
            };
            let mut entries = Vec::new();
            p.space
                .tables
                .visit(Vpn(0), Vpn(VPN_MASK + 1), &mut |vpn, e, _| {
                    if !e.has(Entry::ZERO) {
                        entries.push((vpn, e));
                    }
                    e
                });
            let Some(pool) = &self.pool else { continue };
            for (vpn, e) in entries {
                let slot = pool.page_in(e.frame()).and_then(|p| pool.slot(p));
                let times = slot.map_or(0, |s| {
                    s.maps.iter().filter(|m| **m == (number, vpn)).count()
                });
                if times != 1 {
                    let what = format!("process {number}, page {:#x}", vpn.0);
                    return Err(broken(
                        "an entry is among its page's mappings",
                        what,
                        1,
                        times as u64,
                    ));
                }
            }
        }
        Ok(())
    }

    /// Users of ids that are not `swapped`: mappings, objects, copies under way.
    pub(in super::super) fn count_ids(&self, users: &mut [u32]) {
        let Some(pool) = &self.pool else { return };
        let mut count = |id: u32| {
            if let Some(n) = users.get_mut(id as usize) {
                *n += 1;
            }
        };
        pool.shared.values().for_each(|id| count(*id));
        pool.tasks
            .iter()
            .filter_map(|t| t.fresh)
            .for_each(&mut count);
        for slot in &pool.pages {
            for (process, vpn) in &slot.maps {
                let entry = self.process(*process).space.entry(*vpn);
                if let Some(e) = entry.filter(|e| !e.has(Entry::CACHED))
                    && let Some(id) = pool.id_in(e.frame())
                {
                    count(id);
                }
            }
        }
    }
}
