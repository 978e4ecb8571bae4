//! Counters of the processor and the kernel over a program and all that it starts
//! (`perf_event_open`).

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::Path,
};

use crate::sys;

/// Kinds of events, as `linux/perf_event.h` numbers them.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const HW_CACHE: u32 = 3;

/// A read that misses a cache of `HW_CACHE`: operation 0 (read), result 1 (miss).
const fn misses_of(cache: u64) -> u64 {
    cache | 1 << 16
}

/// What the processor counts: name, kind, number.
const PROCESSOR: [(&str, u32, u64); 6] = [
    ("cycles", HARDWARE, 0),
    ("instructions", HARDWARE, 1),
    ("last-level references", HARDWARE, 2),
    ("last-level misses", HARDWARE, 3),
    ("last-level load misses", HW_CACHE, misses_of(2)),
    ("TLB load misses", HW_CACHE, misses_of(3)),
];
/// What the kernel counts.
const KERNEL: [(&str, u32, u64); 2] = [
    ("page faults", SOFTWARE, 2),
    ("context switches", SOFTWARE, 3),
];
/// The unit of the machine model's counters, in an emulated guest (`piebald_model.ko`).
const MODEL: &str = "/sys/bus/event_source/devices/piebald_model";
/// What it counts of the same, and its own names.
const MODELLED: [(&str, &str); 6] = [
    ("cycles", "cycles"),
    ("instructions", "instructions"),
    ("last-level references", "llc-references"),
    ("last-level misses", "llc-misses"),
    ("memory reads", "memory-reads"),
    ("row conflicts", "row-conflicts"),
];

/// Counters of this process and of every child that it starts from now on. A child's counts are
/// in them once it has ended.
pub struct EventCounters {
    open: Vec<(&'static str, File)>,
    missing: Vec<&'static str>,
    modelled: bool,
}

/// A reading: the count, and for how long it was wanted and taken, in nanoseconds.
type Reading = [u64; 3];

impl EventCounters {
    /// Opens those that this computer has. Where the processor counts nothing, as in a guest that is
    /// emulated, those of the machine model, if it has some.
    pub fn open() -> Self {
        let (mut open, mut missing) = (Vec::new(), Vec::new());
        let mut try_all = |events: &[(&'static str, u32, u64)]| {
            for (name, kind, number) in events {
                match sys::open_counter(*kind, *number) {
                    Ok(file) => open.push((*name, file)),
                    Err(_) => missing.push(*name),
                }
            }
            open.len()
        };
        let of_processor = try_all(&PROCESSOR);
        let modelled = match of_processor {
            0 => events_of(Path::new(MODEL)),
            _ => Vec::new(),
        };
        let modelled = try_all(&modelled) > of_processor;
        try_all(&KERNEL);
        missing.retain(|name| open.iter().all(|(there, _)| there != name));
        Self {
            open,
            missing,
            modelled,
        }
    }

    /// What the processor would count is counted by the machine model.
    pub const fn modelled(&self) -> bool {
        self.modelled
    }

    /// Names of the counters, in the order of [`EventCounters::over`].
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.open.iter().map(|(name, _)| *name)
    }

    /// Those that this computer or the caller's rights do not give.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// What `work` counts. A counter that shared its place with others is scaled up to the whole
    /// time; one that never had it is `NaN`.
    ///
    /// # Errors
    /// That of `work`, or a counter cannot be read.
    pub fn over<T>(&mut self, work: impl FnOnce() -> io::Result<T>) -> io::Result<(T, Vec<f64>)> {
        let before = self.read()?;
        let result = work()?;
        let after = self.read()?;
        let pairs = before.iter().zip(&after);
        Ok((result, pairs.map(|(b, a)| rise(b, a)).collect()))
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        let read = |(_, file): &mut (_, File)| {
            let mut bytes = [0u8; 24];
            file.read_exact(&mut bytes).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => {
                    io::Error::new(e.kind(), "the kernel gave no value of a counter")
                }
                _ => e,
            })?;
            let mut reading = [0u64; 3];
            for (word, part) in reading.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = part
                    .iter()
                    .rev()
                    .fold(0, |n, byte| n << 8 | u64::from(*byte));
            }
            Ok(reading)
        };
        self.open.iter_mut().map(read).collect()
    }
}

