//! Dirty pages of files, by file and page, and since when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use piebald_units::Picos;

use super::{
    key::Key,
    layout::{FileIndex, MAX_FILE_PAGES},
};

/// Dirty pages of files and what is to be done about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirty {
    pages: BTreeSet<Key>,
    /// Since when a file has dirty pages, and how many.
    files: BTreeMap<u32, (Picos, u64)>,
    /// Pages being written back.
    pub under_way: u64,
    /// Writing goes on until less is dirty.
    pub flushing: bool,
    /// Files whose pages are old.
    expired: VecDeque<u32>,
    cursor: Key,
}

impl Dirty {
    pub fn len(&self) -> u64 {
        self.pages.len() as u64
    }

    pub fn contains(&self, key: Key) -> bool {
        self.pages.contains(&key)
    }

    pub fn add(&mut self, key: Key, now: Picos) {
        if self.pages.insert(key) {
            self.files.entry(key.owner()).or_insert((now, 0)).1 += 1;
        }
    }

    pub fn remove(&mut self, key: Key) {
        if !self.pages.remove(&key) {
            return;
        }
        if let Some((_, pages)) = self.files.get_mut(&key.owner()) {
            *pages -= 1;
            if *pages == 0 {
                self.files.remove(&key.owner());
            }
        }
    }

    /// Looks for files that have been dirty for `age`.
    pub fn expire(&mut self, age: Picos, now: Picos) {
        let old = |since: Picos| now.since(since) >= age;
        let files = self.files.iter().filter(|(_, (since, _))| old(*since));
        self.expired = files.map(|(&file, _)| file).collect();
    }

    /// The page to write next, if one should be, that `free` accepts: expired files
    /// first, then by file and page from where the last one was.
    pub fn next(&mut self, free: impl Fn(Key) -> bool) -> Option<Key> {
        while let Some(&file) = self.expired.front() {
            if let Some(key) = self.of_file(file).find(|&k| free(k)) {
                return Some(key);
            }
            self.expired.pop_front();
        }
        if !self.flushing {
            return None;
        }
        let from_cursor = self.pages.range(self.cursor..);
        let around = from_cursor.chain(self.pages.range(..self.cursor)).copied();
        let found = around.into_iter().find(|&k| free(k))?;
        self.cursor = found;
        Some(found)
    }

    fn of_file(&self, file: u32) -> impl Iterator<Item = Key> {
        let first = Key::file(FileIndex(file), 0);
        let last = Key::file(FileIndex(file), MAX_FILE_PAGES - 1);
        self.pages.range(first..=last).copied()
    }

    pub fn validate(&self) -> Result<(), &'static str> {
        let mut counts = BTreeMap::new();
        for key in &self.pages {
            *counts.entry(key.owner()).or_insert(0u64) += 1;
        }
        let same = counts.len() == self.files.len()
            && counts
                .iter()
                .all(|(f, n)| self.files.get(f).is_some_and(|e| e.1 == *n));
        same.then_some(()).ok_or("dirty pages are counted by file")
    }

    pub fn iter(&self) -> impl Iterator<Item = Key> {
        self.pages.iter().copied()
    }
}
