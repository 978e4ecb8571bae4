//! What lies behind the last caches: buses, links, controllers and DRAM.

mod sizes;

pub use sizes::nearest_size;

use piebald_units::{PhysAddr, Picos};

use crate::{
    cache::{Line, MAX_LINES},
    dram::{Dram, RowOutcome},
    error::SpecError,
    links::{Links, Transfer, Upgrade},
    machine::Options,
    spec::{LinkSpec, MachineSpec, Spread},
    window::Q8,
};

/// A finished read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fetched {
    /// When the line is at the core.
    pub(crate) ready: Q8,
    pub(crate) row: RowOutcome,
}

/// All memory of a machine.
#[derive(Clone)]
pub(crate) struct Memory {
    drams: Vec<Dram>,
    /// Controllers that are enabled, as indices of `drams`.
    enabled: Vec<u16>,
    spread: Spread,
    /// Bytes behind each controller, if memory is divided contiguously.
    part: u64,
    size: u64,
    /// Half of the time over the links and of the fixed part, for every controller
    /// of the first socket, then of the second.
    way: Vec<Q8>,
    links: Links,
    /// Controllers of a socket.
    per_socket: usize,
}

impl Memory {
    pub(crate) fn new(spec: &MachineSpec, cycle: Q8, options: &Options) -> Result<Self, SpecError> {
        let disabled = &options.disabled_controllers;
        let memory = &spec.memory;
        let n = usize::from(memory.controllers);
        let sockets = usize::from(spec.core.sockets);
        if n == 0 || !(n.is_multiple_of(sockets) || sockets.is_multiple_of(n)) {
            let allowed = "1 or more, a multiple or a divisor of the number of sockets";
            return Err(SpecError::new("memory.controllers", n, allowed));
        }
        let size = memory.size.0;
        if size == 0 || size >> 6 >= MAX_LINES || !size.is_multiple_of(4096 * n as u64) {
            let allowed = "whole pages for each controller, below 256 GiB";
            return Err(SpecError::new("memory.size", memory.size, allowed));
        }
        let enabled: Vec<u16> = (0..n as u16).filter(|c| !disabled.contains(c)).collect();
        if enabled.is_empty() {
            let allowed = "at least one controller left enabled";
            return Err(SpecError::new(
                "disabled controllers",
                format!("{disabled:?}"),
                allowed,
            ));
        }
        // All memory must fit behind the controllers that are left.
        let part = part(size, enabled.len());
        let drams = (0..n)
            .map(|_| Dram::new(&memory.dram, part, "memory.dram"))
            .collect::<Result<_, _>>()
            .map_err(|cause| sizes::in_words(memory, enabled.len(), options.least_memory, cause))?;
        Ok(Self {
            drams,
            enabled,
            spread: memory.spread,
            part,
            size,
            way: ways(memory.fixed_latency.0 << 8, &spec.links, cycle, sockets, n),
            links: Links::new(&spec.links, sockets, cycle)?,
            per_socket: n.div_ceil(sockets),
        })
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Controller of a line and the address behind it.
    #[inline]
    fn home(&self, line: Line) -> (usize, PhysAddr) {
        if let [only] = self.enabled[..] {
            return (usize::from(only), PhysAddr(u64::from(line) << 6));
        }
        self.home_of_many(line)
    }

    #[inline(never)]
    fn home_of_many(&self, line: Line) -> (usize, PhysAddr) {
        let addr = u64::from(line) << 6;
        let n = self.enabled.len() as u64;
        let (at, local) = match self.spread {
            Spread::Contiguous => (addr / self.part, addr % self.part),
            Spread::Page => (addr >> 12, addr & 4095),
            Spread::Line => (addr >> 6, addr & 63),
        };
        let local = match self.spread {
            Spread::Contiguous => local,
            Spread::Page => ((at / n) << 12) | local,
            Spread::Line => ((at / n) << 6) | local,
        };
        (
            usize::from(self.enabled[(at % n) as usize]),
            PhysAddr(local),
        )
    }

    /// Reads a line for a core of `socket`; the request leaves the last cache at `now`.
    #[inline]
    pub(crate) fn read(&mut self, socket: u16, line: Line, now: Q8) -> Fetched {
        let (controller, addr) = self.home(line);
        let home = self.socket_of(controller);
        let asked = self.links.ask(socket, home, line, now);
        let way = self.way[usize::from(socket) * self.drams.len() + controller];
        let done = self.drams[controller].read(addr, Picos((asked.leaves + way) >> 8));
        let ready = (done.ready.0 << 8) + way;
        Fetched {
            ready: self.links.bring(home, socket, line, ready).max(asked.heard),
            row: done.row,
        }
    }

    /// Socket of a controller. Where there are fewer of these, the first sockets have one each.
    #[inline]
    const fn socket_of(&self, controller: usize) -> u16 {
        (controller / self.per_socket) as u16
    }

    /// Do buses or links take part in what passes from cache to cache?
    #[inline]
    pub(crate) const fn carries_transfers(&self) -> bool {
        self.links.carries_transfers()
    }

    /// A cache's line comes to a core of another group or of the same, in `latency` if nothing is
    /// in its way; the request leaves at `now`.
    pub(crate) fn transfer(
        &mut self,
        (from, to): (u16, u16),
        leaves_group: bool,
        line: Line,
        now: Q8,
        latency: Q8,
    ) -> Q8 {
        let home = self.socket_of(self.home(line).0);
        let asked = self.links.ask(to, home, line, now);
        let way = Transfer {
            from,
            to,
            home,
            leaves_group,
        };
        let ready = self.links.transfer(way, line, asked.leaves + latency);
        ready.max(asked.heard)
    }

    /// A core that holds a line asks that all others lose it, as [`transfer`](Self::transfer).
    pub(crate) fn upgrade(
        &mut self,
        socket: u16,
        alone: bool,
        line: Line,
        now: Q8,
        latency: Q8,
    ) -> Q8 {
        let way = Upgrade {
            socket,
            home: self.socket_of(self.home(line).0),
            alone,
        };
        let asked = self.links.upgrade(way, line, now);
        asked.heard.max(asked.leaves + latency)
    }

    /// Writes a line that comes from a device: no socket's bus is in its way.
    pub(crate) fn device_write(&mut self, line: Line, now: Q8) {
        let (controller, addr) = self.home(line);
        self.drams[controller].write(addr, Picos(now >> 8));
    }

    /// Reads a line for a device: no socket's bus is in its way, and no core waits.
    pub(crate) fn device_read(&mut self, line: Line, now: Q8) {
        let (controller, addr) = self.home(line);
        self.drams[controller].read(addr, Picos(now >> 8));
    }

    /// Writes a line back; nobody waits for it, but it takes bus and bank time.
    pub(crate) fn write(&mut self, socket: u16, line: Line, now: Q8) {
        let (controller, addr) = self.home(line);
        let home = self.socket_of(controller);
        self.links.write(socket, home, line, now);
        self.drams[controller].write(addr, Picos(now >> 8));
    }

    /// Takes over a line that passes from a cache of one socket to one of another or the same.
    pub(crate) fn take_over(&mut self, (from, to): (u16, u16), line: Line, now: Q8) {
        if self.links.bus_carries_transfers() {
            // The bus moves it once, for the one that asked and for memory.
            self.device_write(line, now);
        } else if self.links.carries_transfers() {
            self.write(from, line, now);
        } else {
            self.write(to, line, now);
        }
    }
}

/// Bytes behind each of the controllers that are enabled.
fn part(size: u64, enabled: usize) -> u64 {
    (size / enabled as u64).next_multiple_of(4096)
}

/// Time from every socket to every controller: what is fixed and the links are
/// crossed there and back, half each way.
fn ways(fixed: Q8, links: &LinkSpec, cycle: Q8, sockets: usize, controllers: usize) -> Vec<Q8> {
    let per_socket = controllers.div_ceil(sockets);
    let hops = |from: usize, to: usize| links.hops_between(from, to);
    let hop = Q8::from(links.hop_latency) * cycle;
    (0..sockets * controllers)
        .map(|i| (i / controllers, i % controllers / per_socket))
        .map(|(from, to)| (fixed + hop * Q8::from(hops(from, to))) / 2)
        .collect()
}
