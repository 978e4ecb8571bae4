//! Recorded events become the operations of a replay.
//!
//! Numbers of calls and constants are those of Linux on x86-64
//! (`asm/unistd_64.h`, `linux/mman.h`, `linux/sched.h`). Deviations:
//!
//! * A call that failed, that is not listed, or of which the recorder could not
//!   tell what this needs (a `read` without a file position) is
//!   [`SysOp::Other`].
//! * The vector calls (`readv` and its like) give their total with `args[1]` as
//!   the buffer: the recorder puts the first buffer's address there in place of
//!   the vector's.
//! * `sendfile`, `splice` and `copy_file_range` from a regular file are reads
//!   with buffer 0: the bytes stay in the kernel.
//! * `mprotect` is `Other`: rights of mappings are those of their creation.

use std::collections::VecDeque;

use piebald_units::{
    FileId, PAGE_SIZE, VirtAddr,
    op::{Access, Backing, Next, SpawnKind, SysOp},
};

use super::{
    analysis::Analysis,
    model::{Event, EventKind, FileIdent},
};

/// Call numbers.
pub(crate) mod nr {
    pub(crate) const READ: u32 = 0;
    pub(crate) const WRITE: u32 = 1;
    pub(crate) const POLL: u32 = 7;
    pub(crate) const MMAP: u32 = 9;
    pub(crate) const MUNMAP: u32 = 11;
    pub(crate) const BRK: u32 = 12;
    pub(crate) const PREAD: u32 = 17;
    pub(crate) const PWRITE: u32 = 18;
    pub(crate) const READV: u32 = 19;
    pub(crate) const WRITEV: u32 = 20;
    pub(crate) const SELECT: u32 = 23;
    pub(crate) const MREMAP: u32 = 25;
    pub(crate) const MADVISE: u32 = 28;
    pub(crate) const SENDFILE: u32 = 40;
    pub(crate) const ACCEPT: u32 = 43;
    pub(crate) const SENDTO: u32 = 44;
    pub(crate) const RECVFROM: u32 = 45;
    pub(crate) const SENDMSG: u32 = 46;
    pub(crate) const RECVMSG: u32 = 47;
    pub(crate) const CLONE: u32 = 56;
    pub(crate) const FORK: u32 = 57;
    pub(crate) const VFORK: u32 = 58;
    pub(crate) const EXECVE: u32 = 59;
    pub(crate) const WAIT4: u32 = 61;
    pub(crate) const CONNECT: u32 = 42;
    pub(crate) const CLOSE: u32 = 3;
    pub(crate) const FUTEX: u32 = 202;
    pub(crate) const SET_TID_ADDRESS: u32 = 218;
    pub(crate) const EPOLL_WAIT: u32 = 232;
    pub(crate) const WAITID: u32 = 247;
    pub(crate) const PSELECT6: u32 = 270;
    pub(crate) const PPOLL: u32 = 271;
    pub(crate) const SPLICE: u32 = 275;
    pub(crate) const EPOLL_PWAIT: u32 = 281;
    pub(crate) const ACCEPT4: u32 = 288;
    pub(crate) const PREADV: u32 = 295;
    pub(crate) const PWRITEV: u32 = 296;
    pub(crate) const EXECVEAT: u32 = 322;
    pub(crate) const COPY_FILE_RANGE: u32 = 326;
    pub(crate) const PREADV2: u32 = 327;
    pub(crate) const PWRITEV2: u32 = 328;
    pub(crate) const CLONE3: u32 = 435;
}

const PROT_WRITE: u64 = 2;
const PROT_EXEC: u64 = 4;
const MAP_SHARED: u64 = 1;
const MAP_ANONYMOUS: u64 = 0x20;
const MADV_DONTNEED: u64 = 4;
const MADV_FREE: u64 = 8;
const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;

/// A system call of an event, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) number: u32,
    pub(crate) args: &'a [u64; 6],
    pub(crate) ret: Option<i64>,
    pub(crate) file: Option<&'a FileIdent>,
    pub(crate) position: Option<u64>,
}

