//! Where files lie on the disk.
//!
//! Traces rarely say it, and what a replacement policy can gain from sequentiality
//! depends on it, so every result names the rule by [`Layout::describe`].

use std::fmt;

use piebald_units::{FileId, Lba, block::SECTORS_SHIFT};
use thiserror::Error;

use super::{key::Key, scatter::Permutation, table::FastMap};

/// Pages that a file may have: 2^40, which is 4 PiB.
pub const MAX_FILE_PAGES: u64 = 1 << 40;
/// Files that a table may ever hold: 2^23.
pub const MAX_FILES: u64 = 1 << 23;

/// The rule by which files get their place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Every file comes with its extents, as FIEMAP or a file system image tell.
    Extents,
    /// Every file begins on a slot of its own, by its number: sector
    /// `(file * slot_sectors + page * 8) mod capacity_sectors`. The rule of the
    /// simulator of DULO's time (AccuSim) with slots of 2048 sectors. Files longer
    /// than a slot run into the next file's slot, as they do there.
    Slots {
        /// Size of a slot: 2048 sectors are 1 MiB.
        slot_sectors: u64,
        /// Size of the disk. The part of a page at its end is not used.
        capacity_sectors: u64,
    },
    /// One file after another, in the order in which they are added.
    Packed {
        /// Where the first begins.
        start: Lba,
        /// Pages left free between two files.
        gap_pages: u64,
    },
    /// A file is the disk: page `n` is its `n`th page. If a size is given, pages
    /// beyond it begin again at its start.
    Device {
        /// Pages of the disk.
        wrap_pages: Option<u64>,
    },
    /// Blocks without address lie scattered: the block touched first gets the first
    /// place of a random permutation of the disk's pages, and so on.
    Scatter {
        /// Chooses the permutation.
        seed: u64,
        /// Pages of the disk, at least as many as there are blocks.
        capacity_pages: u64,
    },
    /// Blocks without address lie in the order in which they are first touched.
    FirstTouch {
        /// Where the first lies.
        start: Lba,
    },
}

impl Layout {
    /// AccuSim's rule on the disk that DULO simulated (Seagate ST39102LW).
    pub const ACCUSIM: Self = Self::Slots {
        slot_sectors: 2048,
        capacity_sectors: 17_783_240,
    };

    /// The rule in one sentence, for people who read results.
    pub fn describe(&self) -> String {
        match *self {
            Self::Extents => "files lie where their extents say".into(),
            Self::Slots {
                slot_sectors,
                capacity_sectors,
            } => format!(
                "every file begins at sector (number * {slot_sectors}) mod {capacity_sectors} and is contiguous"
            ),
            Self::Packed { start, gap_pages } => format!(
                "files lie one after another from sector {} with {gap_pages} free pages between them",
                start.0
            ),
            Self::Device { wrap_pages: None } => "addresses are those of the disk".into(),
            Self::Device {
                wrap_pages: Some(n),
            } => {
                format!("addresses are those of the disk, modulo its {n} pages")
            }
            Self::Scatter {
                seed,
                capacity_pages,
            } => format!("blocks lie at random on {capacity_pages} pages (seed {seed})"),
            Self::FirstTouch { start } => format!(
                "blocks lie in the order of their first use from sector {}",
                start.0
            ),
        }
    }

    fn check(&self) -> Result<(), LayoutError> {
        let page = 1 << SECTORS_SHIFT;
        let at_least = |field, value, low| match value >= low {
            true => Ok(()),
            false => Err(LayoutError::Config { field, value, low }),
        };
        match *self {
            Self::Slots {
                slot_sectors,
                capacity_sectors,
            } => {
                at_least("slot_sectors", slot_sectors, page)?;
                at_least("capacity_sectors", capacity_sectors, page)
            }
            Self::Device {
                wrap_pages: Some(pages),
            } => at_least("wrap_pages", pages, 1),
            Self::Scatter { capacity_pages, .. } => at_least("capacity_pages", capacity_pages, 1),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe())
    }
}

/// Pages of a file that follow one another on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First page in the file.
    pub page: u64,
    /// Where it lies.
    pub lba: Lba,
    /// Number of pages.
    pub pages: u64,
}

/// What is wrong with a layout or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// A field of the rule is out of range.
    #[error("layout: {field} is {value}, must be at least {low}")]
    Config {
        /// Its name.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The smallest value allowed.
        low: u64,
    },
    /// The file is there already.
    #[error("{0} is added twice")]
    Twice(FileId),
    /// There is no such file.
    #[error("{0} is not known")]
    Unknown(FileId),
    /// The file is too long.
    #[error("{file} has {pages} pages, at most 2^40 are allowed")]
    TooLong {
        /// Which.
        file: FileId,
        /// Its length.
        pages: u64,
    },
    /// There are too many files.
    #[error("more than 2^23 files")]
    TooMany,
    /// The rule asks for extents, or those given leave pages out or overlap.
    #[error("{file}: page {page} lies in no extent or in two")]
    Hole {
        /// Which.
        file: FileId,
        /// The first page without one place.
        page: u64,
    },
}

