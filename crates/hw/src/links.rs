//! What lies between the sockets: front-side buses, and links from socket to socket.
//!
//! A link has one direction and joins two sockets that are one hop apart. What goes further
//! crosses several, by a shortest way; where there are several of those, odd and even lines take
//! different ones. Latencies are those of the machine file: what is here is only what a message
//! waits for others. A message is cut through, so that its passages of several links overlap.
//!
//! Sizes are those of coherent HyperTransport (HyperTransport I/O Link Specification 1.10,
//! chapter 4: control packets of 4 and 8 bytes, data packets of 4 to 64): a request and a probe
//! have an address, an answer has none, and data follows an answer or a request.

use crate::{
    cache::Line,
    error::SpecError,
    lane::Lane,
    spec::{LinkSpec, Probes},
    window::Q8,
};

/// Bytes of a request with its address, and of a probe.
const REQUEST: u64 = 8;
/// Bytes of an answer without data: a probe's, and the one that ends a request.
const ANSWER: u64 = 4;
/// Bytes of an answer with a line.
const LINE_ANSWER: u64 = ANSWER + 64;
/// Bytes of a request that brings a line to memory.
const LINE_REQUEST: u64 = REQUEST + 64;

/// Time in which something passes at a rate in bytes a second.
fn time_of(bytes: u64, rate: u64) -> Q8 {
    let time = (u128::from(bytes) * (1_000_000_000_000 << 8)) / u128::from(rate.max(1));
    time as Q8
}

/// What lies between the sockets of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    /// Of each socket; empty if there are none.
    buses: Vec<Lane>,
    /// Time of a line on a bus.
    bus_line: Q8,
    bus_transfers: bool,
    net: Option<Net>,
}

impl Links {
    pub(crate) fn new(spec: &LinkSpec, sockets: usize, cycle: Q8) -> Result<Self, SpecError> {
        check_hops(spec, sockets)?;
        let bus = rate(
            "socket_bus_bytes_per_second",
            spec.socket_bus_bytes_per_second,
        )?;
        let link = rate("link_bytes_per_second", spec.link_bytes_per_second)?;
        Ok(Self {
            buses: bus.map_or_else(Vec::new, |_| vec![Lane::new(); sockets]),
            bus_line: bus.map_or(0, |rate| time_of(64, rate)),
            bus_transfers: spec.socket_bus_transfers,
            net: match link {
                Some(rate) => Some(Net::new(spec, rate, sockets, cycle)?),
                None => None,
            },
        })
    }

    /// Do transfers between caches take bus time, so that what memory takes on the way costs no
    /// more?
    pub(crate) const fn bus_carries_transfers(&self) -> bool {
        self.bus_transfers && !self.buses.is_empty()
    }

    /// A request of a socket goes to a line's home, which asks all others: when it is there
    /// beyond its latency, and when all answers have come.
    #[inline]
    pub(crate) fn ask(&mut self, socket: u16, home: u16, line: Line, now: Q8) -> Asked {
        match &mut self.net {
            Some(net) => net.ask(socket, home, line, now),
            None => Asked {
                leaves: now,
                heard: now,
            },
        }
    }

    /// Memory's line is at a socket that asked, at `ready` if nothing is in its way.
    #[inline]
    pub(crate) fn bring(&mut self, home: u16, socket: u16, line: Line, ready: Q8) -> Q8 {
        let mut ready = ready;
        if let Some(net) = &mut self.net {
            ready = net.send(home, socket, line, LINE_ANSWER, ready);
            net.send(socket, home, line, ANSWER, ready);
        }
        self.cross_bus(socket, ready)
    }

    /// A cache's line is at another socket, or at another group of its own, as
    /// [`bring`](Self::bring).
    pub(crate) fn transfer(&mut self, way: Transfer, line: Line, ready: Q8) -> Q8 {
        let Transfer { from, to, home, .. } = way;
        let mut ready = ready;
        if let Some(net) = &mut self.net {
            ready = net.send(from, to, line, LINE_ANSWER, ready);
            net.send(to, home, line, ANSWER, ready);
        }
        if !self.bus_transfers || !way.leaves_group {
            return ready;
        }
        if from != to {
            ready = self.cross_bus(from, ready);
        }
        self.cross_bus(to, ready)
    }