/// The events of [`MODELLED`] that a unit has, with the unit's number and theirs.
fn events_of(unit: &Path) -> Vec<(&'static str, u32, u64)> {
    let text = |path: &str| fs::read_to_string(unit.join(path)).unwrap_or_default();
    let Ok(kind) = text("type").trim().parse() else {
        return Vec::new();
    };
    let number = |event: &str| {
        let text = text(&format!("events/{event}"));
        u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
    };
    let found = MODELLED
        .iter()
        .filter_map(|(name, event)| Some((*name, kind, number(event)?)));
    found.collect()
}

fn rise(before: &Reading, after: &Reading) -> f64 {
    let [count, wanted, taken] = [0, 1, 2].map(|i| after[i].saturating_sub(before[i]) as f64);
    match taken > 0.0 {
        true => count * (wanted / taken).max(1.0),
        false => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    #[test]
    fn counts_are_scaled_to_the_time_that_was_wanted() {
        assert_eq!(rise(&[10, 100, 100], &[60, 200, 200]), 50.0);
        assert_eq!(rise(&[0, 0, 0], &[50, 200, 100]), 100.0);
        assert!(rise(&[5, 0, 0], &[5, 100, 0]).is_nan());
    }

    #[test]
    fn a_unit_says_the_numbers_of_its_events() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(events_of(folder.path()), [], "no unit");
        let write = |name: &str, text: &str| {
            fs::write(folder.path().join(name), text).expect("it can be written");
        };
        fs::create_dir(folder.path().join("events")).expect("a folder");
        write("events/llc-misses", "event=0x0f\n");
        assert_eq!(events_of(folder.path()), [], "no number of the unit");
        write("type", "23\n");
        write("events/cycles", "event=0x01\n");
        write("events/instructions", "config=1\n");
        write("events/others", "event=0x02\n");
        let found = [("cycles", 23, 1), ("last-level misses", 23, 15)];
        assert_eq!(events_of(folder.path()), found);
    }

    /// Counters that read this from a file, one reading after the other.
    fn reading(name: &'static str, readings: &[Reading]) -> EventCounters {
        let bytes: Vec<u8> = readings
            .iter()
            .flatten()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(&bytes).expect("written");
        file.rewind().expect("rewound");
        EventCounters {
            open: vec![(name, file)],
            missing: Vec::new(),
            modelled: false,
        }
    }

    #[test]
    fn work_counts_what_rises_while_it_is_done() {
        let readings = [[7, 100, 100], [57, 300, 200], [58, 400, 300]];
        let mut counters = reading("cycles", &readings);
        let (answer, counts) = counters.over(|| Ok(42)).expect("two readings");
        // Taken for half of the time.
        assert_eq!((answer, counts), (42, vec![100.0]));
        let failed = counters.over(|| Err::<(), _>(io::Error::other("of the work")));
        assert_eq!(failed.expect_err("fails").to_string(), "of the work");
        let ended = counters.over(|| Ok(())).expect_err("no reading is left");
        assert_eq!(ended.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(ended.to_string(), "the kernel gave no value of a counter");
    }

    #[test]
    fn a_counter_is_open_or_missing_and_never_both() {
        let counters = EventCounters::open();
        let open: Vec<&str> = counters.names().collect();
        for (name, ..) in KERNEL.iter().chain(&PROCESSOR) {
            let places = [open.contains(name), counters.missing().contains(name)];
            assert_ne!(places[0], places[1], "{name}");
        }
    }

    #[test]
    #[ignore = "needs root, who may count events: ./test.sh recorder-root"]
    fn a_child_s_faults_are_counted_once_it_has_ended_as_root() {
        let mut counters = EventCounters::open();
        let at = counters.names().position(|name| name == "page faults");
        let at = at.expect("perf_event_open counts page faults");
        let mut faults = |script: &str| {
            let mut child = std::process::Command::new("sh");
            let (_, counts) = counters
                .over(|| child.args(["-c", script]).status())
                .expect("sh runs");
            counts[at]
        };
        let (few, many) = (
            faults(":"),
            faults("for i in 1 2 3 4 5 6 7 8; do (:); done"),
        );
        assert!(few > 10.0 && many > 2.0 * few, "{few} {many}");
    }
}