/// Number of a file in a table. It is never used again, unlike a [`FileId`], which
/// may return after the file was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileIndex(pub(super) u32);

#[derive(Clone, Debug)]
struct File {
    id: FileId,
    pages: u64,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// By the rule alone.
    Rule,
    /// From here on, contiguous.
    From(Lba),
    /// Sorted by page, without holes.
    Extents(Vec<Extent>),
}

/// All files, their sizes and their places.
#[derive(Clone, Debug)]
pub struct FileTable {
    layout: Layout,
    files: Vec<File>,
    by_id: FastMap<FileId, FileIndex>,
    /// Where the next packed file begins.
    packed_end: Lba,
    /// Number of a block in order of first touch.
    touched: FastMap<Key, u64>,
    scatter: Option<Permutation>,
    highest: Lba,
}

impl FileTable {
    /// An empty table.
    ///
    /// # Errors
    /// [`LayoutError::Config`].
    pub fn new(layout: Layout) -> Result<Self, LayoutError> {
        layout.check()?;
        let scatter = match layout {
            Layout::Scatter {
                seed,
                capacity_pages,
            } => Some(Permutation::new(seed, capacity_pages)),
            _ => None,
        };
        let packed_end = match layout {
            Layout::Packed { start, .. } => start,
            _ => Lba(0),
        };
        Ok(Self {
            layout,
            files: Vec::new(),
            by_id: FastMap::default(),
            packed_end,
            touched: FastMap::default(),
            scatter,
            highest: Lba(0),
        })
    }

    /// The rule.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Adds a file that the rule places.
    ///
    /// # Errors
    /// The file is there already or too long, or the rule asks for extents.
    pub fn add(&mut self, id: FileId, pages: u64) -> Result<FileIndex, LayoutError> {
        let place = match self.layout {
            Layout::Extents if pages > 0 => return Err(LayoutError::Hole { file: id, page: 0 }),
            Layout::Extents => Place::Extents(Vec::new()),
            Layout::Packed { gap_pages, .. } => {
                self.check_new(id, pages)?;
                let start = self.packed_end;
                self.packed_end = behind(start, pages.saturating_add(gap_pages));
                Place::From(start)
            }
            _ => Place::Rule,
        };
        self.push(id, pages, place)
    }

    /// Adds a file with known extents, whatever the rule is for others.
    ///
    /// # Errors
    /// The file is there already or too long, or the extents do not cover pages
    /// 0 to the end of the file exactly once.
    pub fn add_extents(
        &mut self,
        id: FileId,
        extents: &[Extent],
    ) -> Result<FileIndex, LayoutError> {
        let mut sorted = extents.to_vec();
        sorted.sort_by_key(|e| e.page);
        let mut pages = 0u64;
        for e in &sorted {
            if e.page != pages {
                return Err(LayoutError::Hole {
                    file: id,
                    page: pages.min(e.page),
                });
            }
            pages = pages.saturating_add(e.pages);
        }
        self.push(id, pages, Place::Extents(sorted))
    }

    fn check_new(&self, id: FileId, pages: u64) -> Result<(), LayoutError> {
        if self.by_id.contains_key(&id) {
            return Err(LayoutError::Twice(id));
        }
        if pages > MAX_FILE_PAGES {
            return Err(LayoutError::TooLong { file: id, pages });
        }
        if self.files.len() as u64 >= MAX_FILES {
            return Err(LayoutError::TooMany);
        }
        Ok(())
    }

    fn push(&mut self, id: FileId, pages: u64, place: Place) -> Result<FileIndex, LayoutError> {
        self.check_new(id, pages)?;
        let index = FileIndex(self.files.len() as u32);
        self.files.push(File { id, pages, place });
        self.by_id.insert(id, index);
        Ok(index)
    }

    /// Makes a file at least `pages` long. What is added lies where the rule says:
    /// behind the file if the rule gives it a place of its own, else behind all
    /// others.
    ///
    /// # Errors
    /// The file is too long, or the rule asks for extents.
    pub fn grow(&mut self, file: FileIndex, pages: u64) -> Result<(), LayoutError> {
        let Some(f) = self.files.get_mut(file.0 as usize) else {
            return Ok(());
        };
        if pages <= f.pages {
            return Ok(());
        }
        if pages > MAX_FILE_PAGES {
            return Err(LayoutError::TooLong { file: f.id, pages });
        }
        let old = f.pages;
        if let Layout::Extents = self.layout {
            return Err(LayoutError::Hole {
                file: f.id,
                page: old,
            });
        }
        f.pages = pages;
        if let Layout::Packed { gap_pages, .. } = self.layout {
            let start = self.packed_end;
            self.packed_end = behind(start, (pages - old).saturating_add(gap_pages));
            f.place.append(old, start, pages - old);
        }
        Ok(())
    }