    /// A socket tells the others, by way of the home, that they lose a line. `alone` says that
    /// nobody outside of its last level has it; only probes that are broadcast go out even so.
    pub(crate) fn upgrade(&mut self, way: Upgrade, line: Line, now: Q8) -> Asked {
        let net = self.net.as_mut().filter(|net| net.broadcast || !way.alone);
        match net {
            Some(net) => {
                let asked = net.ask(way.socket, way.home, line, now);
                net.send(way.socket, way.home, line, ANSWER, asked.heard);
                asked
            }
            None => Asked {
                leaves: now,
                heard: now,
            },
        }
    }

    /// Does anything but misses of memory take time here?
    pub(crate) const fn carries_transfers(&self) -> bool {
        self.net.is_some() || self.bus_carries_transfers()
    }

    /// A socket writes a line back, from `now` on.
    #[inline]
    pub(crate) fn write(&mut self, socket: u16, home: u16, line: Line, now: Q8) {
        if let Some(bus) = self.buses.get_mut(usize::from(socket)) {
            bus.pass(now, self.bus_line);
        }
        if let Some(net) = &mut self.net {
            let takes = net.takes[index_of(LINE_REQUEST)];
            let there = net.send(socket, home, line, LINE_REQUEST, now + takes);
            net.send(home, socket, line, ANSWER, there);
        }
    }

    #[inline]
    fn cross_bus(&mut self, socket: u16, ready: Q8) -> Q8 {
        match self.buses.get_mut(usize::from(socket)) {
            Some(bus) => bus
                .pass(ready.saturating_sub(self.bus_line), self.bus_line)
                .max(ready),
            None => ready,
        }
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// When it would leave if nothing were in its way.
    pub(crate) leaves: Q8,
    /// When everybody has answered.
    pub(crate) heard: Q8,
}

/// A core takes a line away from the others before it stores: its socket, and that of the line's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Upgrade {
    pub(crate) socket: u16,
    pub(crate) home: u16,
    pub(crate) alone: bool,
}

/// A line on its way from one cache to another, by sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) from: u16,
    pub(crate) to: u16,
    /// The socket that the line's memory hangs on.
    pub(crate) home: u16,
    /// The two have no last level in common.
    pub(crate) leaves_group: bool,
}

/// Links from socket to socket.
#[derive(Clone, Debug)]
struct Net {
    sockets: usize,
    broadcast: bool,
    /// Of each ordered pair one hop apart: `[from * sockets + to]`.
    lanes: Vec<Lane>,
    /// First sockets of the shortest ways: `[from * sockets + to]`.
    next: Vec<Vec<u16>>,
    /// Sockets from the nearest to the farthest, without the one itself.
    others: Vec<Vec<u16>>,
    /// Time of a hop in one direction.
    hop: Q8,
    /// Time of the way from one to the other: `[from * sockets + to]`.
    away: Vec<Q8>,
    /// Times of the messages, by [`index_of`].
    takes: [Q8; 4],
    /// When a request's probes reach each socket.
    probed: Vec<Q8>,
}

const SIZES: [u64; 4] = [REQUEST, ANSWER, LINE_ANSWER, LINE_REQUEST];

const fn index_of(bytes: u64) -> usize {
    match bytes {
        REQUEST => 0,
        ANSWER => 1,
        LINE_ANSWER => 2,
        _ => 3,
    }
}

