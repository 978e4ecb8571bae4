//! What went otherwise under QEMU than it does on the kernel itself.
//!
//! QEMU answers a system call that it does not have as a kernel that does not have it: the program
//! takes another way, and its recording is one of that way. Nothing is missing from it, but its
//! user has to know.

use core::sync::atomic::Ordering::Acquire;

use piebald_trace::recording::RefusedCall;

use super::names::name;
use crate::shared::{Shared, Tally};

/// Calls that the C library tries at the start of a process or thread, and does without in the
/// same way: `set_robust_list`, `rseq`, `clone3`. They are in the header, but nobody is warned of
/// them.
const ROUTINE: [u32; 3] = [273, 334, 435];
/// Calls that may be unknown for one of their arguments alone: `modify_ldt`, `futex`.
const BY_ARGUMENT: [u32; 2] = [154, 202];

/// What QEMU refused although the running kernel has it.
pub fn refused(shared: &Shared) -> Vec<RefusedCall> {
    let (counts, _) = shared.tally().refused.counts();
    let known = counts.into_iter().filter(|c| kernel_has(c.0));
    let call = |(number, count)| RefusedCall {
        number,
        name: name(number),
        count,
    };
    known.map(call).collect()
}

/// What the user should know of it, a sentence each.
pub fn remarks(shared: &Shared, refused: &[RefusedCall]) -> Vec<String> {
    let tally = shared.tally();
    let mut told = Vec::new();
    let warned = refused.iter().filter(|c| !ROUTINE.contains(&c.number));
    let warned: Vec<String> = warned.map(ToString::to_string).collect();
    if !warned.is_empty() {
        told.push(format!(
            "QEMU refused system calls that this kernel has: {}; the program may have gone another \
             way than without QEMU",
            warned.join(", ")
        ));
    }
    let others = tally.refused.counts().1;
    if others != 0 {
        told.push(format!(
            "QEMU refused {others} more system calls, of too many kinds to name"
        ));
    }
    let clones = tally.shared_clones.load(Acquire);
    if clones != 0 {
        told.push(format!(
            "QEMU refused {} of a process that shares its parent's memory (CLONE_VM without \
             CLONE_THREAD); the program may have gone another way than without QEMU",
            times(clones, "clone")
        ));
    }
    let ends = tally.vfork_ends.load(Acquire);
    if ends != 0 {
        told.push(format!(
            "{} of vfork ended without starting a program; under QEMU they have a copy of the \
             memory: what they wrote there, such as posix_spawn's error, their parent did not see",
            match ends {
                1 => "1 child".to_owned(),
                n => format!("{n} children"),
            }
        ));
    }
    told.extend(areas(tally));
    told.extend(limits(shared));
    told
}

fn times(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// What QEMU did without reporting it.
fn areas(tally: &Tally) -> Option<String> {
    let executed = tally.areas.executed.load(Acquire);
    let unseen = executed != 0 && tally.areas.reports.load(Acquire) == 0;
    unseen.then(|| {
        format!(
            "this QEMU does not report what {} with x87 numbers of 80 bits or register states \
             accessed; the one that piebald record --build-qemu builds does",
            times(executed, "instruction")
        )
    })
}

fn limits(shared: &Shared) -> Vec<String> {
    let tally = shared.tally();
    let mut told = Vec::new();
    let names = |list: &[(libc::__rlimit_resource_t, &'static str)]| {
        let set = list.iter().filter(|l| tally.is_limited(l.0));
        let names: Vec<&str> = set.map(|l| l.1).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let memory = [
        (libc::RLIMIT_AS, "RLIMIT_AS"),
        (libc::RLIMIT_DATA, "RLIMIT_DATA"),
        (libc::RLIMIT_STACK, "RLIMIT_STACK"),
    ];
    if let Some(names) = names(&memory) {
        told.push(format!(
            "the program set {names}, which QEMU does not enforce"
        ));
    }
    let counted = [
        (libc::RLIMIT_CPU, "RLIMIT_CPU"),
        (libc::RLIMIT_NPROC, "RLIMIT_NPROC"),
    ];
    if let Some(names) = names(&counted) {
        told.push(format!(
            "the program set {names}; QEMU's own processor time and threads count towards it"
        ));
    }
    told
}

/// Does the running kernel have this call? A child process asks it, with arguments that no call
/// accepts; if one acts on them all the same, the child is what it acts on.
fn kernel_has(call: u32) -> bool {
    if BY_ARGUMENT.contains(&call) {
        return true;
    }
    // SAFETY: the child only makes system calls, so it may be forked from several threads.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: system calls with invalid arguments, and one that ends the process.
        unsafe {
            libc::alarm(2);
            let none = -1_i64;
            let ret = libc::syscall(call.into(), none, none, none, none, none, none);
            let unknown = ret == -1 && *libc::__errno_location() == libc::ENOSYS;
            libc::_exit(if unknown { UNKNOWN } else { 0 });
        }
    }
    let mut status = 0;
    // SAFETY: waits for the child of a few lines above.
    let waited = child > 0 && unsafe { libc::waitpid(child, &mut status, 0) } == child;
    // If the kernel cannot be asked, the refusal is told.
    !(waited && libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == UNKNOWN)
}

/// Exit status of a child that found the call unknown.
const UNKNOWN: i32 = 77;

#[cfg(test)]
mod tests {
    use super::kernel_has;

    #[test]
    fn the_kernel_is_asked_which_calls_it_has() {
        for call in [libc::SYS_getpid, libc::SYS_read, libc::SYS_futex] {
            assert!(kernel_has(call as u32), "{call}");
        }
        // A gap in the table of x86-64, and far beyond its end.
        assert!(!kernel_has(400));
        assert!(!kernel_has(99_999));
    }
}
