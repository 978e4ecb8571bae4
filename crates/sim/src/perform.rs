//! Carries out kernel work on the machine.

use piebald_hw::Machine;
use piebald_os_model::kernel::{Action, Actions, Kernel};
use piebald_units::{
    CoreId, Pfn, Picos,
    memory::{Load, MemoryPort, PhysRef, Span},
    op::RefKind,
};

const PAGE: Span = Span {
    offset: 0,
    len: 4096,
};

/// Performs `actions` on `core` from `now` on; returns the core's new clock.
pub(crate) fn perform(
    machine: &mut Machine,
    kernel: &Kernel,
    core: CoreId,
    actions: &Actions,
    scratch: &mut Vec<PhysRef>,
    now: Picos,
) -> Picos {
    let mut now = now;
    for action in actions.as_slice() {
        now = match *action {
            Action::Instrs(n) => machine.retire(core, n, now),
            Action::Touch { .. } => {
                scratch.clear();
                action.refs(scratch);
                run(machine, kernel, core, scratch, now)
            }
            Action::Zero { frame, frames } => (0..u64::from(frames)).fold(now, |now, i| {
                machine.fill(core, Pfn(frame.0 + i), PAGE, now)
            }),
            Action::Copy { from, to } => machine.copy(core, from, to, PAGE, Load::Caching, now),
            Action::CopyUser {
                from,
                from_offset,
                to,
                to_offset,
                len,
            } => {
                scratch.clear();
                copy_refs(scratch, (from, from_offset), (to, to_offset), len);
                run(machine, kernel, core, scratch, now)
            }
            Action::ShootDown { asid, page } => {
                machine.shoot_down(asid, page);
                now
            }
        };
    }
    now
}

fn run(
    machine: &mut Machine,
    kernel: &Kernel,
    core: CoreId,
    refs: &[PhysRef],
    now: Picos,
) -> Picos {
    machine
        .run(core, kernel.kernel_space(), refs, now, Picos::MAX)
        .now
}

/// Bytes that the kernel's copy loop moves with one load and one store.
const CHUNK: u16 = 64;
/// Instructions of one turn of that loop.
const TURN: u32 = 4;

/// Loads and stores of a copy whose two sides need not be aligned alike.
fn copy_refs(out: &mut Vec<PhysRef>, from: (Pfn, u16), to: (Pfn, u16), len: u16) {
    let mut done = 0;
    while done < len {
        let size = CHUNK.min(len - done) as u8;
        for ((frame, offset), kind) in [(from, RefKind::Load), (to, RefKind::Store)] {
            let at = offset + done;
            out.push(PhysRef {
                vaddr: piebald_os_model::kernel::direct_address(frame, at),
                frame: frame.0 as u32,
                site: 0xffff_ff00 + kind as u32,
                gap: TURN / 2,
                dep: 0,
                size,
                kind,
            });
        }
        done += u16::from(size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_reads_and_writes_every_byte_once() {
        let mut refs = Vec::new();
        copy_refs(&mut refs, (Pfn(3), 10), (Pfn(7), 200), 1000);
        let bytes = |kind| -> u32 {
            refs.iter()
                .filter(|r| r.kind == kind)
                .map(|r| u32::from(r.size))
                .sum()
        };
        assert_eq!((bytes(RefKind::Load), bytes(RefKind::Store)), (1000, 1000));
        assert_eq!(refs[0].paddr().0, 3 * 4096 + 10);
        assert_eq!(
            refs.last().map(|r| r.paddr().0 + u64::from(r.size)),
            Some(7 * 4096 + 1200)
        );
    }
}
