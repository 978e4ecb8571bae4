//! Drives every replacement policy through all calls of its contract.

use core::fmt::Write;

use piebald_policy::{
    contract::replacement::{Base, Fetch, Gone, Insert, PageKind, PageRef, State, Touch, Via},
    replacement::{
        Clock, ClockConfig, Config, Fifo, Link, Lru, NameLeaves, NewError, S3Fifo, S3FifoConfig,
        S3FifoRule, Sieve, Slots, TwoLists, TwoListsConfig, TwoQ, TwoQConfig,
    },
};
use piebald_units::Picos;

use super::Sink;

type Memory<'a> = Slots<&'a mut [Link], &'a mut [u8]>;

/// What a kernel lends: a link and a mark per number.
static mut LINKS: [Link; 64] = [Link::NONE; 64];
static mut MARKS: [u8; 64] = [0; 64];

#[inline(never)]
pub fn policies(word: u64) -> u64 {
    let capacity = word as u32 & 63;
    let plain = Config::new(capacity);
    let mut sum = use_one(word, |memory| Fifo::new(memory, plain));
    sum ^= use_one(word, |memory| Lru::new(memory, plain));
    sum ^= use_one(word, |memory| Sieve::new(memory, plain));
    sum ^= use_one(word, |memory| {
        let uses = (word >> 8) as u8;
        let reach = (word >> 16) as u32;
        Clock::new(
            memory,
            ClockConfig {
                uses,
                reach,
                ..ClockConfig::new(capacity)
            },
        )
    });
    sum ^= use_one(word, |memory| {
        let kin_percent = (word >> 8) as u32;
        let names = match word >> 40 & 1 {
            0 => NameLeaves::AtInsert,
            _ => NameLeaves::AtMiss,
        };
        TwoQ::new(
            memory,
            TwoQConfig {
                kin_percent,
                names,
                ..TwoQConfig::new(capacity)
            },
        )
    });
    sum ^= use_one(word, |memory| {
        let small_percent = (word >> 8) as u32;
        let rule = match word >> 40 & 3 {
            0 => S3FifoRule::LibCacheSim,
            1 => S3FifoRule::Artifact,
            _ => S3FifoRule::Paper,
        };
        S3Fifo::new(
            memory,
            S3FifoConfig {
                small_percent,
                rule,
                ..S3FifoConfig::new(capacity)
            },
        )
    });
    sum ^ use_one(word, |memory| {
        let (batch, swappiness) = ((word >> 8) as u32, (word >> 40) as u32);
        let config = TwoListsConfig {
            batch,
            swappiness,
            ..TwoListsConfig::new(capacity)
        };
        TwoLists::new(memory, config)
    })
}

#[inline(never)]
fn use_one<P: Base>(word: u64, make: impl FnOnce(Memory<'static>) -> Result<P, NewError>) -> u64 {
    // SAFETY: one thread, and no policy outlives this function.
    let memory = unsafe {
        Slots {
            links: &mut *&raw mut LINKS as &mut [_],
            marks: &mut *&raw mut MARKS as &mut [_],
        }
    };
    let mut sink = Sink(0);
    match make(memory) {
        Ok(mut policy) => drive(&mut policy, word, &mut sink),
        Err(error) => {
            let _ = write!(sink, "{error}");
            sink.0
        }
    }
}

#[inline(never)]
fn drive<P: Base>(policy: &mut P, word: u64, sink: &mut Sink) -> u64 {
    let page = |shift: u32| PageRef((word >> shift) as u32);
    let insert = Insert {
        kind: if word & 1 == 0 {
            PageKind::Anon
        } else {
            PageKind::File
        },
        dirty: word & 2 == 0,
        fetch: if word & 4 == 0 {
            Fetch::Demand
        } else {
            Fetch::Readahead
        },
        ..Insert::default()
    };
    let touch = Touch {
        via: if word & 8 == 0 {
            Via::Call
        } else {
            Via::Mapping
        },
        ..Touch::default()
    };
    let now = Picos(word);
    policy.miss(Some(page(3)), &insert, now);
    for number in 0..word as u32 & 127 {
        policy.insert(PageRef(number), &insert, now);
        policy.hit(PageRef(number >> 1), touch, now);
    }
    policy.detach(page(5));
    policy.hit(page(5), touch, now);
    policy.place(page(6), None);
    policy.set_dirty(page(7), word & 16 == 0);
    policy.reattach(page(9));
    policy.forget(page(11), Gone::Evicted);
    policy.forget(page(13), Gone::Deleted);
    let mut out = [PageRef(0); 8];
    let mut sum = (policy.propose(&mut out) ^ policy.coldest(&mut out)) as u64;
    while let Some(gone) = policy.evict() {
        sum = sum.rotate_left(1) ^ u64::from(gone.0) ^ u64::from(policy.class(gone));
        while policy.dropped().is_some() {}
    }
    if let Err(broken) = policy.validate() {
        let _ = write!(sink, "{broken}");
    }
    let wanted = policy.wanted(page(17)) && policy.state(page(19)) == State::Ghost;
    let effort = policy.effort();
    sum ^ u64::from(wanted)
        ^ effort.scanned
        ^ effort.moved
        ^ u64::from(policy.resident() ^ policy.capacity() ^ policy.slots())
        ^ sink.0
}
