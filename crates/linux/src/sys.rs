//! System calls that the standard library does not have. All `unsafe` of this crate is here.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    path::Path,
    process::{Command, ExitStatus},
};

/// Zero or an error of a system call.
fn done(result: libc::c_long) -> io::Result<()> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Loads the module in a file (`finit_module`), which the kernel unpacks first if it is compressed.
pub(crate) fn load_module(file: &File, parameters: &CStr, compressed: bool) -> io::Result<()> {
    const MODULE_INIT_COMPRESSED_FILE: libc::c_int = 4;
    let flags = if compressed {
        MODULE_INIT_COMPRESSED_FILE
    } else {
        0
    };
    // SAFETY: the descriptor is open and the text ends with 0; both live through the call.
    done(unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            flags,
        )
    })
}

/// Unloads a module by name, without waiting for users of it (`delete_module`).
pub(crate) fn unload_module(name: &CStr) -> io::Result<()> {
    // SAFETY: the text ends with 0 and lives through the call.
    done(unsafe { libc::syscall(libc::SYS_delete_module, name.as_ptr(), libc::O_NONBLOCK) })
}

/// The kernel's release, as `uname -r` prints it; empty if it cannot be told.
pub fn release() -> String {
    // SAFETY: all zero is a valid utsname: arrays of bytes.
    let mut name: libc::utsname = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is writable and lives through the call.
    if unsafe { libc::uname(&mut name) } != 0 {
        return String::new();
    }
    let bytes: Vec<u8> = name.release.iter().map(|c| *c as u8).collect();
    let text = CStr::from_bytes_until_nul(&bytes).map(CStr::to_owned);
    text.as_deref().map_or(String::new(), |text: &CStr| {
        text.to_string_lossy().into_owned()
    })
}

/// Text for a system call; what holds a zero byte is an error.
pub(crate) fn text(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Asks for pages of the usual size alone; a kernel without huge pages refuses, which is as good.
pub(crate) fn refuse_huge_pages(words: &mut [u64]) {
    let first = words.as_mut_ptr().cast::<libc::c_void>();
    let page = piebald_units::PAGE_SIZE as usize;
    let skip = first.align_offset(page);
    let len = std::mem::size_of_val(words).saturating_sub(skip) / page * page;
    // SAFETY: the pages lie within the slice, which is borrowed; the advice changes no content.
    unsafe {
        libc::madvise(first.wrapping_byte_add(skip), len, libc::MADV_NOHUGEPAGE);
    }
}

/// What a hypervisor says of itself to the processor (leaf 0x40000000), such as `KVMKVMKVM`.
pub fn hypervisor_name() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::__cpuid;
        /// Bit 31 of ecx of leaf 1 says that there is one.
        const PRESENT: u32 = 1 << 31;
        if __cpuid(1).ecx & PRESENT == 0 {
            return None;
        }
        let leaf = __cpuid(0x4000_0000);
        let bytes = [leaf.ebx, leaf.ecx, leaf.edx]
            .map(u32::to_le_bytes)
            .concat();
        let name = String::from_utf8_lossy(&bytes);
        let name = name.trim_matches(['\0', ' ']);
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        plain.then(|| name.to_owned())
    }
    #[cfg(not(target_arch = "x86_64"))]
    None
}

/// Time that this thread has run, in nanoseconds: what others run meanwhile does not count.
pub(crate) fn thread_time_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is writable and lives through the call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    (time.tv_sec as u64) * 1_000_000_000 + time.tv_nsec as u64
}

/// `struct perf_event_attr` of `linux/perf_event.h`, in its first published form of 64 bytes.
#[repr(C)]
struct EventAttributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

/// Bit 1 of the flags: children are counted too.
const INHERIT: u64 = 1 << 1;
/// Each reading has the times for which the count was wanted and taken.
const WITH_TIMES: u64 = 1 | 2;

/// Opens a counter of this process and its children to come (`perf_event_open`).
pub(crate) fn open_counter(kind: u32, number: u64) -> io::Result<File> {
    let attributes = EventAttributes {
        kind,
        size: size_of::<EventAttributes>() as u32,
        config: number,
        sample_period: 0,
        sample_type: 0,
        read_format: WITH_TIMES,
        flags: INHERIT,
        wakeup_events: 0,
        breakpoint_type: 0,
        breakpoint_address: 0,
    };
    /// Closed on exec.
    const CLOSE: libc::c_ulong = 8;
    // SAFETY: the attributes have the size that they name and live through the call; this
    // process, any processor, no group.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            0,
            -1,
            -1,
            CLOSE,
        )
    };
    done(fd)?;
    // SAFETY: the descriptor is new and nobody else's.
    Ok(unsafe { File::from_raw_fd(fd as i32) })
}

/// What a program and the children that it waited for used.
pub(crate) struct Use {
    pub(crate) user_s: f64,
    pub(crate) system_s: f64,
    pub(crate) faults_from_disk: i64,
    /// Resident memory of the largest process at its largest.
    pub(crate) largest_bytes: u64,
}

