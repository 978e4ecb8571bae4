//! What goes in comes out.

use super::support::*;
use crate::recording::{model::*, *};

#[test]
fn random_streams_come_back_exactly() {
    for seed in 0..40 {
        let mut r = Random(seed);
        let dict = random_dictionary(&mut r, 1 + seed * 3);
        let raw = random_raw(&mut r, &dict, 2000);
        let recording = single(&dict, &raw, 700);
        let mut back = Vec::new();
        for chunk in 0..recording.index().chunks.len() {
            back.extend(recording.raw_chunk(chunk).unwrap().0);
        }
        assert!(back == raw, "seed {seed}");
        assert_eq!(recording.block_defs(0).unwrap(), dict);
    }
}

#[test]
fn what_was_refused_is_kept_and_readers_need_not_know_it() {
    let plain = FileHeader::new(vec!["x".into()]);
    let mut told = plain.clone();
    told.refused = vec![RefusedCall {
        number: 425,
        name: "io_uring_setup".into(),
        count: 3,
    }];
    told.remarks = vec!["the program went another way".into()];
    let back = |header: &FileHeader| {
        let bytes = MemoryWriter::new(header.clone()).finish().unwrap();
        Recording::from_bytes(bytes, "test")
            .unwrap()
            .header()
            .clone()
    };
    assert_eq!(back(&told), told);
    assert_eq!(back(&plain), plain);
    // A header without them is as it was before there were any.
    let text = serde_json::to_string(&plain).unwrap();
    assert!(
        !text.contains("refused") && !text.contains("remarks"),
        "{text}"
    );
    assert_eq!(told.refused[0].to_string(), "io_uring_setup (3 times)");
}

#[test]
fn text_that_comes_late_has_the_room_that_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("late.pbr");
    let late = vec!["x".repeat(6000)];
    let finish = |mut writer: RecordingWriter| {
        writer.header_mut().remarks.clone_from(&late);
        writer.finish()
    };
    let header = FileHeader::new(vec!["x".into()]);
    let without = finish(RecordingWriter::create(&path, header.clone()).unwrap());
    assert!(matches!(without, Err(WriteError::HeaderTooLong { .. })));
    finish(RecordingWriter::create_with_room(&path, header, 7000).unwrap()).unwrap();
    assert_eq!(Recording::open(&path).unwrap().header().remarks, late);
}

#[test]
fn programs_are_named_with_their_forked_children() {
    let mut r = Random(5);
    let dict = random_dictionary(&mut r, 4);
    let start = |seq, argv: &[&str]| {
        let argv = argv.iter().map(|&a| a.to_owned()).collect();
        let (pid, tid) = (1, 1);
        (0, at(seq, EventKind::Start { pid, tid, argv }))
    };
    let mut writer = MemoryWriter::new(FileHeader::new(vec!["x".into()]));
    let raw = random_raw(&mut r, &dict, 300);
    let out = writer.records();
    // Process 1 is a fork of 0, and 2 one of 1; process 3 runs another program.
    let base = |process| Some(Base { process, blocks: 4 });
    encode_dictionary(0, None, 0, &dict, out).unwrap();
    encode_dictionary(1, base(0), 4, &[], out).unwrap();
    encode_dictionary(2, base(1), 4, &[], out).unwrap();
    encode_dictionary(3, None, 0, &dict, out).unwrap();
    for (process, argv) in [
        (0, &["/bin/sh", "-c"][..]),
        (1, &[]),
        (2, &[]),
        (3, &["sed"]),
    ] {
        let mut encoder = ChunkEncoder::new(process, process, 1, 1).unwrap();
        let events = [start(process.into(), argv)];
        encoder.encode(&dict, &raw, &events, out).unwrap();
    }
    let recording = Recording::from_bytes(writer.finish().unwrap(), "test").unwrap();
    let one = recording.index().threads[0].refs;
    let share = |name: &str, processes| ProgramShare {
        name: name.into(),
        processes,
        references: one * processes,
    };
    assert_eq!(
        recording.programs().unwrap(),
        [share("sh", 3), share("sed", 1)]
    );
}

#[test]
fn events_keep_their_place_and_content() {
    for seed in 0..40 {
        let mut r = Random(seed);
        let dict = random_dictionary(&mut r, 9);
        let raw = random_raw(&mut r, &dict, 50);
        let mut events = Vec::new();
        let mut place = 0;
        while place <= raw.len() {
            let args = [r.next(); 6];
            events.push((place, at(events.len() as u64, call(3, args, -5))));
            place += r.below(30) as usize;
        }
        let part = Part {
            ids: [0, 7, 1, 1],
            raw: &raw,
            events: events.clone(),
        };
        let recording = Recording::from_bytes(recording(&dict, &[part]), "test").unwrap();
        let (_, mut back) = recording.raw_chunk(0).unwrap();
        // An event between a block entry and its first access, or at the end of an
        // execution, has two names for the same place among the references.
        for (event, place) in events.iter().zip(&mut back) {
            assert_eq!(event.1, place.1, "seed {seed}");
            assert_eq!(event.0, place.0, "seed {seed}");
        }
        assert_eq!(events.len(), back.len());
        let plain: Vec<Event> = events.into_iter().map(|e| e.1).collect();
        assert_eq!(recording.events(0).unwrap(), plain);
    }
}