impl<'a> Call<'a> {
    /// The call of an event, if it is one.
    pub(crate) fn of(kind: &'a EventKind) -> Option<Self> {
        let EventKind::Call {
            number,
            args,
            ret,
            file,
            position,
            ..
        } = kind
        else {
            return None;
        };
        Some(Self {
            number: *number,
            args,
            ret: *ret,
            file: file.as_ref(),
            position: *position,
        })
    }

    /// What it returned, if it succeeded.
    pub(crate) fn success(&self) -> Option<u64> {
        self.ret.and_then(|r| u64::try_from(r).ok())
    }

    fn regular_file(&self) -> Option<FileId> {
        self.file.filter(|f| is_regular(f)).map(file_id)
    }
}

/// The number of a file: the same in every recording of the same machine.
pub fn file_id(ident: &FileIdent) -> FileId {
    let mut x = ident.ino
        ^ ident
            .dev
            .rotate_left(32)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    FileId(x ^ x >> 31)
}

/// Is it a regular file?
pub(crate) const fn is_regular(ident: &FileIdent) -> bool {
    ident.mode & S_IFMT == S_IFREG
}

/// Appends what an event means: its own operations, and waits and posts in an
/// order that cannot deadlock. A post that has no wait of its own comes last; one
/// that has comes first, because a call may be released by one that it releases.
pub(crate) fn event(event: &Event, analysis: &Analysis, out: &mut VecDeque<Next>) {
    let posts = analysis.posts.contains(&event.seq);
    let post = Next::Sys(SysOp::Post { event: event.seq });
    let wait = analysis
        .awaits
        .get(&event.seq)
        .map(|&event| Next::Sys(SysOp::Await { event }));
    let mut own = own_ops(event, analysis);
    // A parent that waits for its child (vfork) must have made it.
    let spawns = matches!(own, Some(Next::Sys(SysOp::Spawn { .. })));
    let leaves = matches!(event.kind, EventKind::Exit { .. } | EventKind::Exec { .. });
    if posts && (wait.is_some() || leaves) {
        out.push_back(post);
    }
    if spawns {
        out.extend(own.take());
    }
    out.extend(wait);
    out.extend(own);
    if posts && wait.is_none() && !leaves {
        out.push_back(post);
    }
}

fn own_ops(event: &Event, analysis: &Analysis) -> Option<Next> {
    match &event.kind {
        EventKind::Start { .. } => None,
        EventKind::Initial { .. } => initial(&event.kind).map(Next::Sys),
        EventKind::Mark(mark) => Some(Next::Mark(*mark)),
        EventKind::Exec { .. } => Some(Next::Sys(SysOp::Exec)),
        EventKind::Exit { status } => Some(Next::Exit(*status)),
        EventKind::Call { .. } => {
            let call = Call::of(&event.kind)?;
            if matches!(call.number, nr::EXECVE | nr::EXECVEAT) && call.ret.is_none_or(|r| r == 0) {
                return None;
            }
            if let Some(&(thread, kind)) = analysis.spawns.get(&event.seq) {
                return Some(Next::Sys(SysOp::Spawn { thread, kind }));
            }
            let before = analysis.breaks.get(&event.seq).copied();
            Some(Next::Sys(sys_op(&call, before)))
        }
    }
}

/// The mapping that an [`EventKind::Initial`] is.
pub(crate) fn initial(kind: &EventKind) -> Option<SysOp> {
    let EventKind::Initial {
        addr,
        len,
        write,
        exec,
        file,
        ..
    } = kind
    else {
        return None;
    };
    let backing = match file {
        Some((ident, offset)) if is_regular(ident) => Backing::File {
            file: file_id(ident),
            offset: *offset,
        },
        _ => Backing::Anon,
    };
    Some(SysOp::Map {
        addr: VirtAddr(*addr),
        len: *len,
        backing,
        access: Access {
            write: *write,
            exec: *exec,
        },
        shared: false,
    })
}