    /// Makes a file at most `pages` long. What is cut off has no place any more; if
    /// the file grows again, the rule places the new pages.
    pub fn cut(&mut self, file: FileIndex, pages: u64) {
        if let Some(f) = self.files.get_mut(file.0 as usize) {
            f.pages = f.pages.min(pages);
            f.place.cut(pages);
        }
    }

    /// Forgets a file. Its name may be added again; it is another file then.
    ///
    /// # Errors
    /// [`LayoutError::Unknown`].
    pub fn remove(&mut self, id: FileId) -> Result<FileIndex, LayoutError> {
        let index = self.by_id.remove(&id).ok_or(LayoutError::Unknown(id))?;
        let file = &mut self.files[index.0 as usize];
        (file.pages, file.place) = (0, Place::Rule);
        Ok(index)
    }

    /// Number of a file.
    pub fn index(&self, id: FileId) -> Option<FileIndex> {
        self.by_id.get(&id).copied()
    }

    /// Name of a file.
    pub fn id(&self, file: FileIndex) -> Option<FileId> {
        self.files.get(file.0 as usize).map(|f| f.id)
    }

    /// Length in pages; 0 for a file that was removed.
    pub fn pages(&self, file: FileIndex) -> u64 {
        self.files.get(file.0 as usize).map_or(0, |f| f.pages)
    }

    /// Files that were ever added.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// No file was ever added.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Where a page lies. Needs `&mut`, since two rules give places at first touch.
    pub fn locate(&mut self, file: FileIndex, page: u64) -> Lba {
        let lba = self.place_of(file, page);
        self.highest = self.highest.max(behind(lba, 1));
        lba
    }

    /// The end of the highest page that was ever located: a disk must be as large.
    pub fn highest(&self) -> Lba {
        self.highest
    }

    fn place_of(&mut self, file: FileIndex, page: u64) -> Lba {
        match self.files.get(file.0 as usize).map(|f| (&f.place, f.id)) {
            Some((Place::From(start), _)) => behind(*start, page),
            Some((Place::Extents(extents), _)) => in_extents(extents, page),
            Some((Place::Rule, id)) => self.by_rule(file, id, page),
            None => Lba(0),
        }
    }

    fn by_rule(&mut self, file: FileIndex, id: FileId, page: u64) -> Lba {
        match self.layout {
            Layout::Slots {
                slot_sectors,
                capacity_sectors,
            } => {
                let slots = u128::from(id.0) * u128::from(slot_sectors);
                let sector = slots + (u128::from(page) << SECTORS_SHIFT);
                let whole = capacity_sectors >> SECTORS_SHIFT << SECTORS_SHIFT;
                Lba((sector % u128::from(whole)) as u64)
            }
            Layout::Device {
                wrap_pages: Some(pages),
            } => behind(Lba(0), page % pages),
            Layout::Scatter { capacity_pages, .. } => {
                let nth = self.touch(file, page) % capacity_pages;
                behind(Lba(0), self.scatter.as_ref().map_or(nth, |s| s.place(nth)))
            }
            Layout::FirstTouch { start } => behind(start, self.touch(file, page)),
            _ => behind(Lba(0), page),
        }
    }

    /// How many blocks were touched before this one.
    fn touch(&mut self, file: FileIndex, page: u64) -> u64 {
        let next = self.touched.len() as u64;
        *self.touched.entry(Key::file(file, page)).or_insert(next)
    }
}

impl Place {
    fn append(&mut self, page: u64, lba: Lba, pages: u64) {
        let last = Extent { page, lba, pages };
        match self {
            Self::Extents(extents) => extents.push(last),
            Self::From(start) if page > 0 => {
                let first = Extent {
                    page: 0,
                    lba: *start,
                    pages: page,
                };
                *self = Self::Extents(vec![first, last]);
            }
            _ => *self = Self::From(lba),
        }
    }
}

impl Place {
    fn cut(&mut self, pages: u64) {
        if let Self::Extents(extents) = self {
            extents.retain(|e| e.page < pages);
            if let Some(last) = extents.last_mut() {
                last.pages = last.pages.min(pages - last.page);
            }
        }
    }
}

/// The sector `pages` pages behind `lba`.
fn behind(lba: Lba, pages: u64) -> Lba {
    Lba(lba
        .0
        .saturating_add(pages.saturating_mul(1 << SECTORS_SHIFT)))
}

/// Extents are sorted and without holes.
fn in_extents(extents: &[Extent], page: u64) -> Lba {
    let n = extents.partition_point(|e| e.page <= page);
    match n.checked_sub(1).and_then(|i| extents.get(i)) {
        Some(e) => behind(e.lba, page - e.page),
        None => Lba(0),
    }
}
