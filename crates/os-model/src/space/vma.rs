//! Which addresses are mapped to what: the ordered map of areas.

use std::collections::BTreeMap;

use piebald_units::{FileId, Vpn};

/// What holds the pages of a shared or file mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Object {
    /// The page cache of a file.
    File(FileId),
    /// Anonymous memory that several processes share, by a running number.
    SharedAnon(u64),
}

/// One page of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectPage {
    /// The object.
    pub object: Object,
    /// Page index in it.
    pub index: u64,
}

/// A mapped range of addresses with one kind of content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Area {
    /// First page.
    pub first: Vpn,
    /// First page beyond.
    pub end: Vpn,
    /// What lies behind the first page; `None` = private anonymous memory.
    pub behind: Option<ObjectPage>,
    /// Stores reach the object.
    pub shared: bool,
    /// Made because a reference hit no area.
    pub implicit: bool,
}

impl Area {
    /// The object's page behind a page of the area.
    pub fn page_behind(&self, vpn: Vpn) -> Option<ObjectPage> {
        let b = self.behind?;
        Some(ObjectPage {
            object: b.object,
            index: b.index + (vpn.0 - self.first.0),
        })
    }

    /// The part of it from `first` to `end`.
    fn part(&self, first: Vpn, end: Vpn) -> Self {
        Self {
            first,
            end,
            behind: self.page_behind(first),
            ..*self
        }
    }

    fn continues_as(&self, next: &Self) -> bool {
        let objects = match (self.behind, next.behind) {
            (None, None) => true,
            (Some(_), Some(b)) => self.page_behind(next.first) == Some(b),
            _ => false,
        };
        self.end == next.first
            && objects
            && self.shared == next.shared
            && self.implicit == next.implicit
    }
}

/// The areas of an address space, by first page; they never overlap, and
/// neighbours with continuing content are one area.
#[derive(Clone, Default)]
pub(crate) struct Areas(BTreeMap<Vpn, Area>);

impl Areas {
    pub(crate) fn find(&self, vpn: Vpn) -> Option<&Area> {
        let (_, area) = self.0.range(..=vpn).next_back()?;
        (vpn < area.end).then_some(area)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Area> {
        self.0.values()
    }

    /// Adds an area to a range that is free, joining it with its neighbours.
    pub(crate) fn insert(&mut self, mut area: Area) {
        if let Some((_, before)) = self.0.range(..area.first).next_back()
            && before.continues_as(&area)
        {
            let before = *before;
            self.0.remove(&before.first);
            area = Area {
                end: area.end,
                ..before
            };
        }
        if let Some(after) = self.0.get(&area.end).copied()
            && area.continues_as(&after)
        {
            self.0.remove(&after.first);
            area.end = after.end;
        }
        self.0.insert(area.first, area);
    }

    /// Removes a range, cutting areas at its ends; returns the removed parts.
    pub(crate) fn remove(&mut self, first: Vpn, end: Vpn) -> Vec<Area> {
        let mut hit: Vec<Area> = self.0.range(first..end).map(|(_, a)| *a).collect();
        if let Some((_, a)) = self.0.range(..first).next_back()
            && a.end > first
        {
            hit.insert(0, *a);
        }
        let mut out = Vec::with_capacity(hit.len());
        for a in hit {
            self.0.remove(&a.first);
            if a.first < first {
                self.0.insert(a.first, a.part(a.first, first));
            }
            if a.end > end {
                self.0.insert(end, a.part(end, a.end));
            }
            out.push(a.part(a.first.max(first), a.end.min(end)));
        }
        out
    }
}
