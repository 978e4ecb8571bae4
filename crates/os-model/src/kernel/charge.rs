//! What kernel paths cost by themselves: instructions, text, kernel data.

use piebald_units::{CoreId, Pfn, TaskId, Vpn, op::RefKind};

use super::{Actions, Kernel, Path, TASK_FRAMES, action::Place};

/// Site of a path's references: this plus the path's number.
const PATH_SITE: u32 = 0xffff_0000;
/// Site of stores to page-table entries.
const ENTRY_SITE: u32 = 0xffff_0100;
/// Site of updates of `struct page`s.
pub(super) const STRUCT_PAGE_SITE: u32 = 0xffff_0101;
/// Distance of two paths' code in lines: more than the longest path has, and
/// odd, so that paths do not all begin in the same cache set.
const PATH_LINES: u64 = 549;

impl Kernel {
    /// Appends what a path costs by itself.
    pub(super) fn charge(
        &self,
        path: Path,
        core: CoreId,
        task: Option<TaskId>,
        actions: &mut Actions,
    ) {
        let cost = self.config.costs.of(path);
        let site = PATH_SITE + path as u32;
        actions.instrs(cost.instrs);
        let text = path as u64 * PATH_LINES * 64;
        let lines = u64::from(cost.text_lines);
        runs(text, lines, |byte, n| {
            actions.run(self.boot.text(byte), n, RefKind::Fetch, site);
        });
        halves(path as u64 * 256, cost.core_lines, |byte, n, kind| {
            actions.run(self.boot.core(core, byte), n, kind, site);
        });
        let task = task.and_then(|t| self.tasks.get(t.0 as usize)?.as_ref());
        let Some(task) = task else { return };
        halves(0, cost.task_lines, |byte, n, kind| {
            let at = Place {
                frame: task.frames[(byte >> 12) as usize % TASK_FRAMES],
                offset: (byte & 4095) as u16,
            };
            actions.run(at, n, kind, site);
        });
    }

    /// Appends a store to the entry of a page and an update of its
    /// `struct page`.
    pub(super) fn charge_entry(&self, process: usize, vpn: Vpn, frame: u32, actions: &mut Actions) {
        if let Some(slot) = self.process(process).space.tables.slot(vpn) {
            let at = Place {
                frame: Pfn(u64::from(slot.frame)),
                offset: slot.offset,
            };
            actions.touch(at, RefKind::Store, ENTRY_SITE);
        }
        actions.touch(
            self.boot.struct_page(frame),
            RefKind::Update,
            STRUCT_PAGE_SITE,
        );
    }
}

/// Cuts `lines` lines from byte `first` on into runs within one page.
fn runs(first: u64, lines: u64, mut f: impl FnMut(u64, u16)) {
    let (mut at, mut left) = (first, lines);
    while left > 0 {
        let n = left.min((4096 - (at & 4095)).div_ceil(64));
        f(at, n as u16);
        at += n * 64;
        left -= n;
    }
}

/// The first half of a structure's lines is loaded, the rest stored to.
fn halves(first: u64, lines: u16, mut f: impl FnMut(u64, u16, RefKind)) {
    let loads = u64::from(lines / 2);
    runs(first, loads, |at, n| f(at, n, RefKind::Load));
    let stores = u64::from(lines) - loads;
    runs(first + loads * 64, stores, |at, n| f(at, n, RefKind::Store));
}
