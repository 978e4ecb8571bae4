//! The core's replacement policies over vectors, with their default thresholds.

#![allow(dead_code, reason = "each test uses a part")]

use piebald_policy::replacement::{
    Clock, ClockConfig, Config as Room, Fifo, Link, Lru, S3Fifo, S3FifoConfig, Sieve, Slots,
    TwoLists, TwoListsConfig, TwoQ, TwoQConfig,
};

pub type Memory = Slots<Vec<Link>, Vec<u8>>;

pub fn fifo(capacity: u32) -> Fifo<Memory> {
    let config = Room::new(capacity);
    Fifo::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn lru(capacity: u32) -> Lru<Memory> {
    let config = Room::new(capacity);
    Lru::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn sieve(capacity: u32) -> Sieve<Memory> {
    let config = Room::new(capacity);
    Sieve::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn clock(capacity: u32) -> Clock<Memory> {
    let config = ClockConfig::new(capacity);
    Clock::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn two_q(capacity: u32) -> TwoQ<Memory> {
    let config = TwoQConfig::new(capacity);
    TwoQ::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn s3_fifo(capacity: u32) -> S3Fifo<Memory> {
    let config = S3FifoConfig::new(capacity);
    S3Fifo::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}

pub fn two_lists(capacity: u32) -> TwoLists<Memory> {
    let config = TwoListsConfig::new(capacity);
    TwoLists::new(Memory::collect(config.slots().unwrap()), config).unwrap()
}
