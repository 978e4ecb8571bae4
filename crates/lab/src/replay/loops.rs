//! What closed loops run on: queries from traces, and files where a layout puts them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use piebald_hw::disk::Disk;
use piebald_os_model::file::{Extent, FileConfig, FileTable, Layout};
use piebald_sim::replay::{
    Batch, CallKind, CallStream, FileSide, InputSetup, Query, QueryRead, SpaceInfo,
};
use piebald_trace::block as trace;
use piebald_units::block::SECTORS_SHIFT;
use piebald_units::{Bytes, FileId, Lba};

use super::ReplayError;

/// A file that queries read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryFile {
    /// Its path, as the traces have it.
    pub path: String,
    /// Its length in pages.
    pub pages: u64,
}

/// Queries over the same files.
#[derive(Clone, Debug, Default)]
pub struct Queries {
    /// In the order of their traces.
    pub queries: Vec<Query>,
    /// By number: that of a [`FileId`].
    pub files: Vec<QueryFile>,
    numbers: HashMap<String, u64>,
}

impl Queries {
    /// Reads queries: the trace of each, and the size of its result.
    ///
    /// # Errors
    /// A trace cannot be read, or does something else than read files.
    pub fn read(traces: &[(PathBuf, Bytes)]) -> Result<Self, ReplayError> {
        let mut all = Self::default();
        for (path, result) in traces {
            all.add(path, *result)?;
        }
        Ok(all)
    }

    fn add(&mut self, path: &Path, result: Bytes) -> Result<(), ReplayError> {
        let setup = InputSetup {
            paths: vec![path.to_owned()],
            ..InputSetup::default()
        };
        let bad = |problem: &str| ReplayError::Choice {
            what: "query",
            value: path.display().to_string(),
            problem: problem.to_owned(),
        };
        let mut stream = CallStream::open(&setup)?;
        let (mut calls, mut batch) = (Vec::new(), Batch::default());
        while stream.next_batch(&mut batch)? {
            calls.append(&mut batch.calls);
        }
        if calls.iter().any(|c| c.kind != CallKind::Read) {
            return Err(bad("writes, maps or deletes; allowed: reads"));
        }
        stream.learn_sizes();
        let spaces = stream.spaces().iter().map(|s| self.number(s));
        let files: Option<Vec<FileId>> = spaces.collect();
        let files = files.ok_or_else(|| bad("reads what has no path; allowed: files"))?;
        let reads = calls.iter().map(|c| QueryRead {
            file: files[c.space.0 as usize],
            first: c.first,
            pages: c.pages,
        });
        self.queries.push(Query {
            reads: reads.collect(),
            result,
        });
        Ok(())
    }

    /// The number of a file, which is a new one if no query has read it.
    fn number(&mut self, space: &SpaceInfo) -> Option<FileId> {
        let path = space.name.as_ref()?;
        if let Some(&number) = self.numbers.get(path) {
            let file = &mut self.files[number as usize];
            file.pages = file.pages.max(space.pages);
            return Some(FileId(number));
        }
        let number = self.files.len() as u64;
        self.numbers.insert(path.clone(), number);
        self.files.push(QueryFile {
            path: path.clone(),
            pages: space.pages,
        });
        Some(FileId(number))
    }

    /// Pages that the queries read at least once.
    pub fn pages(&self) -> u64 {
        self.files.iter().map(|f| f.pages).sum()
    }

    /// The file side with these files, which lie where a layout says, moved by whole pages
    /// towards the end of the disk.
    ///
    /// # Errors
    /// The layout cannot be read, lacks a file or a part of one, or does not fit.
    pub fn on(
        &self,
        layout: &Path,
        shift_sectors: u64,
        config: FileConfig,
        disk: Disk,
    ) -> Result<FileSide, ReplayError> {
        let bad = |problem: String| ReplayError::Choice {
            what: "layout",
            value: layout.display().to_string(),
            problem,
        };
        let places = trace::Layout::open(layout).map_err(|e| bad(e.to_string()))?;
        let shift = shift_sectors >> SECTORS_SHIFT;
        let pages = disk.capacity_sectors() >> SECTORS_SHIFT;
        let end = places.end().saturating_add(shift);
        if end > pages {
            return Err(bad(format!(
                "the files end at page {end} of the disk, which has {pages}; allowed: a larger device, or a smaller shift"
            )));
        }
        let mut files = FileTable::new(Layout::Extents).map_err(|e| bad(e.to_string()))?;
        for (number, file) in self.files.iter().enumerate() {
            let found = places.extents(file.path.as_bytes());
            let extents: Vec<Extent> = found.iter().map(|e| moved(e, shift)).collect();
            let covered: u64 = extents.iter().map(|e| e.pages).sum();
            if covered < file.pages {
                return Err(bad(format!(
                    "{} has {covered} pages, of {} that are read; allowed: all",
                    file.path, file.pages
                )));
            }
            files
                .add_extents(FileId(number as u64), &extents)
                .map_err(|e| bad(e.to_string()))?;
        }
        Ok(FileSide {
            config,
            files,
            disk,
        })
    }
}