/// What a call other than those that make or end threads does. `before` is the
/// process's break before a `brk`.
pub(crate) fn sys_op(call: &Call<'_>, before: Option<u64>) -> SysOp {
    let number = call.number;
    let known = call.success().and_then(|ret| match number {
        nr::MMAP => Some(map(call, ret)),
        nr::MUNMAP => Some(SysOp::Unmap {
            addr: VirtAddr(call.args[0]),
            len: call.args[1],
        }),
        nr::BRK => before.and_then(|before| move_break(before, ret)),
        nr::MREMAP if call.args[1] > 0 => Some(SysOp::Remap {
            from: VirtAddr(call.args[0]),
            old_len: call.args[1],
            to: VirtAddr(ret),
            new_len: call.args[2],
        }),
        nr::MADVISE if matches!(call.args[2], MADV_DONTNEED | MADV_FREE) => Some(SysOp::Discard {
            addr: VirtAddr(call.args[0]),
            len: call.args[1],
        }),
        _ => transfer(call, ret),
    });
    known.unwrap_or(SysOp::Other { number })
}

fn map(call: &Call<'_>, addr: u64) -> SysOp {
    let [_, len, prot, flags, _, offset] = *call.args;
    let backing = match call.regular_file() {
        Some(file) if flags & MAP_ANONYMOUS == 0 => Backing::File { file, offset },
        _ => Backing::Anon,
    };
    SysOp::Map {
        addr: VirtAddr(addr),
        len,
        backing,
        access: Access {
            write: prot & PROT_WRITE != 0,
            exec: prot & PROT_EXEC != 0,
        },
        // MAP_SHARED is 1, MAP_PRIVATE 2, MAP_SHARED_VALIDATE 3.
        shared: flags & MAP_SHARED != 0,
    }
}

/// A break that moves by whole pages maps or unmaps them.
fn move_break(before: u64, after: u64) -> Option<SysOp> {
    let (low, high) = (page_up(before)?, page_up(after)?);
    match low.cmp(&high) {
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Less => Some(SysOp::Map {
            addr: VirtAddr(low),
            len: high - low,
            backing: Backing::Anon,
            access: Access {
                write: true,
                exec: false,
            },
            shared: false,
        }),
        std::cmp::Ordering::Greater => Some(SysOp::Unmap {
            addr: VirtAddr(high),
            len: low - high,
        }),
    }
}

fn page_up(addr: u64) -> Option<u64> {
    addr.checked_next_multiple_of(PAGE_SIZE)
}

/// A copy between a regular file and memory, of `len` bytes.
fn transfer(call: &Call<'_>, len: u64) -> Option<SysOp> {
    let file = call.regular_file().filter(|_| len > 0)?;
    let buffer = VirtAddr(call.args[1]);
    let read = |offset, buffer| SysOp::Read {
        file,
        offset,
        len,
        buffer,
    };
    let write = |offset| SysOp::Write {
        file,
        offset,
        len,
        buffer,
    };
    match call.number {
        nr::READ | nr::READV => Some(read(call.position?, buffer)),
        nr::WRITE | nr::WRITEV => Some(write(call.position?)),
        nr::PREAD | nr::PREADV => Some(read(call.args[3], buffer)),
        nr::PWRITE | nr::PWRITEV => Some(write(call.args[3])),
        // Offset -1 means the file's own position.
        nr::PREADV2 if call.args[3] == u64::MAX => Some(read(call.position?, buffer)),
        nr::PWRITEV2 if call.args[3] == u64::MAX => Some(write(call.position?)),
        nr::PREADV2 => Some(read(call.args[3], buffer)),
        nr::PWRITEV2 => Some(write(call.args[3])),
        nr::SENDFILE | nr::SPLICE | nr::COPY_FILE_RANGE => Some(read(call.position?, VirtAddr(0))),
        _ => None,
    }
}

/// Thread or process, as the child's ids tell.
pub(crate) const fn spawn_kind(parent_pid: u32, child_pid: u32) -> SpawnKind {
    match parent_pid == child_pid {
        true => SpawnKind::Thread,
        false => SpawnKind::Fork,
    }
}
