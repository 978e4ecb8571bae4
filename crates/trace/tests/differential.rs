//! Every reader against a writer that knows nothing of it: random records are written, and read back
//! they are the same requests or references.

mod memory;

use crate::writers::{Place, Row, Seen, What, write};
use piebald_trace::block::{BlockTrace, Format, NextUse, Options, Request, Target};
use proptest::prelude::*;

/// All requests, with names instead of keys.
fn read(format: Format, bytes: &[u8]) -> Vec<Seen> {
    let options = Options {
        format: Some(format),
        ..Options::default()
    };
    let mut trace = BlockTrace::from_bytes("written", bytes, options).expect("opens");
    let (mut seen, mut batch) = (Vec::new(), Vec::new());
    while trace
        .next_batch(&mut batch)
        .unwrap_or_else(|e| panic!("{format}: {e}"))
    {
        seen.extend(batch.iter().map(|request| named(request, &trace)));
    }
    seen
}

fn named(request: &Request, trace: &BlockTrace) -> Seen {
    let place = match request.target {
        Target::Device {
            device,
            sector,
            sectors,
        } => {
            let name = trace.devices().name(device);
            let name = name.map_or(device.to_string(), |n| n.into_owned());
            Place::Disk {
                name,
                sector,
                sectors,
            }
        }
        Target::File {
            file,
            offset,
            length,
        } => {
            let path = trace.files().get(file).expect("a file").path();
            let path = path.into_owned();
            Place::File {
                path,
                offset,
                length,
            }
        }
        Target::Id { id, bytes, next } => {
            let next = match next {
                NextUse::Unknown => None,
                NextUse::Never => Some(u64::MAX),
                NextUse::At(number) => Some(number.get()),
            };
            Place::Block { id, bytes, next }
        }
    };
    Seen {
        time: request.time.map(|t| t.0),
        task: request.task,
        op: request.op,
        place,
    }
}

fn row() -> impl Strategy<Value = Row> {
    let time = prop_oneof![0..1_u64 << 42, any::<u64>(), Just(u64::MAX), Just(0)];
    let what = prop_oneof![
        4 => Just(What::Read),
        2 => Just(What::Write),
        1 => Just(What::Other),
    ];
    let pages = (0..40_u64).prop_map(|page| page * 4096);
    let place = prop_oneof![pages, 0..1_u64 << 20, 0..1_u64 << 62];
    let pages = (0..9_u64).prop_map(|page| page * 4096);
    let length = prop_oneof![pages, 0..5000_u64, 0..1_u64 << 33, Just(0)];
    let disk = prop_oneof![0..4_u32, any::<u32>()];
    let rest = (any::<u32>(), disk, any::<u64>());
    (time, what, place, length, rest).prop_map(
        |(time, what, place, length, (task, disk, spice))| Row {
            time,
            task,
            disk,
            what,
            place,
            length,
            spice,
        },
    )
}

/// The case fails with the first request that is not the one that was written.
fn compare(format: Format, rows: &[Row]) -> Result<(), TestCaseError> {
    let written = write(format, rows);
    let seen = read(format, &written.bytes);
    let pairs = seen.iter().zip(&written.seen);
    for (n, (read, wrote)) in pairs.enumerate() {
        prop_assert_eq!(read, wrote, "{} request {} of {:?}", format, n, rows);
    }
    prop_assert_eq!(seen.len(), written.seen.len(), "{} of {:?}", format, rows);
    Ok(())
}

macro_rules! formats {
    ($($name:ident: $format:ident,)*) => {
        proptest! {
            $(
                #[test]
                fn $name(rows in prop::collection::vec(row(), 1..50)) {
                    compare(Format::$format, &rows)?;
                }
            )*
        }

        #[test]
        fn every_format_is_compared() {
            let compared = [$(Format::$format),*];
            // Texts in columns are written and read back in tests/columns.rs.
            for format in Format::ALL.into_iter().filter(|f| *f != Format::Columns) {
                assert!(compared.contains(&format), "{format}");
            }
        }
    };
}

formats! {
    blktrace_reads_back: Blktrace,
    blkparse_reads_back: Blkparse,
    msr_reads_back: Msr,
    spc_reads_back: Spc,
    vscsi_of_version_1_reads_back: VscsiV1,
    vscsi_of_version_2_reads_back: VscsiV2,
    csv_of_libcachesim_reads_back: LibCacheSimCsv,
    oracle_general_reads_back: OracleGeneral,
    oracle_general_with_operations_reads_back: OracleGeneralOpNs,
    lcs_of_version_1_reads_back: LcsV1,
    lcs_of_later_versions_reads_back: Lcs,
    ids_read_back: Ids,
    arc_reads_back: Arc,
    systor_reads_back: Systor17,
    tencent_reads_back: Tencent,
    mqsim_reads_back: Mqsim,
    disksim_reads_back: DiskSim,
    disksim_validation_reads_back: DiskSimValidate,
    accusim_reads_back: AccuSim,
    strace_reads_back: Strace,
    fpt_reads_back: Fpt,
    fio_reads_back: Fio,
    w106_reads_back: W106,
    big_endian_w106_reads_back: W106Be,
    valpin_reads_back: Valpin,
}
