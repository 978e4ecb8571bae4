//! Damaged, cut and unfinished files.

use std::io::Write;

use super::support::*;
use crate::recording::{model::*, *};

fn small() -> Vec<u8> {
    let mut r = Random(9);
    let dict = random_dictionary(&mut r, 4);
    let raw = random_raw(&mut r, &dict, 30);
    let part = |thread, events| Part {
        ids: [0, thread, 1, 1 + thread],
        raw: &raw,
        events,
    };
    let clone = call(56, [0x100; 6], 2);
    recording(
        &dict,
        &[
            part(0, vec![(0, start(0, 1, 1)), (5, at(1, clone))]),
            part(1, vec![(0, start(2, 1, 2))]),
            part(0, vec![]),
        ],
    )
}

/// Reads all that a recording holds.
fn read(recording: &Recording) -> Result<(), ReadError> {
    recording.verify()?;
    for chunk in 0..recording.index().chunks.len() {
        recording.pages_touched(chunk)?;
        recording.raw_chunk(chunk)?;
    }
    Ok(())
}

#[test]
fn every_cut_is_an_error() {
    let bytes = small();
    assert!(Recording::from_bytes(bytes.clone(), "whole").is_ok_and(|r| read(&r).is_ok()));
    for len in 0..bytes.len() {
        let cut = bytes[..len].to_vec();
        let error = Recording::from_bytes(cut.clone(), "cut").err();
        let error = error.unwrap_or_else(|| panic!("{len} bytes were accepted"));
        assert!(error.to_string().starts_with("cut: "), "{error}");
        if let Ok((recording, _)) = Recording::recover_bytes(cut, "cut") {
            read(&recording).unwrap();
        }
    }
}

#[test]
fn every_changed_byte_is_an_error_with_its_offset() {
    let bytes = small();
    let mut r = Random(1);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 + r.below(255) as u8;
        let result = Recording::from_bytes(changed.clone(), "changed").and_then(|r| read(&r));
        let error = result
            .err()
            .unwrap_or_else(|| panic!("byte {at} was not missed"));
        // The minor version may rise without harm to the reader, but it is under
        // the header's checksum.
        let text = error.to_string();
        assert!(
            text.contains("offset") || text.contains("version"),
            "byte {at}: {text}"
        );
        if let Ok((recording, found)) = Recording::recover_bytes(changed, "changed") {
            // What is left reads well, unless the dictionary is among the lost.
            let intact = found.lost.is_empty() || !recording.index().dictionaries.is_empty();
            assert!(read(&recording).is_ok() || !intact, "byte {at}: {found:?}");
        }
    }
}

#[test]
fn random_bytes_and_crafted_files_do_no_harm() {
    let bytes = small();
    let mut r = Random(4);
    for len in [0, 1, 7, 16, 100, 5000] {
        let random: Vec<u8> = (0..len).map(|_| r.next() as u8).collect();
        fuzz::recording(&random);
        fuzz::record(&random);
    }
    let first = bytes.windows(8).position(|w| w == b"PBLDRCD\0").unwrap();
    for _ in 0..400 {
        let mut changed = bytes.clone();
        for _ in 0..1 + r.below(4) {
            // The padding of the header is of no interest.
            let at = match r.below(8) {
                0 => r.below(300) as usize,
                _ => first + r.below((bytes.len() - first) as u64) as usize,
            };
            changed[at] = r.next() as u8;
        }
        fuzz::recording(&changed);
        fuzz::crafted_recording(&changed);
        fuzz::record(&changed[first..]);
    }
}

#[test]
fn an_unfinished_file_is_reported_and_recovered() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.pbr");
    let mut r = Random(2);
    let dict = random_dictionary(&mut r, 6);
    let raw = random_raw(&mut r, &dict, 100);
    let header = FileHeader::new(vec!["a".into(), "b".into()]);
    let mut writer = RecordingWriter::create(&path, header).unwrap();
    let mut record = Vec::new();
    encode_dictionary(0, None, 0, &dict, &mut record).unwrap();
    writer.append_record(&record).unwrap();
    let mut encoder = ChunkEncoder::new(0, 0, 1, 1).unwrap();
    let mut records = Vec::new();
    for _ in 0..3 {
        record.clear();
        encoder.encode(&dict, &raw, &[], &mut record).unwrap();
        writer.append_record(&record).unwrap();
        records.push(record.clone());
    }
    let partial = writer.partial_path().to_path_buf();
    let len = std::fs::metadata(&partial).unwrap().len();
    let error = Recording::open(&partial).unwrap_err().to_string();
    assert!(
        error.contains(&format!("no footer at offset {len}")),
        "{error}"
    );
    assert!(error.contains("piebald trace repair"), "{error}");

    // A record whose writer was killed.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(&partial)
        .unwrap();
    file.write_all(&records[0][..records[0].len() - 1]).unwrap();
    let (recovered, found) = Recording::recover(&partial).unwrap();
    let torn = len..len + records[0].len() as u64 - 1;
    let torn = std::slice::from_ref(&torn);
    assert_eq!((found.records, found.lost.as_slice()), (4, torn));
    assert!(!recovered.header().complete);
    assert_eq!(recovered.header().counts.chunks, 3);
    for chunk in 0..3 {
        assert_eq!(recovered.raw_chunk(chunk).unwrap().0, raw);
    }

    // The driver finishes it all the same, and says that something was lost.
    let finished = writer.finish().unwrap();
    assert_eq!(finished.found.lost, torn);
    assert!(!finished.header.complete);
    assert!(!partial.exists());
    let whole = Recording::open(&path).unwrap();
    whole.verify().unwrap();
    assert_eq!(whole.header(), &finished.header);
    assert_eq!(whole.index(), recovered.index());
    assert_eq!(whole.header().counts.references, 3 * encoder.totals().1 / 3);
}