/// Runs a program to its end and tells what it used (`wait4`).
///
/// A child that shares this process's memory until it begins its program (`vfork`, `posix_spawn`) has the most that was ever
/// resident here told as its own. One that is a copy (`fork`) has what is resident now.
pub(crate) fn run_with_use(command: &mut Command) -> io::Result<(ExitStatus, Use)> {
    // SAFETY: nothing is done between fork and exec. That something could be makes the library fork.
    unsafe { command.pre_exec(|| Ok(())) };
    let child = command.spawn()?;
    // SAFETY: all zero is a valid rusage: numbers.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    let mut status = 0;
    loop {
        // SAFETY: both places are writable and live through the call. The child is not waited
        // for by anybody else: it is known here alone.
        let waited = unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut used) };
        match done(waited.into()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    }
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let used = Use {
        user_s: seconds(used.ru_utime),
        system_s: seconds(used.ru_stime),
        faults_from_disk: used.ru_majflt,
        largest_bytes: used.ru_maxrss.unsigned_abs().saturating_mul(1024),
    };
    Ok((ExitStatus::from_raw(status), used))
}

/// Runs `work` in a process that nobody waits for: not this one's child, in a session of its own, without
/// its files. It begins when what is answered is dropped, or this process ends. `work` is told the
/// process's number. To be called while this process has one thread.
pub(crate) fn in_background(work: impl FnOnce(u32)) -> io::Result<OwnedFd> {
    let mut ends = [0; 2];
    // SAFETY: there is room for both ends.
    done(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }.into())?;
    // SAFETY: both descriptors are new and nobody else's.
    let [read, write] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // SAFETY: the process has one thread, so the child's memory is in order; it ends by _exit.
    let child = unsafe { libc::fork() };
    done(child.into())?;
    if child > 0 {
        let mut status = 0;
        // SAFETY: the place is writable and lives through the call.
        done(unsafe { libc::waitpid(child, &mut status, 0) }.into())?;
        return Ok(write);
    }
    // SAFETY: plain calls without memory of this program, but for a byte that is there; whoever is not
    // the last child ends at once. What is closed is not used any more.
    unsafe {
        libc::setsid();
        if libc::fork() != 0 {
            libc::_exit(0);
        }
        let gate = libc::fcntl(read.as_raw_fd(), libc::F_DUPFD, 3) as libc::c_uint;
        libc::syscall(libc::SYS_close_range, 0, gate - 1, 0);
        libc::syscall(libc::SYS_close_range, gate + 1, libc::c_uint::MAX, 0);
        for _ in 0..3 {
            libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        }
        let mut byte = 0u8;
        libc::read(gate as i32, (&raw mut byte).cast(), 1);
    }
    work(std::process::id());
    // SAFETY: it does not return, so nothing is closed twice.
    unsafe { libc::_exit(0) }
}

/// Waits until a group's file `cgroup.events` says that nobody is in it, or is not there.
pub(crate) fn wait_until_empty(events: &Path) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};

    let mut file = File::open(events)?;
    loop {
        let mut text = String::new();
        file.rewind()?;
        file.read_to_string(&mut text)?;
        if text.lines().any(|line| line == "populated 0") {
            return Ok(());
        }
        let mut event = libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLPRI,
            revents: 0,
        };
        // SAFETY: the record is writable and lives through the call.
        done(unsafe { libc::poll(&mut event, 1, -1) }.into())?;
    }
}

/// Mounts configfs where it is looked for.
///
/// # Errors
/// The kernel's.
pub fn mount_configfs() -> io::Result<()> {
    let (name, at) = (c"configfs", c"/sys/kernel/config");
    // SAFETY: the texts end with 0 and live through the call; there is no data.
    done(i64::from(unsafe {
        libc::mount(
            name.as_ptr(),
            at.as_ptr(),
            name.as_ptr(),
            0,
            std::ptr::null(),
        )
    }))
}

/// Writes all files to their disks.
pub(crate) fn sync() {
    // SAFETY: it takes nothing and always works.
    unsafe { libc::sync() };
}

/// Does `work` on each processor that this thread may run on, one after the other. Where the kernel
/// refuses to move the thread, where it is.
pub(crate) fn on_each_processor(mut work: impl FnMut()) {
    const BYTES: usize = size_of::<libc::cpu_set_t>();
    // SAFETY: all zero is a valid, empty set of processors.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is writable, has the size that is named, and lives through the call.
    if unsafe { libc::sched_getaffinity(0, BYTES, &mut allowed) } != 0 {
        return work();
    }
    for processor in 0..BYTES * 8 {
        // SAFETY: the number is below the bits of the set.
        if !unsafe { libc::CPU_ISSET(processor, &allowed) } {
            continue;
        }
        // SAFETY: as above.
        let mut one: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the number is below the bits of the set, which lives through both calls.
        unsafe {
            libc::CPU_SET(processor, &mut one);
            libc::sched_setaffinity(0, BYTES, &one);
        }
        work();
    }
    // SAFETY: the set is that of the beginning, and lives through the call.
    unsafe { libc::sched_setaffinity(0, BYTES, &allowed) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_told_its_own_memory_and_not_what_was_once_used_here() {
        const BYTES: usize = 256 << 20;
        let mut memory = vec![0u8; BYTES];
        memory.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
        std::hint::black_box(&memory);
        drop(memory);
        let (status, used) = run_with_use(&mut Command::new("true")).expect("it runs");
        assert!(status.success());
        assert!(
            (1..BYTES as u64 / 2).contains(&used.largest_bytes),
            "{}",
            used.largest_bytes
        );
    }

    #[test]
    fn each_processor_has_its_turn_and_the_thread_is_free_again() {
        let free = || std::thread::available_parallelism().map_or(0, usize::from);
        let turns = std::cell::Cell::new(0);
        let before = free();
        on_each_processor(|| {
            assert_eq!(free(), 1);
            turns.set(turns.get() + 1);
        });
        assert_eq!((turns.get(), free()), (before, before));
    }
}
