//! What events become in a replay.

use piebald_units::{
    VirtAddr,
    op::{Access, Backing, MemRef, Next, OpSource, SysOp},
};

use super::{event_support::*, support::*};
use crate::recording::{model::*, *};

#[test]
fn memory_calls_become_mappings() {
    let f = file(5, REGULAR);
    let id = file_id(&f);
    let kinds = vec![
        EventKind::Initial {
            addr: 0x40_0000,
            len: 0x2000,
            write: false,
            exec: true,
            file: Some((f.clone(), 0x1000)),
            name: "/bin/x".into(),
        },
        file_call(9, [0, 0x3000, 3, 2, 4, 0x7000], 0x10_0000, f.clone(), 0),
        call(9, [0, 0x1000, 3, 0x21, u64::MAX, 0], 0x20_0000),
        call(9, [0, 0x1000, 3, 0x22, u64::MAX, 0], -12),
        call(12, [0; 6], 0x60_0800),
        call(12, [0x60_3000, 0, 0, 0, 0, 0], 0x60_3000),
        call(12, [0x60_1001, 0, 0, 0, 0, 0], 0x60_1001),
        call(25, [0x10_0000, 0x3000, 0x5000, 1, 0, 0], 0x50_0000),
        call(28, [0x20_0000, 0x1000, 4, 0, 0, 0], 0),
        call(28, [0x20_0000, 0x1000, 1, 0, 0, 0], 0),
        call(11, [0x20_0000, 0x1000, 0, 0, 0, 0], 0),
    ];
    let events = kinds
        .into_iter()
        .enumerate()
        .map(|(i, k)| at(i as u64 + 1, k))
        .collect();
    let recording = events_only(&[([0, 0, 1, 1], events)]);
    let expected = [
        SysOp::Map {
            addr: VirtAddr(0x40_0000),
            len: 0x2000,
            backing: Backing::File {
                file: id,
                offset: 0x1000,
            },
            access: Access {
                write: false,
                exec: true,
            },
            shared: false,
        },
        map(
            0x10_0000,
            0x3000,
            Backing::File {
                file: id,
                offset: 0x7000,
            },
            true,
            false,
        ),
        map(0x20_0000, 0x1000, Backing::Anon, true, true),
        SysOp::Other { number: 9 },
        SysOp::Other { number: 12 },
        map(0x60_1000, 0x2000, Backing::Anon, true, false),
        SysOp::Unmap {
            addr: VirtAddr(0x60_2000),
            len: 0x1000,
        },
        SysOp::Remap {
            from: VirtAddr(0x10_0000),
            old_len: 0x3000,
            to: VirtAddr(0x50_0000),
            new_len: 0x5000,
        },
        SysOp::Discard {
            addr: VirtAddr(0x20_0000),
            len: 0x1000,
        },
        SysOp::Other { number: 28 },
        SysOp::Unmap {
            addr: VirtAddr(0x20_0000),
            len: 0x1000,
        },
    ];
    assert_eq!(sys(&ops(&recording, 0)), expected);
    let files = recording.files().unwrap();
    assert_eq!(
        (files.len(), files[0].file, files[0].path.as_deref()),
        (1, id, Some("/bin/x"))
    );

    // A start in the middle first brings the mappings of what was passed over.
    let options = ReplayOptions {
        start_at: 20,
        ..ReplayOptions::default()
    };
    let mut source = recording.source(0, options).unwrap();
    for op in [0, 1, 2, 5, 6, 7].map(|i| expected[i]) {
        let filled = source.fill(&mut [MemRef::default(); 64]);
        assert_eq!(
            (filled.refs, filled.tail, filled.next),
            (0, 0, Next::Sys(op))
        );
    }
    let filled = source.fill(&mut [MemRef::default(); 64]);
    assert_eq!(filled.next, Next::Sys(expected[8]));
}

#[test]
fn transfers_carry_file_offset_and_bytes() {
    let f = file(6, REGULAR);
    let id = file_id(&f);
    let args = [3, 0x7000, 500, 0x9000, 0, 0];
    let kinds = vec![
        file_call(0, args, 300, f.clone(), 4096),
        file_call(0, args, 0, f.clone(), 4396),
        file_call(17, args, 500, f.clone(), 0),
        file_call(1, args, 20, f.clone(), 10),
        file_call(18, args, 20, f.clone(), 10),
        file_call(20, args, 77, f.clone(), 30),
        file_call(40, args, 64, f.clone(), 128),
        file_call(0, args, 8, file(7, 0o020_600), 0),
        call(39, [0; 6], 12),
    ];
    let events = kinds
        .into_iter()
        .enumerate()
        .map(|(i, k)| at(i as u64, k))
        .collect();
    let recording = events_only(&[([0, 0, 1, 1], events)]);
    let buffer = VirtAddr(0x7000);
    let read = |offset, len, buffer| SysOp::Read {
        file: id,
        offset,
        len,
        buffer,
    };
    let write = |offset, len| SysOp::Write {
        file: id,
        offset,
        len,
        buffer,
    };
    assert_eq!(
        sys(&ops(&recording, 0)),
        [
            read(4096, 300, buffer),
            SysOp::Other { number: 0 },
            read(0x9000, 500, buffer),
            write(10, 20),
            write(0x9000, 20),
            write(30, 77),
            read(128, 64, VirtAddr(0)),
            SysOp::Other { number: 0 },
            SysOp::Other { number: 39 },
        ]
    );
}

#[test]
fn marks_exits_and_tails_come_in_place() {
    let dict = [block(
        0x1000,
        5,
        vec![access(1, AccessKind::Load), access(3, AccessKind::Load)],
    )];
    let raw = [
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(1, 0x200),
        Raw::block(0),
        Raw::access(0, 0x300),
        Raw::access(1, 0x400),
    ];
    let events = vec![
        (0, start(1, 1, 1)),
        (3, at(2, EventKind::Mark(7))),
        (5, at(3, EventKind::Mark(8))),
        (6, at(4, EventKind::Exit { status: 3 })),
    ];
    let part = Part {
        ids: [0, 0, 1, 1],
        raw: &raw,
        events,
    };
    let recording = Recording::from_bytes(recording(&dict, &[part]), "marks").unwrap();
    for room in [1, 64] {
        let mut source = recording.source(0, ReplayOptions::default()).unwrap();
        let mut out = vec![MemRef::default(); room];
        let mut seen = Vec::new();
        let mut gaps = Vec::new();
        loop {
            let filled = source.fill(&mut out);
            gaps.extend(out[..filled.refs].iter().map(|r| r.gap));
            if filled.next != Next::More {
                seen.push((gaps.len(), filled.tail, filled.next));
            }
            if filled.next == Next::End {
                break;
            }
        }
        assert_eq!(gaps, [2, 2, 2, 2], "room {room}");
        let expected = [
            (2, 1, Next::Mark(7)),
            (3, 0, Next::Mark(8)),
            (4, 1, Next::Exit(3)),
            (4, 0, Next::End),
        ];
        assert_eq!(seen, expected, "room {room}");
    }
}
