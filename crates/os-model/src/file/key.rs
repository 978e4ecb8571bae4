//! The name of a page, in one word.

use piebald_policy::contract::replacement::PageName;

use super::layout::{FileIndex, MAX_FILE_PAGES, MAX_FILES};

/// A page of a file or of a program's memory: bit 63 tells which, 23 bits whose,
/// 40 bits the page. Order: files first, by file and page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key(u64);

const PAGE_BITS: u32 = MAX_FILE_PAGES.trailing_zeros();
const ANON: u64 = MAX_FILES << PAGE_BITS;

impl Key {
    pub const fn file(file: FileIndex, page: u64) -> Self {
        Self((file.0 as u64) << PAGE_BITS | page & (MAX_FILE_PAGES - 1))
    }

    /// Page of the anonymous memory of the `space`th task.
    pub const fn anon(space: u32, page: u64) -> Self {
        Self(ANON | Self::file(FileIndex(space), page).0)
    }

    pub const fn is_anon(self) -> bool {
        self.0 & ANON != 0
    }

    /// The file, or the task of an anonymous page.
    pub const fn owner(self) -> u32 {
        ((self.0 & !ANON) >> PAGE_BITS) as u32
    }

    /// What a replacement policy knows the page by.
    pub const fn name(self) -> PageName {
        PageName(self.0)
    }

    /// The name of the next page of the same owner; wraps at the highest page.
    pub const fn next(self) -> Self {
        let page = (self.page() + 1) & (MAX_FILE_PAGES - 1);
        Self(self.0 & !(MAX_FILE_PAGES - 1) | page)
    }

    /// The name of the page before it, if there is one.
    pub const fn before(self) -> Option<Self> {
        match self.page() {
            0 => None,
            _ => Some(Self(self.0 - 1)),
        }
    }

    pub const fn page(self) -> u64 {
        self.0 & (MAX_FILE_PAGES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_back_what_it_was_made_of() {
        for owner in [0, 1, (MAX_FILES - 1) as u32] {
            for page in [0, 1, MAX_FILE_PAGES - 1] {
                let (f, a) = (Key::file(FileIndex(owner), page), Key::anon(owner, page));
                assert_eq!((f.is_anon(), f.owner(), f.page()), (false, owner, page));
                assert_eq!((a.is_anon(), a.owner(), a.page()), (true, owner, page));
                assert!(f < a);
                let back = f.before().map(Key::next);
                assert_eq!(back, (page > 0).then_some(f));
            }
        }
    }
}
