//! Counters that the guest can read: a page of numbers in memory that it shares with the host.
//!
//! The memory is a file, which QEMU shows the guest as the memory of a PCI device
//! (`ivshmem-plain`) and which is mapped here. It holds words of 64 bits, little-endian:
//!
//! | word | content |
//! |---|---|
//! | 0 | [`MAGIC`], the last that is written when all is ready |
//! | 1 | [`VERSION`] |
//! | 2 | processors |
//! | 3 | events of a processor: [`EVENTS`] |
//! | 4 | words from one processor to the next |
//! | 5 | first word of processor 0 |
//! | 6 | how often counters were published |
//! | 8..16 | name of the modelled machine, bytes, ended by 0 |
//!
//! A driver in the guest (`kernel/model`) makes them a performance monitoring unit. It marks
//! ([`Op::Publish`](super::Op)) that it wants to read: all that the processors have done is
//! then handed to the model, and the sums are written here before its next instruction.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::path::Path;

/// `PBCOUNTS` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PBCOUNTS");
/// Version of the layout and of the order of [`EVENTS`].
pub const VERSION: u64 = 2;
/// Bytes of the file: a power of two, as a device's memory has to be.
pub const BYTES: usize = 64 << 10;
/// What is counted, in the order of the words.
pub const EVENTS: [&str; 12] = [
    "instructions",
    "cycles",
    "references",
    "l2-misses",
    "llc-references",
    "llc-misses",
    "memory-reads",
    "memory-writes",
    "row-hits",
    "row-conflicts",
    "locked",
    "shared-writes",
];
const WORDS: usize = BYTES / 8;
const UPDATES: usize = 6;
const NAME: core::ops::Range<usize> = 8..16;
const FIRST: usize = 64;
/// Words of a processor: a power of two, so that none shares a line with another.
const STRIDE: usize = 16;
const _: () = assert!(EVENTS.len() <= STRIDE);

/// The mapped file.
#[derive(Debug)]
pub struct Published {
    words: *const AtomicU64,
    vcpus: usize,
}

impl Published {
    /// Maps a file, which is made if there is none, and writes the head and zeros.
    ///
    /// # Errors
    /// Why not, with the file's name.
    pub fn open(path: &Path, machine: &str, vcpus: usize) -> Result<Self, String> {
        let most = (WORDS - FIRST) / STRIDE;
        if vcpus > most {
            return Err(format!(
                "{vcpus} processors have no room in {BYTES} bytes of counters; allowed: 1 to {most}"
            ));
        }
        let said = |e: std::io::Error| format!("argument counters={}: {e}", path.display());
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).map_err(said)?;
        file.set_len(BYTES as u64).map_err(said)?;
        // SAFETY: a new mapping of a file that is as long as it; the descriptor is open.
        let found = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if found == libc::MAP_FAILED {
            return Err(said(std::io::Error::last_os_error()));
        }
        let new = Self {
            words: found.cast(),
            vcpus,
        };
        for word in new.all() {
            word.store(0, Relaxed);
        }
        let head = [
            VERSION,
            vcpus as u64,
            EVENTS.len() as u64,
            STRIDE as u64,
            FIRST as u64,
        ];
        for (word, value) in new.all()[1..].iter().zip(head) {
            word.store(value, Relaxed);
        }
        // One byte is left for the 0 at the end.
        let mut name = [0u8; NAME.end * 8 - NAME.start * 8];
        let short = machine.len().min(name.len() - 1);
        name[..short].copy_from_slice(&machine.as_bytes()[..short]);
        for (word, bytes) in new.all()[NAME].iter().zip(name.chunks_exact(8)) {
            let value = bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
            word.store(value, Relaxed);
        }
        new.all()[0].store(MAGIC, Relaxed);
        Ok(new)
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: the mapping has so many words and lives as long as this does; others change
        // it as atomics are changed.
        unsafe { core::slice::from_raw_parts(self.words, WORDS) }
    }

    /// Writes what each processor has counted, in the order of [`EVENTS`].
    pub fn write(&self, counts: impl Iterator<Item = [u64; EVENTS.len()]>) {
        for (vcpu, counts) in counts.enumerate().take(self.vcpus) {
            let words = &self.all()[FIRST + vcpu * STRIDE..];
            for (word, count) in words.iter().zip(counts) {
                word.store(count, Relaxed);
            }
        }
        self.all()[UPDATES].fetch_add(1, Relaxed);
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, which nothing uses any more.
        unsafe { libc::munmap(self.words.cast_mut().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(path: &Path) -> Vec<u64> {
        let bytes = std::fs::read(path).expect("the file is there");
        let word = |b: &[u8]| b.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b));
        bytes.chunks_exact(8).map(word).collect()
    }

    #[test]
    fn the_file_says_what_it_holds() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("counters");
        let published = Published::open(&path, "w3540", 3).expect("it can be made");
        let mut found = words(&path);
        assert_eq!(found.len() * 8, BYTES);
        assert_eq!(found[..7], [MAGIC, VERSION, 3, 12, 16, 64, 0]);
        assert_eq!(found[8].to_le_bytes(), *b"w3540\0\0\0");
        assert!(found[9..].iter().all(|w| *w == 0));
        let counts = |vcpu: u64| core::array::from_fn(|event| 100 * vcpu + event as u64 + 1);
        published.write((0..3).map(counts));
        found = words(&path);
        assert_eq!(found[6], 1);
        assert_eq!(found[64..66], [1, 2]);
        assert_eq!(found[64 + 32..64 + 44], counts(2));
        assert_eq!(found[64 + 44..64 + 48], [0; 4]);
        // What was there before is gone.
        drop(published);
        let _again = Published::open(&path, &"long".repeat(40), 1).expect("it can be made");
        found = words(&path);
        assert_eq!((found[2], found[6], found[64]), (1, 0, 0));
        assert_eq!(found[15].to_le_bytes(), *b"longlon\0");
    }

    #[test]
    fn what_cannot_be_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let error = Published::open(folder.path(), "w3540", 1).expect_err("a folder is no file");
        assert!(error.starts_with("argument counters=/"), "{error}");
        let path = folder.path().join("counters");
        let error = Published::open(&path, "w3540", 509).expect_err("too many");
        assert!(error.contains("allowed: 1 to 508"), "{error}");
        assert!(!path.exists());
    }
}
