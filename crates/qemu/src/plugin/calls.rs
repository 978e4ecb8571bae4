//! System calls: what is noted of each.
//!
//! QEMU performs the call itself and reports it before and after. Memory that the
//! kernel touches for a call is not reported as accesses, so the event carries
//! what a replay needs: arguments, result, path, file and position.

use core::ffi::c_uint;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use piebald_trace::recording::model::{Event, EventKind, FileIdent};

use super::{guest, lane, refusals};
use crate::shared::Shared;

/// A vector call's second argument points to an array of buffers, which is gone
/// when the recording is read: the first buffer's address takes its place.
fn with_first_buffer(number: u32, mut args: [u64; 6]) -> [u64; 6] {
    const VECTOR_CALLS: [libc::c_long; 6] = [
        libc::SYS_readv,
        libc::SYS_writev,
        libc::SYS_preadv,
        libc::SYS_pwritev,
        libc::SYS_preadv2,
        libc::SYS_pwritev2,
    ];
    if VECTOR_CALLS.contains(&libc::c_long::from(number)) && args[2] > 0 {
        let mut first = [0; 8];
        if guest::read(args[1], &mut first) == first.len() {
            args[1] = u64::from_le_bytes(first);
        }
    }
    args
}

/// A call that has begun.
pub struct Pending {
    seq: u64,
    number: u32,
    args: [u64; 6],
    path: Option<String>,
    file: Option<FileIdent>,
    position: Option<u64>,
}

impl Pending {
    fn begin(shared: &Shared, number: u32, args: [u64; 6]) -> Self {
        let shape = shape(number);
        let path = shape.path.and_then(|i| guest::string(args[i]));
        let fd = shape.fd.map(|i| args[i] as i32);
        let fd = fd.filter(|_| number != MMAP || args[3] & libc::MAP_ANONYMOUS as u64 == 0);
        Self {
            seq: shared.next_seq(),
            number,
            args: with_first_buffer(number, args),
            path: path.map(|p| String::from_utf8_lossy(&p).into_owned()),
            file: fd.and_then(identify),
            position: fd.filter(|_| shape.position).and_then(position),
        }
    }

    fn end(mut self, shared: &Shared, ret: i64) -> Event {
        let shape = shape(self.number);
        if shape.returns_fd && ret >= 0 {
            self.file = identify(ret as i32);
        }
        if matches!(self.number, WRITE | WRITEV) && ret > 0 && self.position.is_some() {
            // With O_APPEND the position before the call is not where it wrote.
            let after = position(self.args[0] as i32);
            self.position = after.and_then(|p| p.checked_sub(ret as u64));
        }
        let seq_end = shared.next_seq();
        self.event(Some(ret), seq_end)
    }

    /// The call's number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The event of a call that does not return.
    pub fn unfinished(self) -> Event {
        let seq = self.seq;
        self.event(None, seq)
    }

    fn event(self, ret: Option<i64>, seq_end: u64) -> Event {
        Event {
            seq: self.seq,
            seq_end,
            kind: EventKind::Call {
                number: self.number,
                args: self.args,
                ret,
                path: self.path,
                file: self.file,
                position: self.position,
            },
        }
    }

    fn copy(&self) -> Self {
        Self {
            path: self.path.clone(),
            file: self.file.clone(),
            ..*self
        }
    }
}

static STATUS: AtomicI32 = AtomicI32::new(0);

/// Status that the process gave when it ended.
pub fn exit_status() -> i32 {
    STATUS.load(Relaxed)
}

/// A call begins.
pub fn begin(shared: &'static Shared, vcpu: c_uint, number: i64, args: [u64; 6]) {
    let number = number as u32;
    if number == EXIT_GROUP {
        STATUS.store(args[0] as u8 as i32, Relaxed);
    }
    if !shared.running() {
        return;
    }
    super::enter_thread(vcpu);
    refusals::begin(shared, number, &args);
    let pending = Pending::begin(shared, number, args);
    match number {
        EXIT | EXIT_GROUP => {
            with_lane(vcpu, |lane| lane.span(shared, pending.unfinished()));
            lane::end_thread(vcpu, args[0] as u8 as i32);
            return;
        }
        EXECVE | EXECVEAT => super::follow::exec(shared, vcpu, pending.copy(), &args),
        _ => {}
    }
    with_lane(vcpu, |lane| {
        lane.note_call(Some(&pending.copy().unfinished()));
        lane.call = Some(pending);
    });
}

/// A call returns.
pub fn end(shared: &'static Shared, vcpu: c_uint, number: i64, ret: i64) {
    if ret < 0 && FORKS.contains(&number) && super::process::fork_failed() {
        shared.forking.fetch_sub(1, Relaxed);
    }
    with_lane(vcpu, |lane| {
        let pending = lane.call.take();
        lane.note_call(None);
        let Some(pending) = pending.filter(|p| p.number == number as u32) else {
            return;
        };
        refusals::end(shared, (number as u32, &pending.args), ret, guest::read);
        match -ret {
            // It was interrupted, and begins again after the signal handler.
            ERESTARTSYS => {}
            ESIGRETURN => lane.span(shared, pending.unfinished()),
            _ => {
                if pending.number == WAIT4 && ret > 0 {
                    note_end(shared, ret as u32, pending.args[1]);
                }
                let event = pending.end(shared, ret);
                lane.span(shared, event);
            }
        }
    });
}

