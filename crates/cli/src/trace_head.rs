//! `piebald trace head` of recordings and memory traces.

use std::fmt::Write as _;

use piebald_units::op::{Access, Backing, MemRef, Next, OpSource, RefKind, SpawnKind, SysOp};

use serde_json::json;

use crate::{failure::Failure, json::Json};

/// Prints lines below a heading, or as JSON.
pub(crate) fn print_lines(heading: &str, lines: &str, json: &Json) -> Result<(), Failure> {
    let list: Vec<&str> = lines.lines().collect();
    let columns: Vec<&str> = heading.split(' ').collect();
    json.show(
        &format!("# {heading}\n{lines}"),
        &json!({ "schema": 1, "columns": columns, "lines": list }),
    )
}

/// Prints the first `n` references, and the calls between them.
pub(crate) fn show(source: &mut dyn OpSource, n: u64, json: &Json) -> Result<(), Failure> {
    let print = |lines: &str| print_lines("ref instrs kind size address site dep", lines, json);
    let mut out = String::new();
    let mut refs = [MemRef::default(); 256];
    let mut shown = 0;
    while shown < n {
        let room = refs
            .len()
            .min(usize::try_from(n - shown).unwrap_or(256))
            .max(1);
        let filled = source.fill(&mut refs[..room]);
        for r in &refs[..filled.refs] {
            let _ = writeln!(
                out,
                "{shown} {} {} {} {:#x} {:#x} {}",
                r.gap,
                kind(r.kind),
                r.size,
                r.addr.0,
                r.site,
                r.dep
            );
            shown += 1;
        }
        match filled.next {
            Next::More => {}
            Next::Sys(op) => {
                let _ = writeln!(out, "# {}", call(&op));
            }
            Next::Mark(mark) => {
                let _ = writeln!(out, "# mark {mark}");
            }
            Next::Exit(status) => {
                let _ = writeln!(out, "# exit {status}");
                break;
            }
            Next::End => break,
            Next::Broken => {
                print(&out)?;
                return Err(Failure::usage(source.failure().unwrap_or("cannot be read")));
            }
        }
    }
    print(&out)
}

const fn kind(kind: RefKind) -> &'static str {
    match kind {
        RefKind::Load => "load",
        RefKind::Store => "store",
        RefKind::Update => "update",
        RefKind::Fetch => "fetch",
        RefKind::LoadNt => "loadnt",
    }
}

/// A call in words: lengths in bytes, everything that is an address or a name in hexadecimal.
fn call(op: &SysOp) -> String {
    match op {
        SysOp::Map {
            addr,
            len,
            backing,
            access,
            shared,
        } => {
            let of = match backing {
                Backing::Anon => "anonymous memory".to_owned(),
                Backing::File { file, offset } => {
                    format!("file {:#x} from byte {offset}", file.0)
                }
            };
            let shared = if *shared { ", shared" } else { "" };
            let rights = rights(*access);
            format!("map {:#x}, {len} bytes of {of}, {rights}{shared}", addr.0)
        }
        SysOp::Unmap { addr, len } => format!("unmap {:#x}, {len} bytes", addr.0),
        SysOp::Remap {
            from,
            old_len,
            to,
            new_len,
        } => format!(
            "move the mapping {:#x}, {old_len} bytes, to {:#x}, {new_len} bytes",
            from.0, to.0
        ),
        SysOp::Discard { addr, len } => format!("discard {:#x}, {len} bytes", addr.0),
        SysOp::Spawn { thread, kind } => match kind {
            SpawnKind::Thread => format!("start thread {thread}"),
            SpawnKind::Fork => format!("fork: thread {thread} is a process of its own"),
        },
        SysOp::Exec => "exec: another program in an empty address space".to_owned(),
        SysOp::Post { event } => format!("event {event} happens"),
        SysOp::Await { event } => format!("wait for event {event}"),
        SysOp::Read {
            file,
            offset,
            len,
            buffer,
        } => {
            let to = match buffer.0 {
                0 => "kept in the kernel".to_owned(),
                buffer => format!("to {buffer:#x}"),
            };
            format!(
                "read file {:#x} from byte {offset}, {len} bytes, {to}",
                file.0
            )
        }
        SysOp::Write {
            file,
            offset,
            len,
            buffer,
        } => format!(
            "write file {:#x} from byte {offset}, {len} bytes, from {:#x}",
            file.0, buffer.0
        ),
        SysOp::Other { number } => format!("call number {number}"),
    }
}

const fn rights(access: Access) -> &'static str {
    match (access.write, access.exec) {
        (false, false) => "read only",
        (true, false) => "writable",
        (false, true) => "executable",
        (true, true) => "writable and executable",
    }
}

#[cfg(test)]
mod tests {
    use piebald_units::{FileId, VirtAddr};

    use super::*;

    #[test]
    fn calls_are_told_in_words_with_addresses_in_hexadecimal() {
        let map = SysOp::Map {
            addr: VirtAddr(0x40_0000_0000),
            len: 8192,
            backing: Backing::File {
                file: FileId(0xeda),
                offset: 4096,
            },
            access: Access {
                write: false,
                exec: true,
            },
            shared: true,
        };
        assert_eq!(
            call(&map),
            "map 0x4000000000, 8192 bytes of file 0xeda from byte 4096, executable, shared"
        );
        let read = SysOp::Read {
            file: FileId(1),
            offset: 0,
            len: 10,
            buffer: VirtAddr(0),
        };
        assert_eq!(
            call(&read),
            "read file 0x1 from byte 0, 10 bytes, kept in the kernel"
        );
        let fork = SysOp::Spawn {
            thread: 3,
            kind: SpawnKind::Fork,
        };
        assert_eq!(call(&fork), "fork: thread 3 is a process of its own");
    }
}
