//! What the tests share: files, and a reader that collects everything.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use piebald_trace::foreign::{ForeignThread, ForeignTrace, Format, Notes, Options};
use piebald_units::op::{MemRef, Next, OpSource};

/// All that a thread gave.
#[derive(Debug, PartialEq)]
pub struct Collected {
    pub refs: Vec<MemRef>,
    /// Events with the number of references before and the tail.
    pub events: Vec<(usize, u32, Next)>,
    pub failure: Option<String>,
    pub notes: Notes,
}

impl Collected {
    pub fn end(&self) -> Next {
        self.events.last().expect("an end").2
    }

    pub fn instructions(&self) -> u64 {
        let gaps: u64 = self.refs.iter().map(|r| u64::from(r.gap)).sum();
        let tails: u64 = self.events.iter().map(|e| u64::from(e.1)).sum();
        gaps + tails
    }
}

pub fn collect(source: &mut ForeignThread) -> Collected {
    let mut all = Collected {
        refs: Vec::new(),
        events: Vec::new(),
        failure: None,
        notes: Notes::default(),
    };
    let mut buffer = [MemRef::default(); 64];
    loop {
        let filled = source.fill(&mut buffer);
        all.refs.extend_from_slice(&buffer[..filled.refs]);
        if filled.next == Next::More {
            assert!(filled.refs > 0 && filled.tail == 0);
            continue;
        }
        all.events.push((all.refs.len(), filled.tail, filled.next));
        if !matches!(filled.next, Next::Sys(_) | Next::Mark(_)) {
            break;
        }
    }
    all.failure = source.failure().map(str::to_owned);
    all.notes = source.notes();
    all
}

pub fn read(path: &Path, format: Format, options: Options) -> Collected {
    let trace = ForeignTrace::at(&[path], Some(format), options).expect("a trace");
    collect(&mut trace.open(0).expect("a thread"))
}

/// A file that goes away with the value.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("piebald-foreign-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let path = dir.join(name);
        std::fs::write(&path, bytes).expect("a file");
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.0.parent().expect("its directory"));
    }
}

pub fn read_bytes(bytes: &[u8], format: Format, options: Options) -> Collected {
    let thread = ForeignThread::from_bytes("input", bytes, format, options);
    collect(&mut thread.expect("a thread"))
}

/// A file of `testdata/mem`.
pub fn own(name: &str) -> PathBuf {
    workspace().join("testdata/mem").join(name)
}

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub fn own_bytes(name: &str) -> Vec<u8> {
    std::fs::read(own(name)).expect(name)
}
