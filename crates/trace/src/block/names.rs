//! The files and disks that a trace names.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use super::request::FileKey;
use crate::foreign::error::Complaint;

/// Most names of files that a trace may have, and of disks.
pub const MAX_FILES: usize = 1 << 24;
/// See [`MAX_FILES`].
pub const MAX_DEVICES: usize = 1 << 16;
/// Bytes that all names of a trace may have together.
pub const MAX_NAME_BYTES: usize = 1 << 30;

/// A file of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    path: Arc<[u8]>,
    /// Size in bytes as far as the trace says. It may be the size at the beginning, at the end, or
    /// the largest offset seen so far, as the format's description says.
    pub size: Option<u64>,
}

impl FileInfo {
    /// The path as the trace has it; bytes that are no UTF-8 are replaced.
    pub fn path(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.path)
    }

    /// The path's bytes.
    pub fn path_bytes(&self) -> &[u8] {
        &self.path
    }
}

/// Files of a trace in order of their first appearance. The table grows while the trace is read.
#[derive(Clone, Debug, Default)]
pub struct Files {
    list: Vec<FileInfo>,
    /// Where a path leads now: a removed or renamed file keeps its entry in `list` only.
    live: HashMap<Arc<[u8]>, FileKey>,
    name_bytes: usize,
}

impl Files {
    /// Number of files seen so far.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// No file was seen so far.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A file; `None` if the trace has no such file so far.
    pub fn get(&self, key: FileKey) -> Option<&FileInfo> {
        self.list.get(key.0 as usize)
    }

    /// Every file, in order of key.
    pub fn iter(&self) -> impl Iterator<Item = (FileKey, &FileInfo)> {
        self.list
            .iter()
            .enumerate()
            .map(|(n, info)| (FileKey(n as u32), info))
    }

    /// The file that has this path now.
    pub fn find(&self, path: &[u8]) -> Option<FileKey> {
        self.live.get(path).copied()
    }

    /// The file with this path, which is new if there is none.
    pub(crate) fn intern(&mut self, path: &[u8]) -> Result<FileKey, Complaint> {
        match self.live.get(path) {
            Some(key) => Ok(*key),
            None => self.add(path, None),
        }
    }

    /// A new file, which takes the path over.
    pub(crate) fn add(&mut self, path: &[u8], size: Option<u64>) -> Result<FileKey, Complaint> {
        let key = FileKey(self.list.len() as u32);
        self.name_bytes += path.len();
        if self.list.len() >= MAX_FILES || self.name_bytes > MAX_NAME_BYTES {
            return Err(Complaint::number(
                "the number of files",
                self.list.len() as u64 + 1,
                "up to 16777216 files with up to 1 GiB of paths",
            ));
        }
        let path: Arc<[u8]> = path.into();
        self.live.insert(path.clone(), key);
        self.list.push(FileInfo { path, size });
        Ok(key)
    }

    /// Takes the path from its file, if it has one. What comes under this path later is new.
    pub(crate) fn remove(&mut self, path: &[u8]) -> Option<FileKey> {
        self.live.remove(path)
    }

    /// Gives a file's path to another, which loses its own. Gives the file that had it before.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Option<FileKey> {
        let key = self.live.remove(from)?;
        self.live.insert(to.into(), key).filter(|old| *old != key)
    }

    pub(crate) fn info(&mut self, key: FileKey) -> Option<&mut FileInfo> {
        self.list.get_mut(key.0 as usize)
    }

    /// A request reaches up to `end`, so the file is at least so long.
    pub(crate) fn grow(&mut self, key: FileKey, end: u64) {
        if let Some(info) = self.info(key) {
            info.size = Some(info.size.map_or(end, |size| size.max(end)));
        }
    }
}

/// Names of disks, in formats that name them instead of numbering them.
#[derive(Clone, Debug, Default)]
pub struct Devices {
    list: Vec<Arc<[u8]>>,
    keys: HashMap<Arc<[u8]>, u32>,
    /// Name of the last request's disk, which is most often the next one's too.
    last: u32,
}

impl Devices {
    /// The name of a disk; `None` where disks have only numbers.
    pub fn name(&self, device: u32) -> Option<Cow<'_, str>> {
        let name = self.list.get(device as usize)?;
        Some(String::from_utf8_lossy(name))
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// There are no names.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn intern(&mut self, name: &[u8]) -> Result<u32, Complaint> {
        let last = self.list.get(self.last as usize);
        if last.is_some_and(|l| **l == *name) {
            return Ok(self.last);
        }
        if let Some(&key) = self.keys.get(name) {
            self.last = key;
            return Ok(key);
        }
        let key = self.list.len() as u32;
        if self.list.len() >= MAX_DEVICES {
            return Err(Complaint::number(
                "the number of disks",
                u64::from(key) + 1,
                "up to 65536",
            ));
        }
        let name: Arc<[u8]> = name.into();
        self.list.push(name.clone());
        self.keys.insert(name, key);
        self.last = key;
        Ok(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_path_stands_for_a_new_file_later() {
        let mut files = Files::default();
        let first = files.intern(b"/a").expect("a file");
        assert_eq!(files.intern(b"/a").expect("a file"), first);
        assert_eq!(files.remove(b"/a"), Some(first));
        let second = files.intern(b"/a").expect("a file");
        assert_ne!(first, second);
        assert_eq!(files.len(), 2);
        assert_eq!(files.find(b"/a"), Some(second));
    }

    #[test]
    fn a_renamed_file_stays_itself_and_replaces_what_was_there() {
        let mut files = Files::default();
        let a = files.intern(b"/a").expect("a file");
        let b = files.intern(b"/b").expect("a file");
        assert_eq!(files.rename(b"/a", b"/b"), Some(b));
        assert_eq!(files.find(b"/b"), Some(a));
        assert_eq!(files.find(b"/a"), None);
        assert_eq!(files.rename(b"/b", b"/b"), None);
        assert_eq!(files.find(b"/b"), Some(a));
    }

    #[test]
    fn there_is_an_end_to_disks() {
        let mut devices = Devices::default();
        for n in 0..MAX_DEVICES {
            let key = devices.intern(n.to_string().as_bytes()).expect("a disk");
            assert_eq!(key as usize, n);
        }
        assert!(devices.intern(b"one more").is_err());
        assert_eq!(devices.intern(b"7").expect("known"), 7);
    }
}
