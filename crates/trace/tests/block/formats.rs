//! Every format: its sample read, found out, packed, and what it says of itself.

use std::io::Write;

use piebald_trace::about::Origin;
use piebald_trace::block::{
    BlockTrace, Format, FptWriter, NextUse, Op, Options, PageShift, Stage, Target, TargetKind,
    Times, head, summarize,
};
use piebald_trace::foreign::Distinct;

use super::support::{blktrace, expected, lcs, lines, open, options, sample};

#[test]
fn every_sample_gives_its_requests() {
    for format in Format::ALL {
        assert_eq!(
            lines(&sample(format), options(format)),
            expected(format),
            "{format}"
        );
    }
}

#[test]
fn every_sample_is_found_out_by_its_content() {
    for format in Format::ALL {
        let found = BlockTrace::from_bytes("x.msr", &sample(format), Options::default());
        match format {
            // Nothing marks them.
            Format::W106 | Format::W106Be | Format::Valpin => {
                let error = found.err().expect("no format").to_string();
                assert!(error.contains("have no mark to know them by"), "{error}");
            }
            // Whole milliseconds and flags of DiskSim look the same.
            Format::Mqsim => {
                let error = found.err().expect("two formats").to_string();
                assert!(error.contains("mqsim or disksim"), "{error}");
            }
            // Only its user knows what is in which column.
            Format::Columns => {
                let error = found.err().expect("no format").to_string();
                assert!(error.contains("for example --columns "), "{error}");
            }
            _ => assert_eq!(found.ok().map(|t| t.format()), Some(format)),
        }
    }
}

