//! What a program asks of the kernel and QEMU does not do as the kernel does.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::cell::Cell;

use crate::shared::Shared;

const CLONE: u32 = 56;
const VFORK: u32 = 58;
const UNSHARE: u32 = 272;
const SETNS: u32 = 308;
const EXIT: u32 = 60;
const EXIT_GROUP: u32 = 231;
const SETRLIMIT: u32 = 160;
const PRLIMIT: u32 = 302;

thread_local! {
    /// The fork that this thread is in lends its memory to the child on a real kernel.
    static LENDS: Cell<bool> = const { Cell::new(false) };
}

/// This process has a copy of the memory that it would share with its parent on a real kernel.
static HAS_COPY: AtomicBool = AtomicBool::new(false);

/// A call begins.
pub fn begin(shared: &Shared, number: u32, args: &[u64; 6]) {
    let vfork = libc::CLONE_VFORK as u64;
    match number {
        CLONE | VFORK => LENDS.set(number == VFORK || args[0] & vfork != 0),
        // It has started no program, which would have been a process with memory of its own.
        EXIT | EXIT_GROUP if HAS_COPY.load(Relaxed) => {
            shared.tally().vfork_ends.fetch_add(1, Relaxed);
        }
        _ => {}
    }
}

/// A forked child begins, on the thread that forked.
pub fn begin_child() {
    HAS_COPY.store(LENDS.get(), Relaxed);
}

/// A call returns. `read` copies from the program's memory, and says how many bytes.
pub fn end(
    shared: &Shared,
    (number, args): (u32, &[u64; 6]),
    ret: i64,
    read: impl Fn(u64, &mut [u8]) -> usize,
) {
    let error = i32::try_from(-ret).unwrap_or(0);
    match (number, error) {
        (_, libc::ENOSYS) => shared.tally().refused.add(number),
        (CLONE, libc::EINVAL) if shares_memory(args[0]) => {
            shared.tally().shared_clones.fetch_add(1, Relaxed);
        }
        // QEMU has neither namespaces nor processes that share less than all; and its own threads forbid some.
        (CLONE | UNSHARE | SETNS, libc::EINVAL) => shared.tally().refused.add(number),
        (SETRLIMIT, 0) => limit(shared, args[0], args[1], read),
        (PRLIMIT, 0) => limit(shared, args[1], args[2], read),
        _ => {}
    }
}

/// Does `clone` with these flags begin a process, rather than a thread, in the same memory? QEMU
/// has threads and forks, and takes `CLONE_VFORK` for the latter.
fn shares_memory(flags: u64) -> bool {
    let has = |flag: i32| flags & flag as u64 != 0;
    has(libc::CLONE_VM) && !has(libc::CLONE_THREAD) && !has(libc::CLONE_VFORK)
}

/// The program has set a limit, which the structure at `at` holds: the soft one first.
fn limit(shared: &Shared, resource: u64, at: u64, read: impl Fn(u64, &mut [u8]) -> usize) {
    let mut soft = [0; 8];
    let finite = |soft: [u8; 8]| u64::from_le_bytes(soft) != libc::RLIM_INFINITY;
    if at != 0 && read(at, &mut soft) == soft.len() && finite(soft) {
        shared.tally().limited(resource);
    }
}
