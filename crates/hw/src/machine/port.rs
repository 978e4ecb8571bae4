//! What the operating system asks of the machine.

use piebald_units::{
    Asid, CoreId, Pfn, PhysAddr, Picos, VirtAddr,
    memory::{Load, MemoryPort, PageTables, PhysRef, Progress, Span},
    op::RefKind,
};

use super::{Machine, run::Run};
use crate::cache::Line;

impl MemoryPort for Machine {
    fn run(
        &mut self,
        core: CoreId,
        space: &dyn PageTables,
        refs: &[PhysRef],
        now: Picos,
        horizon: Picos,
    ) -> Progress {
        let thread = usize::from(core.0);
        let physical = self.physical(thread);
        self.hierarchy.activate(physical);
        let express = self.hierarchy.is_express(physical);
        let mut run = Run {
            smt: self.threads.len() > self.cores.len(),
            thread: &mut self.threads[thread],
            core: &mut self.cores[physical],
            path: self.hierarchy.topology.paths[physical],
            levels: self.levels.len(),
            hierarchy: &mut self.hierarchy,
            memory: &mut self.memory,
            in_flight: &mut self.in_flight,
            latency: &self.latency,
            asid: space.asid(),
            space,
            physical,
            express,
            fetches: self.features.fetch,
            coherent: self.features.coherence,
        };
        run.thread.window.set_now(now.0);
        // Up to the last fraction of the horizon's picosecond: the caller sees whole
        // ones, and a core at its horizon must do something.
        let horizon = horizon.0.min(u64::MAX >> 8) << 8 | 0xff;
        let done = run.batch(refs, horizon);
        Progress {
            done,
            now: run.thread.window.report(),
        }
    }

    fn retire(&mut self, core: CoreId, instrs: u32, now: Picos) -> Picos {
        let thread = &mut self.threads[usize::from(core.0)];
        thread.window.set_now(now.0);
        thread.window.dispatch(instrs);
        thread.counters.instructions = thread.window.instructions();
        thread.window.report()
    }

    fn copy(
        &mut self,
        core: CoreId,
        from: Pfn,
        to: Pfn,
        span: Span,
        load: Load,
        now: Picos,
    ) -> Picos {
        let kind = match load {
            Load::Caching => RefKind::Load,
            Load::NonCaching => RefKind::LoadNt,
        };
        self.sweep(core, span, now, |offset, each| {
            each(from, offset, kind);
            each(to, offset, RefKind::Store);
        })
    }

    fn fill(&mut self, core: CoreId, frame: Pfn, span: Span, now: Picos) -> Picos {
        self.sweep(core, span, now, |offset, each| {
            each(frame, offset, RefKind::Store)
        })
    }

    fn drain(&mut self, core: CoreId, now: Picos) -> Picos {
        let window = &mut self.threads[usize::from(core.0)].window;
        window.set_now(now.0);
        window.drain();
        window.report()
    }

    fn device_write(&mut self, frame: Pfn, now: Picos) {
        let first = frame.0 << (piebald_units::PAGE_SHIFT - piebald_units::LINE_SHIFT);
        for line in first..first + LINES_OF_A_PAGE {
            self.hierarchy.discard(line as Line);
            self.memory.device_write(line as Line, now.0 << 8);
        }
    }

    fn device_read(&mut self, frame: Pfn, now: Picos) {
        let first = frame.0 << (piebald_units::PAGE_SHIFT - piebald_units::LINE_SHIFT);
        for line in first..first + LINES_OF_A_PAGE {
            self.memory.device_read(line as Line, now.0 << 8);
        }
    }

    fn shoot_down(&mut self, asid: Asid, page: Option<VirtAddr>) {
        for core in &mut self.cores {
            if let Some(tlb) = &mut core.tlb {
                tlb.shoot_down(asid, page);
            }
        }
    }
}

/// The kernel's own address space: mapped by huge pages that never miss.
struct KernelSpace;

impl PageTables for KernelSpace {
    fn asid(&self) -> Asid {
        Asid(0xff_ffff)
    }

    fn walk(&self, _: VirtAddr) -> piebald_units::memory::Walk {
        piebald_units::memory::Walk {
            entries: Default::default(),
            levels: 0,
            page: piebald_units::PageSize::Huge,
        }
    }
}

/// Lines of a 4 KiB page.
const LINES_OF_A_PAGE: u64 = 64;

/// Bytes that one step of the kernel's copy and clear loops moves: a line.
const SWEEP_BYTES: u16 = 64;
/// Instructions that each line costs them: the kernel moves 8 bytes with one, as
/// it keeps out of the vector registers.
const SWEEP_INSTRS: u32 = 8;

impl Machine {
    /// A core's write-combining buffer, filled by non-temporal stores, goes to memory past
    /// the caches, which lose the line. Nobody waits for it. The whole line counts as
    /// written.
    pub fn write_around(&mut self, core: CoreId, addr: PhysAddr, now: Picos) {
        let thread = usize::from(core.0);
        let line = (addr.0 >> piebald_units::LINE_SHIFT) as Line;
        let socket = self.hierarchy.topology.paths[self.physical(thread)].socket;
        self.hierarchy.discard(line);
        self.memory.write(socket, line, now.0 << 8);
        self.threads[thread].counters.memory_writes += 1;
    }

    /// Runs over a span line by line; `step` names the references of one line.
    fn sweep(
        &mut self,
        core: CoreId,
        span: Span,
        now: Picos,
        mut step: impl FnMut(u16, &mut dyn FnMut(Pfn, u16, RefKind)),
    ) -> Picos {
        let end = u32::from(span.offset) + u32::from(span.len);
        let mut refs = [PhysRef::default(); 128];
        let mut n = 0;
        let mut offset = span.offset & !(SWEEP_BYTES - 1);
        while u32::from(offset) < end && offset < 4096 {
            step(offset, &mut |frame, offset, kind| {
                if n < refs.len() {
                    refs[n] = PhysRef {
                        vaddr: VirtAddr(u64::from(offset) | frame.0 << 12),
                        frame: frame.0 as u32,
                        gap: SWEEP_INSTRS,
                        size: 64,
                        kind,
                        ..PhysRef::default()
                    };
                    n += 1;
                }
            });
            offset += SWEEP_BYTES;
        }
        // Kernel copies are not the program's references.
        let thread = usize::from(core.0);
        let before = self.threads[thread].counters.references;
        let progress = self.run(core, &KernelSpace, &refs[..n], now, Picos::MAX);
        self.threads[thread].counters.references = before;
        progress.now
    }
}