#[test]
fn a_missing_chunk_is_an_error_and_recovery_reads_up_to_it() {
    let mut r = Random(2);
    let dict = random_dictionary(&mut r, 6);
    let raw = random_raw(&mut r, &dict, 100);
    let mut writer = MemoryWriter::new(FileHeader::new(Vec::new()));
    encode_dictionary(0, None, 0, &dict, writer.records()).unwrap();
    let mut encoder = ChunkEncoder::new(0, 0, 1, 1).unwrap();
    for i in 0..3 {
        let mut record = Vec::new();
        encoder.encode(&dict, &raw, &[], &mut record).unwrap();
        if i != 1 {
            writer.records().extend(record);
        }
    }
    let bytes = writer.finish().unwrap();
    let error = Recording::from_bytes(bytes.clone(), "gap")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("a chunk is missing: thread 0 goes on at instruction"),
        "{error}"
    );
    let (recording, _) = Recording::recover_bytes(bytes, "gap").unwrap();
    use piebald_units::op::{MemRef, Next, OpSource};
    let mut source = recording.source(0, ReplayOptions::default()).unwrap();
    let mut refs = 0;
    let mut out = [MemRef::default(); 64];
    loop {
        let filled = source.fill(&mut out);
        refs += filled.refs as u64;
        match filled.next {
            Next::More => {}
            Next::Broken => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refs, encoder.totals().1 / 3);
    let failure = source.failure().unwrap();
    assert!(
        failure.contains("a chunk of thread 0 is missing before instruction"),
        "{failure}"
    );
}

#[test]
fn other_major_versions_are_refused() {
    for (major, told) in [
        (1, "record again"),
        (3, "a newer version of Piebald reads it"),
    ] {
        let mut bytes = small();
        bytes[8] = major;
        let error = Recording::from_bytes(bytes, "it").unwrap_err().to_string();
        assert_eq!(
            error,
            format!("it: format version {major}.{MINOR}; this version reads 2.x: {told}")
        );
    }
}

#[test]
fn a_long_command_gets_a_longer_header() {
    let argv: Vec<String> = (0..3000).map(|i| format!("argument-{i}")).collect();
    let writer = MemoryWriter::new(FileHeader::new(argv.clone()));
    let recording = Recording::from_bytes(writer.finish().unwrap(), "long").unwrap();
    assert_eq!(recording.header().argv, argv);
    assert!(recording.header().complete);
    assert_eq!(recording.threads().unwrap(), []);
    let error = recording.source(0, ReplayOptions::default()).err().unwrap();
    assert_eq!(error.to_string(), "long: no thread 0; its threads: none");
}

#[test]
fn nonsense_blocks_are_refused() {
    let refuse = |change: &dyn Fn(&mut BlockDef), text: &str| {
        let mut b = block(0x1000, 4, vec![access(1, AccessKind::Load)]);
        change(&mut b);
        let mut out = Vec::new();
        let error = encode_dictionary(0, None, 7, &[b], &mut out).unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(out.is_empty());
    };
    refuse(
        &|b| b.instrs = 0,
        "block 7: instrs 0; at least 1 is allowed",
    );
    refuse(
        &|b| b.accesses[0].size = 65,
        "block 7: access 0: size 65; 1 to 64 are allowed",
    );
    refuse(
        &|b| b.accesses[0].insn = 4,
        "block 7: access 0: insn 4; 0 to 3 are allowed",
    );
    refuse(
        &|b| b.bytes = 65,
        "block 7: 65 bytes; 4 instructions have at most 16 each",
    );
}
