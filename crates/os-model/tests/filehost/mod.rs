//! What the tests of the file side share: a disk, a policy, a driver.
#![allow(dead_code)]

pub mod disk;
pub mod driver;
pub mod lru;

use disk::TestDisk;
use lru::Lru;
use piebald_os_model::file::{FileConfig, FileHost, FileTable, Layout};
use piebald_units::{FileId, Lba, Picos};

/// A millisecond.
pub const MS: u64 = 1_000_000_000;

/// The host that most tests drive.
pub type Host = FileHost<Lru, TestDisk>;

/// A host over files of so many pages each, packed one after another.
pub fn host(config: FileConfig, memory: u32, files: &[u64]) -> Host {
    let packed = Layout::Packed {
        start: Lba(0),
        gap_pages: 0,
    };
    let mut host = FileHost::new(
        config,
        FileTable::new(packed).unwrap(),
        Lru::new(memory),
        TestDisk::default(),
    )
    .unwrap();
    for (id, &pages) in files.iter().enumerate() {
        host.add_file(FileId(id as u64), pages).unwrap();
    }
    host
}

/// Milliseconds as a time.
pub fn ms(n: u64) -> Picos {
    Picos(n * MS)
}
