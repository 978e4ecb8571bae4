//! Calls of a kernel that owns the frames: page by page, with its memory lent.

use piebald_policy::contract::replacement::Replacement;
use piebald_units::{FileId, Picos, TaskId, block::BlockPort};

use super::{
    super::{
        error::FileError,
        key::Key,
        layout::{FileIndex, MAX_FILE_PAGES, MAX_FILES},
        memory::{Content, Memory},
        span::Span,
    },
    FileHost, Step,
    call::{Call, Kind},
};

/// One page of what a program asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A page of a read. Readahead sees the whole read.
    Read {
        /// The file.
        file: FileId,
        /// What the program reads.
        span: Span,
        /// The page of the file that it has come to.
        page: u64,
    },
    /// A page of a write. The file grows to hold the page.
    Write {
        /// The file.
        file: FileId,
        /// What the program writes.
        span: Span,
        /// The page of the file that it has come to.
        page: u64,
    },
    /// A page of a file that is touched through a mapping. Behind the end of the file
    /// nothing happens.
    Mapped {
        /// The file.
        file: FileId,
        /// Its page.
        page: u64,
        /// It is stored to.
        write: bool,
    },
    /// A page of programs' memory. How pages are numbered is the caller's matter.
    Anon {
        /// A space, below 2^23.
        space: u32,
        /// A page in it, below 2^40.
        page: u64,
        /// It is stored to.
        write: bool,
    },
}

/// What is no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// A file.
    File(FileId),
    /// The pages of a file from a number on.
    Tail(FileId, u64),
    /// A page of programs' memory, and its swap slot: space and page.
    Anon(u32, u64),
}

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Carries out a request for one page, which then lies in `mem`.
    ///
    /// # Errors
    /// The file is not known, the page is beyond 2^40, the task waits in another call,
    /// or an event is due before `now`.
    pub fn call<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: TaskId,
        request: &Request,
        now: Picos,
    ) -> Result<Step, FileError> {
        self.check_call(task, now)?;
        let call = self.prepare(request)?;
        self.start(mem, task, call, now)
    }

    fn prepare(&mut self, request: &Request) -> Result<Call, FileError> {
        let beyond = |page| match page < MAX_FILE_PAGES {
            true => Ok(()),
            false => Err(FileError::PageRange(page)),
        };
        Ok(match *request {
            Request::Read { file, span, page } => {
                let index = self.known(file)?;
                let end = span.end_page().min(self.files.pages(index));
                Call::new(Kind::Read, index.0, span.first_page(), end, span).only(page)
            }
            Request::Write { file, span, page } => {
                let index = self.known(file)?;
                let old_pages = self.files.pages(index);
                self.files.grow(index, page.saturating_add(1))?;
                let (first, end) = (span.first_page(), span.end_page());
                Call::new(Kind::Write { old_pages }, index.0, first, end, span).only(page)
            }
            Request::Mapped { file, page, write } => {
                let FileIndex(index) = self.known(file)?;
                let end = page.saturating_add(1);
                Call::new(
                    Kind::Mapped { write },
                    index,
                    page,
                    end,
                    Span::pages(page, 1),
                )
            }
            Request::Anon { space, page, write } => {
                beyond(page)?;
                if u64::from(space) >= MAX_FILES {
                    return Err(FileError::TooManyTasks);
                }
                let span = Span::pages(page, 1);
                Call::new(Kind::Anon { write }, space, page, page + 1, span)
            }
        })
    }

    /// Something is no more: its pages leave memory unwritten.
    ///
    /// # Errors
    /// The file is not known, or an event is due before `now`.
    pub fn remove_in<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        what: Removal,
        now: Picos,
    ) -> Result<(), FileError> {
        self.check_time(now)?;
        match what {
            Removal::File(file) => self.remove(mem, file, now),
            Removal::Tail(file, pages) => self.cut(mem, file, pages, now),
            Removal::Anon(space, page) => {
                let key = Key::anon(space, page);
                self.drop_pages(mem, vec![key], now);
                if let Some(swap) = &mut self.swap {
                    swap.release(key);
                }
                Ok(())
            }
        }
    }

    /// Makes up to `pages` pages leave that can go at once; answers how many frames are
    /// free by that. Others may be on their way to the disk.
    ///
    /// # Errors
    /// An event is due before `now`.
    pub fn shrink<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        pages: u32,
        now: Picos,
    ) -> Result<u32, FileError> {
        self.check_time(now)?;
        self.clock = now;
        for gone in 0..pages {
            if !self.relieve(mem, now) {
                self.queue.unplug(now);
                return Ok(gone);
            }
        }
        Ok(pages)
    }

    /// Calls that wait for memory try again at `now`, because there may be some.
    /// Answers whether there are any.
    ///
    /// # Errors
    /// An event is due before `now`.
    pub fn nudge(&mut self, now: Picos) -> Result<bool, FileError> {
        self.check_time(now)?;
        let any = !self.memory_waiters.is_empty();
        self.try_again(now);
        Ok(any)
    }

    /// Makes a file known and at least so many pages long.
    ///
    /// # Errors
    /// The file cannot be so long.
    pub fn ensure_file(&mut self, file: FileId, pages: u64) -> Result<(), FileError> {
        match self.files.index(file) {
            Some(index) => self.files.grow(index, pages)?,
            None => {
                self.files.add(file, pages)?;
            }
        }
        Ok(())
    }

    /// Is the page in memory, or on its way there?
    pub fn holds(&self, content: Content) -> bool {
        let key = match content {
            Content::Anon { space, page } => Some(Key::anon(space, page)),
            Content::File { file, page } => self.files.index(file).map(|f| Key::file(f, page)),
        };
        key.is_some_and(|key| self.cache.find(key).is_some())
    }
}