fn moved(extent: &trace::Extent, shift: u64) -> Extent {
    Extent {
        page: extent.logical,
        lba: Lba((extent.physical + shift) << SECTORS_SHIFT),
        pages: extent.pages,
    }
}

#[cfg(test)]
mod tests {
    use piebald_hw::disk::by_name;

    use super::*;

    const HEADER: &str =
        "# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages).\n";

    fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{e}"));
        path
    }

    fn two(folder: &Path) -> Queries {
        let one = format!("{HEADER}F 0 8192 a\nF 1 4097 b\nR 1 0 0 2\nR 1 1 1 1\n");
        let two = format!("{HEADER}F 0 4097 b\nF 1 1 c\nR 1 1 0 1\nR 1 0 0 2\n");
        let traces = [
            (write(folder, "1.fpt", &one), Bytes(10)),
            (write(folder, "2.fpt", &two), Bytes(20)),
        ];
        Queries::read(&traces).unwrap_or_else(|e| panic!("{e}"))
    }

    fn disk() -> Disk {
        let spec = by_name("wd400bb").unwrap_or_else(|e| panic!("{e}"));
        Disk::new(&spec).unwrap_or_else(|e| panic!("{e}"))
    }

    fn read(file: u64, first: u64, pages: u64) -> QueryRead {
        QueryRead {
            file: FileId(file),
            first,
            pages,
        }
    }

    #[test]
    fn queries_share_their_files_by_path() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let q = two(folder.path());
        let paths: Vec<_> = q.files.iter().map(|f| (f.path.as_str(), f.pages)).collect();
        assert_eq!(paths, [("a", 2), ("b", 2), ("c", 1)]);
        assert_eq!(q.queries[0].reads, [read(0, 0, 2), read(1, 1, 1)]);
        assert_eq!(q.queries[1].reads, [read(2, 0, 1), read(1, 0, 2)]);
        assert_eq!((q.queries[1].result, q.pages()), (Bytes(20), 5));
    }

    #[test]
    fn files_lie_where_the_layout_says_or_it_is_refused() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let q = two(folder.path());
        let layout = write(
            folder.path(),
            "l.layout",
            "a 0 10 2\nb 0 20 1\nb 1 30 1\nc 0 5 1\n",
        );
        let on = |q: &Queries, layout, shift| q.on(layout, shift, FileConfig::plain(), disk());
        let mut side = on(&q, &layout, 800).unwrap_or_else(|e| panic!("{e}"));
        let b = side.files.index(FileId(1)).unwrap_or_else(|| panic!("b"));
        assert_eq!(side.files.locate(b, 1), Lba((30 + 100) * 8));
        let error = |r: Result<FileSide, ReplayError>| r.err().map(|e| e.to_string());
        let far = error(on(&q, &layout, disk().capacity_sectors())).unwrap_or_default();
        assert!(far.contains("smaller shift"), "{far}");
        let short = write(folder.path(), "s.layout", "a 0 10 2\nb 0 20 1\nc 0 5 1\n");
        let lacks = error(on(&q, &short, 0)).unwrap_or_default();
        assert!(lacks.contains("b has 1 pages, of 2"), "{lacks}");
    }

    #[test]
    fn a_query_that_writes_is_refused() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let text = format!("{HEADER}F 0 8192 a\nW 1 0 0 2\n");
        let traces = [(write(folder.path(), "w.fpt", &text), Bytes(1))];
        let error = Queries::read(&traces).err().map(|e| e.to_string());
        assert!(error.is_some_and(|e| e.contains("allowed: reads")));
    }
}