#[test]
fn pieces_of_a_vector_access_become_one_reference() {
    let mut wide = access(0, AccessKind::Load);
    wide.size = 32;
    let mut update = access(1, AccessKind::Update);
    update.size = 16;
    let dict = [block(
        0x1000,
        3,
        vec![wide, update, access(2, AccessKind::Load)],
    )];
    let raw = [
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(0, 0x108),
        Raw::access(0, 0x110),
        Raw::access(0, 0x118),
        Raw::access(1, 0x200),
        Raw::access(1, 0x208),
        Raw::access(1, 0x200),
        Raw::access(1, 0x208),
        Raw::access(2, 0x300),
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(0, 0x120),
        Raw::access(1, 0x200),
        Raw::access(2, 0x300),
        Raw::access(2, 0x300),
    ];
    let recording = single(&dict, &raw, usize::MAX);
    let expected = [
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(1, 0x200),
        Raw::access(2, 0x300),
        Raw::block(0),
        Raw::access(0, 0x100),
        Raw::access(0, 0x120),
        Raw::access(1, 0x200),
        Raw::access(2, 0x300),
        Raw::access(2, 0x300),
    ];
    assert_eq!(recording.raw_chunk(0).unwrap().0, expected);
}

#[test]
fn a_stream_that_contradicts_the_dictionary_is_refused_and_changes_nothing() {
    let dict = [block(0x1000, 2, vec![access(0, AccessKind::Load)])];
    let good = [Raw::block(0), Raw::access(0, 8)];
    let mut encoder = ChunkEncoder::new(0, 0, 1, 1).unwrap();
    let mut expected = Vec::new();
    ChunkEncoder::new(0, 0, 1, 1)
        .unwrap()
        .encode(&dict[..], &good, &[], &mut expected)
        .unwrap();
    let mut out = Vec::new();
    let mut refuse = |raw: &[Raw], events: &[(usize, Event)], text: &str| {
        let error = encoder
            .encode(&dict[..], raw, events, &mut out)
            .unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(out.is_empty());
    };
    refuse(
        &[Raw::access(0, 8)],
        &[],
        "raw entry 0 is an access; a chunk begins with a block entry",
    );
    refuse(
        &[Raw::block(0), Raw::access(0, 8), Raw::block(1)],
        &[],
        "raw entry 2 names block 1, which the dictionary does not hold",
    );
    refuse(
        &[Raw::block(0), Raw::access(1, 8)],
        &[],
        "raw entry 1 names access 1 of block 0, which has 1 accesses",
    );
    refuse(
        &good,
        &[(3, start(0, 1, 1))],
        "event 0 lies before raw entry 3; positions must rise and be at most 2",
    );
    encoder.encode(&dict[..], &good, &[], &mut out).unwrap();
    assert!(out == expected);
}

#[test]
fn pages_are_those_that_the_references_touch() {
    for seed in 0..10 {
        let mut r = Random(seed);
        let dict = random_dictionary(&mut r, 20);
        let raw = random_raw(&mut r, &dict, 1000);
        let recording = single(&dict, &raw, 900);
        for chunk in 0..recording.index().chunks.len() {
            let mut expected = std::collections::BTreeMap::<u64, [bool; 3]>::new();
            let mut current = 0;
            for entry in recording.raw_chunk(chunk).unwrap().0 {
                match entry.entry() {
                    Entry::Block(id) => {
                        current = id as usize;
                        let b = &dict[current];
                        expected.entry(b.addr >> 12).or_default()[2] = true;
                        let last = b.addr + u64::from(b.bytes) - 1;
                        expected.entry(last >> 12).or_default()[2] = true;
                    }
                    Entry::Access(k, addr) => {
                        let def = &dict[current].accesses[usize::from(k)];
                        let last = (addr + u64::from(def.size) - 1) & ((1 << 48) - 1);
                        for page in [addr >> 12, last >> 12] {
                            let flags = expected.entry(page).or_default();
                            flags[0] |= def.kind != AccessKind::Store;
                            flags[1] |= def.kind != AccessKind::Load;
                        }
                    }
                }
            }
            let touched: Vec<_> = recording
                .pages_touched(chunk)
                .unwrap()
                .iter()
                .map(|t| (t.page.0, [t.load, t.store, t.fetch]))
                .collect();
            assert_eq!(
                touched,
                expected.into_iter().collect::<Vec<_>>(),
                "seed {seed}"
            );
        }
    }
}

#[test]
fn a_forked_child_uses_its_parents_blocks() {
    let mut r = Random(3);
    let parent = random_dictionary(&mut r, 10);
    let mut child = parent[..6].to_vec();
    child.extend(random_dictionary(&mut r, 4));
    let raw = random_raw(&mut r, &child, 300);
    let mut writer = MemoryWriter::new(FileHeader::new(Vec::new()));
    let base = Base {
        process: 0,
        blocks: 6,
    };
    encode_dictionary(1, Some(base), 6, &child[6..8], writer.records()).unwrap();
    encode_dictionary(0, None, 0, &parent[..7], writer.records()).unwrap();
    encode_dictionary(1, Some(base), 8, &child[8..], writer.records()).unwrap();
    encode_dictionary(0, None, 7, &parent[7..], writer.records()).unwrap();
    let mut encoder = ChunkEncoder::new(1, 4, 2, 2).unwrap();
    encoder.encode(&child, &raw, &[], writer.records()).unwrap();
    let recording = Recording::from_bytes(writer.finish().unwrap(), "test").unwrap();
    assert_eq!(recording.block_defs(0).unwrap(), parent);
    assert_eq!(recording.block_defs(1).unwrap(), child);
    assert_eq!(recording.raw_chunk(0).unwrap().0, raw);
}