impl Net {
    fn new(spec: &LinkSpec, rate: u64, sockets: usize, cycle: Q8) -> Result<Self, SpecError> {
        let hops = |from: usize, to: usize| spec.hops_between(from, to);
        let pairs = || (0..sockets * sockets).map(|i| (i / sockets, i % sockets));
        let mut next = Vec::new();
        for (from, to) in pairs() {
            let first = |via: &usize| hops(from, *via) == 1 && hops(*via, to) + 1 == hops(from, to);
            let ways: Vec<u16> = (0..sockets).filter(first).map(|via| via as u16).collect();
            if from != to && ways.is_empty() {
                let value = format!("{} from {from} to {to}", hops(from, to));
                let allowed = "the number of links, each between two sockets with 1, on the \
                               shortest way from one socket to the other";
                return Err(SpecError::new("links.hops", value, allowed));
            }
            next.push(ways);
        }
        let hop = Q8::from(spec.hop_latency) * cycle / 2;
        let by_distance = |from: usize| {
            let mut all: Vec<u16> = (0..sockets)
                .filter(|to| *to != from)
                .map(|to| to as u16)
                .collect();
            all.sort_by_key(|to| hops(from, usize::from(*to)));
            all
        };
        Ok(Self {
            sockets,
            broadcast: spec.probes == Probes::Broadcast,
            lanes: vec![Lane::new(); sockets * sockets],
            next,
            others: (0..sockets).map(by_distance).collect(),
            hop,
            away: pairs()
                .map(|(from, to)| Q8::from(hops(from, to)) * hop)
                .collect(),
            takes: SIZES.map(|bytes| time_of(bytes, rate)),
            probed: vec![0; sockets],
        })
    }

    /// The socket to which a message for `to` goes first.
    #[inline]
    fn first_hop(&self, from: u16, to: u16, line: Line) -> u16 {
        let ways = &self.next[usize::from(from) * self.sockets + usize::from(to)];
        ways[line as usize % ways.len()]
    }

    /// Passes one link; `ready` and the answer are ends of the passage.
    #[inline]
    fn pass(&mut self, from: u16, to: u16, takes: Q8, ready: Q8) -> Q8 {
        let lane = &mut self.lanes[usize::from(from) * self.sockets + usize::from(to)];
        lane.pass(ready.saturating_sub(takes), takes).max(ready)
    }

    /// A message is at `to` by `ready` if nothing is in its way: when it is.
    #[inline]
    fn send(&mut self, from: u16, to: u16, line: Line, bytes: u64, ready: Q8) -> Q8 {
        let takes = self.takes[index_of(bytes)];
        let (mut at, mut ready) = (from, ready);
        while at != to {
            let next = self.first_hop(at, to, line);
            ready = self.pass(at, next, takes, ready);
            at = next;
        }
        ready
    }

    fn ask(&mut self, socket: u16, home: u16, line: Line, now: Q8) -> Asked {
        let takes = self.takes[index_of(REQUEST)];
        let leaves = if socket == home {
            now
        } else {
            self.send(socket, home, line, REQUEST, now + takes) - takes
        };
        if !self.broadcast {
            return Asked {
                leaves,
                heard: leaves,
            };
        }
        let way = self.away(socket, home);
        Asked {
            leaves,
            heard: self.probe(socket, home, line, leaves + way),
        }
    }

    /// The home asks every other socket, along a tree; all of them answer to the one that asked.
    fn probe(&mut self, socket: u16, home: u16, line: Line, at: Q8) -> Q8 {
        let takes = self.takes[index_of(REQUEST)];
        self.probed[usize::from(home)] = at;
        for k in 0..self.sockets - 1 {
            let to = self.others[usize::from(home)][k];
            // Ways back from the farthest: the last socket before `to`.
            let before = self.first_hop(to, home, line);
            let sent = self.probed[usize::from(before)] + takes;
            let there = self.pass(before, to, takes, sent) - takes + self.hop;
            self.probed[usize::from(to)] = there;
        }
        let mut heard = at;
        for from in (0..self.sockets as u16).filter(|from| *from != socket) {
            let ready = self.probed[usize::from(from)] + self.away(from, socket);
            heard = heard.max(self.send(from, socket, line, ANSWER, ready));
        }
        heard
    }

    fn away(&self, from: u16, to: u16) -> Q8 {
        self.away[usize::from(from) * self.sockets + usize::from(to)]
    }
}

fn rate(key: &str, value: Option<piebald_units::Bytes>) -> Result<Option<u64>, SpecError> {
    match value {
        Some(rate) if rate.0 == 0 => {
            Err(SpecError::new(format!("links.{key}"), rate, "more than 0"))
        }
        _ => Ok(value.map(|rate| rate.0)),
    }
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

#[cfg(test)]
mod tests;
