//! The files and disks that a trace names.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
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
    /// The file ends there, as far as the trace says: it was made so long, or was said to be. Else
    /// it is at least so long.
    pub(crate) is_end: bool,
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
    /// The paths of `live` in their order, as soon as something has been renamed, which may be a directory.
    ordered: Option<BTreeSet<Arc<[u8]>>>,
    /// Numbers of paths of those files that have not just one.
    paths: HashMap<FileKey, u32>,
    /// Bytes of the names in `list`, and of the paths in `live`.
    name_bytes: usize,
    live_bytes: usize,
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
        self.check(self.list.len() + 1, self.name_bytes)?;
        let path: Arc<[u8]> = path.into();
        self.list.push(FileInfo {
            path: path.clone(),
            size,
            is_end: size.is_some(),
        });
        if let Some(before) = self.put(path, key) {
            self.loses_last_path(before);
        }
        Ok(key)
    }

    /// Whether there is room for so many files, and for so many bytes of their names or paths.
    fn check(&self, files: usize, bytes: usize) -> Result<(), Complaint> {
        if files <= MAX_FILES && bytes <= MAX_NAME_BYTES {
            return Ok(());
        }
        Err(Complaint::number(
            "the number of files",
            files as u64,
            "up to 16777216 files with up to 1 GiB of paths",
        ))
    }

    /// Takes a path away. Gives the file that had it and has no other. What comes under this path later is
    /// new.
    pub(crate) fn remove(&mut self, path: &[u8]) -> Option<FileKey> {
        let key = self.take(path)?;
        self.loses_last_path(key).then_some(key)
    }

    /// A file that has just been added has no path that leads to it.
    pub(crate) fn forget_path(&mut self, key: FileKey) {
        let Some(path) = self.get(key).map(|info| info.path.clone()) else {
            return;
        };
        if self.find(&path) == Some(key) {
            self.take(&path);
            self.loses_last_path(key);
        }
    }

    /// A file gets one more path, which leads to no other file then.
    pub(crate) fn link(&mut self, key: FileKey, path: &[u8]) -> Result<(), Complaint> {
        self.check(self.list.len(), self.live_bytes + path.len())?;
        if let Some(before) = self.put(path.into(), key) {
            if before == key {
                return Ok(());
            }
            self.loses_last_path(before);
        }
        self.count_paths(key, |paths| paths + 1);
        Ok(())
    }

    /// Gives a file's path to another, which loses its own. Gives the file that had it before, if it has
    /// no other. It may be a directory: all paths below it change, too.
    pub(crate) fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<Option<FileKey>, Complaint> {
        self.rename_below(from, to)?;
        let Some(key) = self.find(from) else {
            return Ok(None);
        };
        // Two paths of one file stay as they are.
        if self.find(to) == Some(key) {
            return Ok(None);
        }
        self.check(self.list.len(), self.live_bytes + to.len())?;
        self.take(from);
        let before = self.put(to.into(), key);
        Ok(before.filter(|before| self.loses_last_path(*before)))
    }

    fn rename_below(&mut self, from: &[u8], to: &[u8]) -> Result<(), Complaint> {
        let live = &self.live;
        let ordered = self
            .ordered
            .get_or_insert_with(|| live.keys().cloned().collect());
        let start = [from, b"/"].concat();
        let range = (Bound::Included(&start[..]), Bound::Unbounded);
        let below = ordered.range::<[u8], _>(range);
        let below: Vec<Arc<[u8]>> = below
            .take_while(|path| path.starts_with(&start))
            .cloned()
            .collect();
        for path in below {
            self.check(self.list.len(), self.live_bytes + to.len())?;
            if let Some(key) = self.take(&path) {
                self.put([to, &path[from.len()..]].concat().into(), key);
            }
        }
        Ok(())
    }

    fn take(&mut self, path: &[u8]) -> Option<FileKey> {
        if let Some(ordered) = &mut self.ordered {
            ordered.remove(path);
        }
        let key = self.live.remove(path)?;
        self.live_bytes -= path.len();
        Some(key)
    }

    /// Lets a path lead to a file; gives the one to which it led.
    fn put(&mut self, path: Arc<[u8]>, key: FileKey) -> Option<FileKey> {
        if let Some(ordered) = &mut self.ordered {
            ordered.insert(path.clone());
        }
        let bytes = path.len();
        let before = self.live.insert(path, key);
        if before.is_none() {
            self.live_bytes += bytes;
        }
        before
    }

    /// A path of a file is gone. Was it the last one?
    fn loses_last_path(&mut self, key: FileKey) -> bool {
        self.count_paths(key, |paths| paths.saturating_sub(1)) == 0
    }

    fn count_paths(&mut self, key: FileKey, change: impl Fn(u32) -> u32) -> u32 {
        let paths = change(self.paths.get(&key).copied().unwrap_or(1));
        if paths == 1 {
            self.paths.remove(&key);
        } else {
            self.paths.insert(key, paths);
        }
        paths
    }

    pub(crate) fn info(&mut self, key: FileKey) -> Option<&mut FileInfo> {
        self.list.get_mut(key.0 as usize)
    }

    /// The file ends at `end`.
    pub(crate) fn ends(&mut self, key: FileKey, end: u64) {
        if let Some(info) = self.info(key) {
            (info.size, info.is_end) = (Some(end), true);
        }
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
        assert_eq!(files.rename(b"/a", b"/b").expect("room"), Some(b));
        assert_eq!(files.find(b"/b"), Some(a));
        assert_eq!(files.find(b"/a"), None);
        assert_eq!(files.rename(b"/b", b"/b").expect("room"), None);
        assert_eq!(files.find(b"/b"), Some(a));
    }

    #[test]
    fn files_below_a_renamed_directory_stay_themselves() {
        let mut files = Files::default();
        let paths: [&[u8]; 4] = [b"/a/x", b"/a/b/y", b"/ab", b"/a"];
        let [x, y, beside, opened] = paths.map(|p| files.intern(p).expect("a file"));
        assert_eq!(files.rename(b"/a", b"/c").expect("room"), None);
        assert_eq!(files.find(b"/c"), Some(opened));
        assert_eq!(
            [files.find(b"/c/x"), files.find(b"/c/b/y")],
            [Some(x), Some(y)]
        );
        assert_eq!(
            [files.find(b"/a/x"), files.find(b"/ab")],
            [None, Some(beside)]
        );
        // Files that come later are known by their order, too.
        let z = files.intern(b"/c/z").expect("a file");
        files.rename(b"/c/b", b"/b").expect("room");
        files.rename(b"/c", b"/a").expect("room");
        assert_eq!(
            [files.find(b"/a/z"), files.find(b"/b/y")],
            [Some(z), Some(y)]
        );
        assert_eq!(files.find(b"/a/x"), Some(x));
    }

    #[test]
    fn a_file_is_gone_with_its_last_path() {
        let mut files = Files::default();
        let a = files.intern(b"/a").expect("a file");
        let other = files.intern(b"/other").expect("a file");
        files.link(a, b"/b").expect("room");
        files.link(a, b"/c").expect("room");
        assert_eq!(files.find(b"/b"), Some(a));
        assert_eq!(files.remove(b"/a"), None);
        // A rename between two of its paths does nothing.
        assert_eq!(files.rename(b"/b", b"/c").expect("room"), None);
        assert_eq!([files.find(b"/b"), files.find(b"/c")], [Some(a); 2]);
        assert_eq!(files.rename(b"/other", b"/b").expect("room"), None);
        assert_eq!(files.find(b"/b"), Some(other));
        assert_eq!(files.remove(b"/c"), Some(a));
    }

    #[test]
    fn files_that_are_renamed_and_linked_again_and_again_need_no_more_room() {
        let mut files = Files::default();
        let a = files.intern(b"/a").expect("a file");
        for _ in 0..1000 {
            files.rename(b"/a", b"/longer").expect("room");
            files.link(a, b"/b").expect("room");
            assert_eq!(files.remove(b"/b"), None);
            files.rename(b"/longer", b"/a").expect("room");
        }
        assert_eq!((files.name_bytes, files.live_bytes), (2, 2));
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
