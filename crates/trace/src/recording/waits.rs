//! Who waited for whom.
//!
//! A call that can block becomes a wait for the event that released it: the
//! latest matching one of another thread that began while the call lasted. A
//! call that nobody is seen to release waits for nobody.
//!
//! | waiting call | released by |
//! |---|---|
//! | `futex` wait that returned 0 | `futex` wake or requeue on the same address; end of the thread whose id lies there |
//! | reading a pipe | writing or closing the same pipe |
//! | writing a pipe | reading the same pipe |
//! | receiving from, or accepting on, a socket | sending on, or connecting, any socket: the two ends have different identities |
//! | `poll`, `select`, `epoll_wait` that found something | writing any pipe, socket or event counter |
//! | `wait4`, `waitid` | the child's end, which may lie before the call |
//! | `vfork` | the child's `exec` or end |
//!
//! Every wait names an event that began before the wait ended, and a thread's
//! events follow one another, so that the waits of a recording cannot form a
//! circle if a call posts before it waits.
//!
//! Futexes are told apart by process and address, shared ones by address alone:
//! that holds for memory shared with a forked child, not for files mapped at
//! different addresses.

use std::collections::HashMap;

use super::{
    analysis::Happened,
    model::{EventKind, FileIdent},
    translate::{Call, nr},
};

const FUTEX_PRIVATE: u64 = 128;
const FUTEX_COMMAND: u64 = 0x7f;
const CLONE_CHILD_CLEARTID: u64 = 0x0020_0000;
const S_IFMT: u32 = 0o170_000;
const S_IFIFO: u32 = 0o010_000;
const S_IFSOCK: u32 = 0o140_000;

/// What a wait and its release have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// Process (`None` = shared), address.
    Futex(Option<u32>, u64),
    /// Data in the pipe: device, inode.
    PipeData(u64, u64),
    /// Room in the pipe.
    PipeRoom(u64, u64),
    /// Data in some socket.
    Socket,
    /// Something to find for `poll`.
    Ready,
    /// End of the process with this id.
    Exit(u32),
    /// The process with this id no longer runs its parent's image.
    Image(u32),
}

/// A release: its place, and its thread.
type Release = (u64, u32);

/// Waiters that a requeue moved: from, when, to.
type Moves = HashMap<Key, Vec<(u64, Key)>>;

/// The waits: by the waiting event's `seq`, that of its release.
pub(crate) fn find(events: &[Happened]) -> HashMap<u64, u64> {
    let mut releases: HashMap<Key, Vec<Release>> = HashMap::new();
    let mut moves = Moves::new();
    let mut clear_tid: HashMap<u32, Key> = clear_addresses(events);
    for h in events {
        let (seq, thread) = (h.event.seq, h.thread);
        let mut post = |key| releases.entry(key).or_default().push((seq, thread));
        match &h.event.kind {
            EventKind::Exit { .. } => {
                post(Key::Exit(h.pid));
                post(Key::Image(h.pid));
                clear_tid.remove(&thread).into_iter().for_each(&mut post);
            }
            EventKind::Exec { .. } => post(Key::Image(h.pid)),
            kind => {
                if let Some(call) = Call::of(kind) {
                    released(&call, h, &mut moves)
                        .into_iter()
                        .flatten()
                        .for_each(post);
                }
            }
        }
    }
    let wait = |h: &Happened| {
        let call = Call::of(&h.event.kind)?;
        let keys = awaited(&call, h)?;
        let release = latest(&keys, h, &releases, &moves)?;
        Some((h.event.seq, release))
    };
    events.iter().filter_map(wait).collect()
}

/// The latest release of another thread that could have ended the wait.
fn latest(
    keys: &Wait,
    h: &Happened,
    releases: &HashMap<Key, Vec<Release>>,
    moves: &Moves,
) -> Option<u64> {
    let (from, to) = (h.event.seq, h.event.seq_end);
    let least = if keys.earlier { 0 } else { from };
    let of = |key: &Key| {
        let list = releases.get(key)?;
        let end = list.partition_point(|r| r.0 < to);
        let mut before = list[..end]
            .iter()
            .rev()
            .take_while(|r| r.0 > least || keys.earlier);
        before.find(|r| r.1 != h.thread).map(|r| r.0)
    };
    let moved = moves.get(&keys.key).into_iter().flatten();
    let moved = moved.filter(|m| m.0 > from && m.0 < to).map(|m| m.1);
    let candidates = std::iter::once(keys.key).chain(moved);
    candidates.filter_map(|key| of(&key)).max()
}

/// What a call waited for.
struct Wait {
    key: Key,
    /// The release may lie before the call.
    earlier: bool,
}

