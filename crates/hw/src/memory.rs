//! What lies behind the last caches: buses, links, controllers and DRAM.

mod sizes;

pub use sizes::nearest_size;

use piebald_units::{PhysAddr, Picos};

use crate::{
    cache::{Line, MAX_LINES},
    dram::{Dram, RowOutcome},
    error::SpecError,
    lane::Lane,
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

/// A bus that moves one line at a time.
#[derive(Clone, Debug)]
struct Bus {
    /// Time that a line takes.
    line: Q8,
    lane: Lane,
}

impl Bus {
    fn new(line: Q8) -> Self {
        Self {
            line,
            lane: Lane::new(),
        }
    }

    /// Moves a line from `now` on, or when the bus is free; returns the end.
    fn pass(&mut self, now: Q8) -> Q8 {
        self.lane.pass(now, self.line)
    }
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
    buses: Vec<Bus>,
}

impl Memory {
    pub(crate) fn new(spec: &MachineSpec, cycle: Q8, disabled: &[u16]) -> Result<Self, SpecError> {
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
            .map_err(|cause| sizes::in_words(memory, enabled.len(), cause))?;
        check_hops(&spec.links, sockets)?;
        let buses = match spec.links.socket_bus_bytes_per_second {
            None => Vec::new(),
            Some(rate) if rate.0 == 0 => {
                let field = "links.socket_bus_bytes_per_second";
                return Err(SpecError::new(field, rate, "more than 0"));
            }
            Some(rate) => {
                let line = (64_000_000_000_000u128 << 8) / u128::from(rate.0);
                vec![Bus::new(line as Q8); sockets]
            }
        };
        Ok(Self {
            drams,
            enabled,
            spread: memory.spread,
            part,
            size,
            way: ways(memory.fixed_latency.0 << 8, &spec.links, cycle, sockets, n),
            buses,
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
        let way = self.way[usize::from(socket) * self.drams.len() + controller];
        let done = self.drams[controller].read(addr, Picos((now + way) >> 8));
        let mut ready = (done.ready.0 << 8) + way;
        if let Some(bus) = self.buses.get_mut(usize::from(socket)) {
            ready = ready.max(bus.pass(ready - bus.line));
        }
        Fetched {
            ready,
            row: done.row,
        }
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
        if let Some(bus) = self.buses.get_mut(usize::from(socket)) {
            bus.pass(now);
        }
        self.drams[controller].write(addr, Picos(now >> 8));
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
    let hops = |from: usize, to: usize| match from == to {
        true => 0,
        false => {
            let row = links.hops.get(from);
            row.and_then(|row| row.get(to)).copied().unwrap_or(1)
        }
    };
    let hop = Q8::from(links.hop_latency) * cycle;
    (0..sockets * controllers)
        .map(|i| (i / controllers, i % controllers / per_socket))
        .map(|(from, to)| (fixed + hop * Q8::from(hops(from, to))) / 2)
        .collect()
}

fn check_hops(links: &LinkSpec, sockets: usize) -> Result<(), SpecError> {
    if links.hops.is_empty() {
        return Ok(());
    }
    let square = links.hops.len() == sockets && links.hops.iter().all(|r| r.len() == sockets);
    if !square {
        let value = format!("{:?}", links.hops);
        let allowed = format!("{sockets} rows of {sockets} numbers");
        return Err(SpecError::new("links.hops", value, allowed));
    }
    Ok(())
}