#[test]
fn names_read_back_and_are_different() {
    for format in Format::ALL {
        assert_eq!(format.name().parse::<Format>().expect("a name"), format);
        let same = Format::ALL.iter().filter(|f| f.name() == format.name());
        assert_eq!(same.count(), 1);
    }
    for (alias, format) in [
        ("lirs", Format::Ids),
        ("vscsi", Format::VscsiV1),
        ("lis", Format::Arc),
        ("caffeine", Format::W106Be),
        ("oracleGeneralOpNS", Format::OracleGeneralOpNs),
    ] {
        assert_eq!(alias.parse::<Format>().expect("an alias"), format);
    }
    let error = "iso".parse::<Format>().expect_err("no format").to_string();
    assert!(
        error.contains("\"iso\"") && error.contains("disksim-validate"),
        "{error}"
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    w.write_all(bytes).expect("packed");
    w.finish().expect("packed")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut w = liblzma::write::XzEncoder::new(Vec::new(), 1);
    w.write_all(bytes).expect("packed");
    w.finish().expect("packed")
}

#[test]
fn packing_changes_nothing() {
    for format in Format::ALL {
        let bytes = sample(format);
        for packed in [
            gzip(&bytes),
            xz(&bytes),
            zstd::encode_all(&bytes[..], 1).expect("packed"),
        ] {
            assert_eq!(
                lines(&packed, options(format)),
                expected(format),
                "{format}"
            );
        }
    }
}

#[test]
fn text_may_end_its_lines_in_either_way() {
    for format in Format::ALL {
        let bytes = sample(format);
        if let Ok(text) = std::str::from_utf8(&bytes)
            && !bytes.contains(&0)
        {
            let crlf = text.replace('\n', "\r\n");
            assert_eq!(
                lines(crlf.as_bytes(), options(format)),
                expected(format),
                "{format}"
            );
        }
    }
}

#[test]
fn batches_do_not_depend_on_where_buffers_end() {
    // Longer than the input's buffer and than a batch, so that records straddle both.
    let text: String = (0..30_000)
        .map(|n| format!("{} {n} 0 {n}\n", n * 7))
        .collect();
    let mut trace = open(text.as_bytes(), Options::default());
    assert_eq!(trace.format(), Format::Arc);
    let mut batch = Vec::new();
    let mut n = 0;
    while trace.next_batch(&mut batch).expect("reads") {
        for request in &batch {
            // A request of no sectors is counted and left out.
            n += 1;
            let Target::Device {
                sector, sectors, ..
            } = request.target
            else {
                panic!("{request:?}");
            };
            assert_eq!((sector, sectors), (n * 7, n));
        }
    }
    assert_eq!((n, trace.passed().empty), (29_999, 1));
    assert_eq!(trace.offset(), text.len() as u64);
}

#[test]
fn blktrace_reads_both_byte_orders_and_both_stages() {
    let big = blktrace(u32::to_be_bytes, u64::to_be_bytes, u16::to_be_bytes);
    let mut trace = open(&big, Options::default());
    assert_eq!(
        head(&mut trace, 9).expect("reads"),
        expected(Format::Blktrace)
    );
    assert_eq!((trace.passed().flushes, trace.passed().others), (1, 1));
    assert_eq!(trace.notes().backward, 1);
    assert_eq!(trace.notes().largest_step_back_ns, 100_000);
    for format in [Format::Blktrace, Format::Blkparse] {
        let issued = Options {
            stage: Stage::Issue,
            ..options(format)
        };
        assert_eq!(lines(&sample(format), issued).len(), 1, "{format}");
    }
    let issued = Options {
        stage: Stage::Issue,
        ..options(Format::Msr)
    };
    let error = BlockTrace::from_bytes("a.csv", &sample(Format::Msr), issued);
    let error = error.err().expect("refused").to_string();
    assert!(
        error.contains("a.csv: stage is issue; allowed for msr: queue"),
        "{error}"
    );
}

#[test]
fn what_is_passed_over_is_counted() {
    let counts = |format: Format| {
        let mut trace = open(&sample(format), options(format));
        head(&mut trace, 1000).expect("reads");
        trace.passed()
    };
    let blkparse = counts(Format::Blkparse);
    assert_eq!((blkparse.flushes, blkparse.discards), (1, 1));
    assert_eq!((blkparse.others, blkparse.comments), (5, 3));
    assert_eq!(counts(Format::VscsiV1).flushes, 1);
    assert_eq!(counts(Format::LibCacheSimCsv).others, 1);
    assert_eq!(counts(Format::Systor17).others, 1);
    assert_eq!(counts(Format::Ids).comments, 2);
    let fio = counts(Format::Fio);
    assert_eq!((fio.flushes, fio.discards, fio.others), (1, 1, 2));
}

#[test]
fn unaligned_requests_are_widened_and_counted() {
    for (format, widened) in [(Format::Msr, 1), (Format::Spc, 1), (Format::Systor17, 0)] {
        let mut trace = open(&sample(format), options(format));
        head(&mut trace, 1000).expect("reads");
        assert_eq!(trace.notes().widened, widened, "{format}");
    }
}

#[test]
fn the_next_use_is_told() {
    let bytes = sample(Format::OracleGeneral);
    let next: Vec<NextUse> = open(&bytes, Options::default())
        .requests()
        .map(|r| match r.expect("reads").target {
            Target::Id { next, .. } => next,
            other => panic!("{other:?}"),
        })
        .collect();
    let third = NextUse::At(std::num::NonZeroU64::new(3).expect("not 0"));
    let never = NextUse::Never;
    assert_eq!(next, [third, never, never, never]);
}

#[test]
fn formats_say_what_they_give() {
    let traits = |format| open(&sample(format), options(format)).traits();
    let kind = |kind| {
        let all = Format::ALL.into_iter();
        all.filter(move |f| traits(*f).target == kind)
    };
    assert_eq!(kind(TargetKind::Device).count(), 14);
    assert_eq!(kind(TargetKind::File).count(), 4);
    assert_eq!(kind(TargetKind::Id).count(), 8);
    for format in Format::ALL {
        for request in open(&sample(format), options(format)).requests() {
            let request = request.expect("reads");
            match traits(format).times {
                Times::None => assert_eq!(request.time, None, "{format}"),
                Times::Optional => {}
                Times::Ordered | Times::Loose => assert!(request.time.is_some(), "{format}"),
            }
        }
    }
}

#[test]
fn ambiguous_content_lists_what_it_may_be() {
    let text = b"1000 0 64 8 1\n2000 0 72 8 0\n";
    // Whole milliseconds, and flags that MQSim's types could be.
    let error = BlockTrace::from_bytes("t", text, Options::default()).err();
    let error = error.expect("two formats").to_string();
    assert!(
        error.contains("mqsim or disksim") && error.contains("--format"),
        "{error}"
    );
    assert_eq!(
        lines(text, options(Format::DiskSim))[0],
        "#0 1000000000 0 read disk 0 sectors 64+8"
    );
    assert_eq!(
        lines(text, options(Format::Mqsim))[0],
        "#0 1000 0 read disk 0 sectors 64+8"
    );
}

#[test]
fn fio_three_has_times_in_microseconds() {
    let text = b"fio version 3 iolog\n0 /d/f add\n5 /d/f read 0 4096\n";
    assert_eq!(
        lines(text, Options::default()),
        ["#0 5000 0 read file /d/f bytes 0+4096"]
    );
}

#[test]
fn fio_names_reach_up_to_the_action() {
    let text = b"fio version 2 iolog\n/d/my disk add\n/d/my disk open\n/d/my disk read 0 4096\n\
        /d/my disk sync_file_range 0 4096\n/d/my disk syncfs 0 0\n/d/my disk wait 1500 0\n";
    let mut trace = open(text, Options::default());
    assert_eq!(
        head(&mut trace, 9).expect("reads"),
        ["#0 - 0 read file /d/my disk bytes 0+4096"]
    );
    let passed = trace.passed();
    assert_eq!((passed.flushes, passed.others), (2, 2));
}

#[test]
fn lcs_is_read_in_all_versions_behind_both_headers() {
    for version in 1..=8 {
        let format = match version {
            1 => Format::LcsV1,
            _ => Format::Lcs,
        };
        for header in [1024, 8192] {
            let bytes = lcs(version, header);
            let found = open(&bytes, Options::default());
            assert_eq!(found.format(), format, "version {version}");
            let read = lines(&bytes, Options::default());
            assert_eq!(read, expected(format), "version {version}, {header} bytes");
        }
    }
}

#[test]
fn file_traces_read_back_from_fpt_with_the_same_pages() {
    for format in [Format::Strace, Format::Fpt, Format::Fio, Format::AccuSim] {
        let mut trace = open(&sample(format), options(format));
        let mut writer = FptWriter::new(Vec::new()).expect("memory");
        let (mut batch, mut before) = (Vec::new(), Vec::new());
        while trace.next_batch(&mut batch).expect("reads") {
            for request in &batch {
                writer.request(request, trace.files()).expect("writes");
                let span = request.pages(PageShift::PAGE_4K);
                let Target::File { file, .. } = request.target else {
                    panic!("{request:?}");
                };
                let path = trace.files().get(file).expect("a file").path().into_owned();
                before.push((request.op, request.task, path, span.first, span.count));
            }
        }
        let written = writer.into_inner();
        let mut again = open(&written, Options::default());
        assert_eq!(again.format(), Format::Fpt);
        let mut after = Vec::new();
        while again.next_batch(&mut batch).expect("reads") {
            for request in &batch {
                let span = request.pages(PageShift::PAGE_4K);
                let Target::File { file, .. } = request.target else {
                    panic!("{request:?}");
                };
                let path = again.files().get(file).expect("a file").path().into_owned();
                after.push((request.op, request.task, path, span.first, span.count));
            }
        }
        assert_eq!(before, after, "{format}");
        assert!(before.iter().any(|r| r.0 == Op::Write), "{format}");
    }
}

#[test]
fn a_summary_counts_pages_and_sequences() {
    // Pages 0..3 of disk 0, page 3, then page 4 of disk 1: not a successor.
    let text = b"0 0 0 24 1\n0 0 24 8 0\n5 1 32 8 1\n9 0 24 16 1\n";
    let sum = summarize(
        &mut open(text, options(Format::Mqsim)),
        PageShift::PAGE_4K,
        100,
    );
    let sum = sum.expect("reads");
    assert_eq!((sum.requests, sum.reads, sum.writes), (4, 3, 1));
    assert_eq!(sum.page_references, 3 + 1 + 1 + 2);
    assert_eq!(sum.unique_pages, Distinct::Exactly(6));
    assert_eq!(sum.next_page_references, 2 + 1 + 1);
    assert_eq!(sum.sequential_requests, 1);
    assert_eq!(
        (sum.disks, sum.duration_ns()),
        (Distinct::Exactly(2), Some(9))
    );
    assert_eq!((sum.bytes, sum.page_range), (56 * 512, Some((0, 4))));
    let bounded = summarize(
        &mut open(text, options(Format::Mqsim)),
        PageShift::PAGE_4K,
        3,
    );
    assert_eq!(bounded.expect("reads").unique_pages, Distinct::MoreThan(3));
}

#[test]
fn a_request_for_a_whole_disk_is_summed_up_at_once() {
    let text = format!("0 0 0 {} 1\n", 1u64 << 54);
    let sum = summarize(
        &mut open(text.as_bytes(), options(Format::Mqsim)),
        PageShift::PAGE_4K,
        1000,
    );
    let sum = sum.expect("reads");
    assert_eq!(sum.page_references, 1 << 51);
    assert_eq!(sum.unique_pages, Distinct::MoreThan(1000));
}

#[test]
fn the_projects_own_memory_traces_are_no_block_traces() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/mem");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("a file").path();
        if path.is_file() {
            let found = BlockTrace::open(&path, Options::default());
            assert!(found.is_err(), "{} is taken", path.display());
            seen += 1;
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn commands_to_a_device_are_no_requests_for_sectors() {
    let mut bytes = sample(Format::Blktrace);
    let whole = lines(&bytes, options(Format::Blktrace));
    // The action of the first record: a command (BLK_TC_PC) instead of a request of a file system.
    let action = u32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]);
    bytes[28..32].copy_from_slice(&(action | 1 << 25).to_le_bytes());
    let found = lines(&bytes, options(Format::Blktrace));
    assert_eq!(found.len() + 1, whole.len(), "{found:?}");
}

#[test]
fn outputs_of_blkparse_may_follow_one_another_with_their_summaries() {
    let one = |device: &str, sector: u64| {
        format!(
            "  {device}    3        1     0.000000001   697  Q   R {sector} + 8 [kjournald]\n\
             CPU0 (sda):\n Reads Queued:           1,        4KiB\n\
             Total (sda):\n Reads Queued:           1,        4KiB\n\n\
             Events (sda): 3 entries\nSkips: 0 forward (0 -   0.0%)\n"
        )
    };
    let both = one("8,0", 8) + &one("8,16", 64);
    let found = lines(both.as_bytes(), options(Format::Blkparse));
    assert_eq!(found.len(), 2, "{found:?}");
}

#[test]
fn libcachesim_s_csv_has_times_only_with_a_column_for_them() {
    for (text, origin) in [
        ("lbn\n0\n8\n", Origin::Absent),
        ("time,lbn\n1,0\n2,8\n", Origin::Relative),
    ] {
        let mut trace = open(text.as_bytes(), options(Format::LibCacheSimCsv));
        while trace.next_batch(&mut Vec::new()).expect("reads") {}
        assert_eq!(trace.origin(), origin, "{text}");
    }
}