fn awaited(call: &Call<'_>, h: &Happened) -> Option<Wait> {
    let ret = call.success()?;
    let during = |key| {
        Some(Wait {
            key,
            earlier: false,
        })
    };
    let ended = |pid: u64| {
        Some(Wait {
            key: Key::Exit(u32::try_from(pid).ok()?),
            earlier: true,
        })
    };
    match call.number {
        // WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI
        nr::FUTEX if ret == 0 && matches!(call.args[1] & FUTEX_COMMAND, 0 | 6 | 9 | 11) => {
            during(futex(call.args[0], call.args[1], h))
        }
        nr::READ | nr::READV => match channel(call.file?)? {
            Channel::Pipe(dev, ino) => during(Key::PipeData(dev, ino)),
            Channel::Socket => during(Key::Socket),
        },
        nr::WRITE | nr::WRITEV => match channel(call.file?)? {
            Channel::Pipe(dev, ino) => during(Key::PipeRoom(dev, ino)),
            Channel::Socket => None,
        },
        nr::RECVFROM | nr::RECVMSG | nr::ACCEPT | nr::ACCEPT4 => during(Key::Socket),
        nr::POLL | nr::PPOLL | nr::SELECT | nr::PSELECT6 | nr::EPOLL_WAIT | nr::EPOLL_PWAIT
            if ret > 0 =>
        {
            during(Key::Ready)
        }
        nr::WAIT4 if ret > 0 => ended(ret),
        // P_PID
        nr::WAITID if call.args[0] == 1 => ended(call.args[1]),
        nr::VFORK if ret > 0 => during(Key::Image(u32::try_from(ret).ok()?)),
        _ => None,
    }
}

/// What a call releases.
fn released(call: &Call<'_>, h: &Happened, moves: &mut Moves) -> [Option<Key>; 2] {
    let Some(ret) = call.success() else {
        return [None; 2];
    };
    match call.number {
        nr::FUTEX => [futex_release(call, ret, h, moves), None],
        nr::WRITE | nr::WRITEV | nr::SENDFILE | nr::SPLICE => match call.file.map(channel) {
            Some(Some(Channel::Pipe(dev, ino))) => {
                [Some(Key::PipeData(dev, ino)), Some(Key::Ready)]
            }
            Some(Some(Channel::Socket)) => [Some(Key::Socket), Some(Key::Ready)],
            // An event counter has no type in its mode.
            Some(None) if call.file.is_some_and(|f| f.mode & S_IFMT == 0) => {
                [Some(Key::Ready), None]
            }
            _ => [None; 2],
        },
        nr::CLOSE => match call.file.and_then(channel) {
            Some(Channel::Pipe(dev, ino)) => [Some(Key::PipeData(dev, ino)), Some(Key::Ready)],
            _ => [None; 2],
        },
        nr::READ | nr::READV => match call.file.and_then(channel) {
            Some(Channel::Pipe(dev, ino)) => [Some(Key::PipeRoom(dev, ino)), None],
            _ => [None; 2],
        },
        nr::SENDTO | nr::SENDMSG | nr::CONNECT => [Some(Key::Socket), Some(Key::Ready)],
        _ => [None; 2],
    }
}

fn futex_release(call: &Call<'_>, ret: u64, h: &Happened, moves: &mut Moves) -> Option<Key> {
    let key = futex(call.args[0], call.args[1], h);
    match call.args[1] & FUTEX_COMMAND {
        // WAKE, WAKE_OP, WAKE_BITSET: how many were woken
        1 | 5 | 10 if ret > 0 => Some(key),
        // UNLOCK_PI
        7 => Some(key),
        // REQUEUE, CMP_REQUEUE, CMP_REQUEUE_PI: woken or moved
        3 | 4 | 12 if ret > 0 => {
            let to = futex(call.args[4], call.args[1], h);
            moves.entry(key).or_default().push((h.event.seq, to));
            Some(key)
        }
        _ => None,
    }
}

fn futex(addr: u64, command: u64, h: &Happened) -> Key {
    let process = (command & FUTEX_PRIVATE != 0).then_some(h.process);
    Key::Futex(process, addr)
}

enum Channel {
    Pipe(u64, u64),
    Socket,
}

fn channel(file: &FileIdent) -> Option<Channel> {
    match file.mode & S_IFMT {
        S_IFIFO => Some(Channel::Pipe(file.dev, file.ino)),
        S_IFSOCK => Some(Channel::Socket),
        _ => None,
    }
}

/// By recorded thread: the futex that the kernel wakes when the thread ends. The
/// waker is the kernel, so that the waiter's futex is a shared one (glibc's
/// `pthread_join` waits without the private flag).
fn clear_addresses(events: &[Happened]) -> HashMap<u32, Key> {
    let by_tid: HashMap<u32, u32> = events
        .iter()
        .filter(|h| matches!(h.event.kind, EventKind::Start { .. }))
        .map(|h| (h.tid, h.thread))
        .collect();
    let mut addresses = HashMap::new();
    for h in events {
        let Some(call) = Call::of(&h.event.kind) else {
            continue;
        };
        match (call.number, call.success()) {
            (nr::SET_TID_ADDRESS, Some(_)) => {
                addresses.insert(h.thread, Key::Futex(None, call.args[0]));
            }
            (nr::CLONE, Some(child)) if call.args[0] & CLONE_CHILD_CLEARTID != 0 => {
                let child = u32::try_from(child).ok().and_then(|c| by_tid.get(&c));
                if let Some(&child) = child {
                    addresses.insert(child, Key::Futex(None, call.args[3]));
                }
            }
            _ => {}
        }
    }
    addresses
}