fn with_lane(vcpu: c_uint, act: impl FnOnce(&mut lane::Lane)) {
    if let Some(lane) = lane::lane(vcpu).as_mut().and_then(|l| l.as_mut()) {
        act(lane);
    }
}

/// A parent learnt how its child ended.
fn note_end(shared: &Shared, pid: u32, status_at: u64) {
    let mut status = [0; 4];
    if status_at != 0 && guest::read(status_at, &mut status) == 4 {
        shared.note_end(pid, u32::from_le_bytes(status));
    }
}

fn identify(fd: i32) -> Option<FileIdent> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the structure is large enough.
    if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled by the successful call.
    let stat = unsafe { stat.assume_init() };
    Some(FileIdent {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: stat.st_size as u64,
        mode: stat.st_mode,
    })
}

fn position(fd: i32) -> Option<u64> {
    // SAFETY: plain system call; it changes nothing.
    let at = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    u64::try_from(at).ok()
}

/// QEMU's own results: the call is to be repeated, and the one of `sigreturn`
/// (`linux-user`: `QEMU_ERESTARTSYS`, `QEMU_ESIGRETURN`).
const ERESTARTSYS: i64 = 512;
const ESIGRETURN: i64 = 513;

const WRITE: u32 = 1;
const MMAP: u32 = 9;
const WRITEV: u32 = 20;
/// `clone`, `fork`, `vfork`, `clone3`.
const FORKS: [i64; 4] = [56, 57, 58, 435];
const EXECVE: u32 = 59;
const EXIT: u32 = 60;
const WAIT4: u32 = 61;
const EXIT_GROUP: u32 = 231;
/// `execveat`.
pub const EXECVEAT: u32 = 322;

/// Which arguments of a call say what.
#[derive(Clone, Copy, Default)]
struct Shape {
    fd: Option<usize>,
    path: Option<usize>,
    returns_fd: bool,
    position: bool,
}

/// Calls by x86-64 number (`arch/x86/entry/syscalls/syscall_64.tbl`). Of two
/// paths (rename, link) it is the first.
fn shape(number: u32) -> Shape {
    let fd = |i| Shape {
        fd: Some(i),
        ..Shape::default()
    };
    let path = |i| Shape {
        path: Some(i),
        ..Shape::default()
    };
    let opens = |i| Shape {
        returns_fd: true,
        ..path(i)
    };
    match number {
        // read, write, lseek, readv, writev, getdents, getdents64
        0 | 1 | 8 | 19 | 20 | 78 | 217 => Shape {
            position: true,
            ..fd(0)
        },
        // sendfile reads its second descriptor
        40 => Shape {
            position: true,
            ..fd(1)
        },
        9 => fd(4),
        // close, fstat, ioctl, pread64, pwrite64, sendto .. recvmsg, fcntl, flock,
        // fsync, fdatasync, ftruncate, fchdir, fchmod, fchown, fstatfs, readahead,
        // fadvise64, splice, tee, sync_file_range, vmsplice, fallocate, preadv,
        // pwritev, syncfs, copy_file_range, preadv2, pwritev2
        3
        | 5
        | 16
        | 17
        | 18
        | 44..=47
        | 72..=75
        | 77
        | 81
        | 91
        | 93
        | 138
        | 187
        | 221
        | 275..=278
        | 285
        | 295
        | 296
        | 306
        | 326..=328 => fd(0),
        // dup, dup2, dup3, accept, accept4
        32 | 33 | 292 | 43 | 288 => Shape {
            returns_fd: true,
            ..fd(0)
        },
        // open, creat, memfd_create
        2 | 85 | 319 => opens(0),
        // openat, openat2
        257 | 437 => opens(1),
        // socket, epoll_create, eventfd, epoll_create1, eventfd2, pidfd_open
        41 | 213 | 284 | 291 | 290 | 434 => Shape {
            returns_fd: true,
            ..Shape::default()
        },
        // stat, lstat, access, execve, truncate, chdir, rename, mkdir, rmdir, link,
        // unlink, symlink, readlink, chmod, chown, lchown, utime, statfs, chroot,
        // utimes
        4 | 6 | 21 | 59 | 76 | 80 | 82..=84 | 86..=90 | 92 | 94 | 132 | 137 | 161 | 235 => path(0),
        // mkdirat, newfstatat, unlinkat, renameat, linkat, readlinkat, fchmodat,
        // faccessat, utimensat, renameat2, execveat, statx, faccessat2
        258 | 260 | 262..=265 | 267..=269 | 280 | 316 | 322 | 332 | 439 => path(1),
        _ => Shape::default(),
    }
}
