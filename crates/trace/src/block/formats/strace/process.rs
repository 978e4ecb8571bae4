//! Descriptors of the traced processes: who has which file open, and where in it they are.
//!
//! Three levels, as in the system: a process uses a *table* of descriptors, which threads share and
//! a fork copies; a descriptor points to an *open file*, which `dup` and a fork share, and with it
//! the offset.

mod guess;

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::super::super::request::FileKey;
use super::maps::Maps;
use crate::foreign::error::Complaint;
use guess::Guess;

/// Most descriptors and most processes at a time.
const MAX_LIVE: usize = 1 << 20;

/// What a descriptor leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A file on a disk.
    File(FileKey),
    /// Something else, or a file that is not wanted.
    Elsewhere,
    /// The log does not say.
    Unnamed,
}

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub what: What,
    pub offset: u64,
    /// Writes go to the end.
    pub append: bool,
    /// Requests pass the page cache by.
    pub direct: bool,
    /// Its opening was not seen.
    pub assumed: bool,
    /// Its offset is not known, taken as 0, and has not been used yet.
    pub begins_anywhere: bool,
    /// Another process got it by a fork.
    pub inherited: bool,
    /// Its path, if it is a directory.
    pub directory: Option<Box<[u8]>>,
}

impl Open {
    /// At its beginning, and seen to be opened.
    pub const fn begun(what: What) -> Self {
        Self {
            what,
            offset: 0,
            append: false,
            direct: false,
            assumed: false,
            begins_anywhere: false,
            inherited: false,
            directory: None,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    open: u64,
    close_on_exec: bool,
}

#[derive(Debug, Default)]
struct Table {
    descriptors: HashMap<u32, Descriptor>,
    /// A process that shares descriptors shares memory as well, as threads do.
    maps: Maps,
    users: u32,
}

#[derive(Debug)]
struct Process {
    table: u64,
    /// Key of its current directory in [`Processes::places`]; threads have the same key.
    place: u64,
    /// Who its parent is was guessed, or is not known.
    guess: Option<Guess>,
}

/// Where a process is, as far as that is known.
#[derive(Clone, Debug, Default)]
struct Place {
    /// Its current directory.
    directory: Option<Vec<u8>>,
    /// What it has for `/`, if that is another directory.
    root: Option<Vec<u8>>,
}

/// What a new process shares with its parent; it has copies of the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    pub descriptors: bool,
    pub directory: bool,
}

impl Shares {
    /// As threads do.
    pub const ALL: Self = Self {
        descriptors: true,
        directory: true,
    };
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    processes: HashMap<u32, Process>,
    tables: HashMap<u64, Table>,
    /// Where processes are, with the number of those that share it.
    places: HashMap<u64, (Place, u32)>,
    /// Open files, with the number of descriptors that point to each.
    open: HashMap<u64, (Open, u32)>,
    /// Number of the next table or open file.
    next: u64,
    /// Descriptors of all tables, and mappings.
    descriptors: usize,
    mappings: usize,
    /// Files without a name, which are there as long as they are open.
    nameless: BTreeSet<FileKey>,
    /// Those that nobody has open any more.
    gone: BTreeSet<FileKey>,
    /// The process that made the first call.
    first: Option<u32>,
    /// Another process has made one as well.
    several: bool,
}

impl Processes {
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
    }

    /// The process, if there is only one.
    pub fn only(&self) -> Option<u32> {
        let mut all = self.processes.keys();
        all.next().copied().filter(|_| all.next().is_none())
    }

    /// A process whose parent is not known.
    pub fn begin(&mut self, pid: u32) -> Result<(), Complaint> {
        self.room()?;
        let table = self.fresh();
        let begun = Table {
            users: 1,
            ..Table::default()
        };
        self.tables.insert(table, begun);
        let place = self.fresh();
        self.places.insert(place, (Place::default(), 1));
        let begun = Process {
            table,
            place,
            guess: Some(Guess::default()),
        };
        self.processes.insert(pid, begun);
        Ok(())
    }

    /// A child, which shares its parent's table and current directory, or gets copies.
    pub fn fork(&mut self, parent: u32, child: u32, shares: Shares) -> Result<(), Complaint> {
        self.room()?;
        let Some(from) = self.processes.get(&parent) else {
            return self.begin(child);
        };
        let (mut table, place) = (from.table, from.place);
        let place = self.enter(place, shares.directory);
        if shares.descriptors {
            if let Some(t) = self.tables.get_mut(&table) {
                t.users += 1;
            }
        } else {
            let copied = self.tables.get(&table).map_or(0, |t| t.descriptors.len());
            self.check(self.descriptors + copied)?;
            table = self.copy(table);
        }
        let forked = Process {
            table,
            place,
            guess: None,
        };
        self.processes.insert(child, forked);
        Ok(())
    }

    fn copy(&mut self, table: u64) -> u64 {
        let copied = self.tables.get(&table);
        let copied = copied.map(|t| (t.descriptors.clone(), t.maps.clone()));
        let (descriptors, maps) = copied.unwrap_or_default();
        self.mappings += maps.len();
        self.descriptors += descriptors.len();
        for descriptor in descriptors.values() {
            if let Some((open, users)) = self.open.get_mut(&descriptor.open) {
                *users += 1;
                open.inherited = true;
            }
        }
        let key = self.fresh();
        let copied = Table {
            descriptors,
            maps,
            users: 1,
        };
        self.tables.insert(key, copied);
        key
    }

    /// The process runs another program: it has a table of its own from now on, without what closes
    /// then.
    pub fn exec(&mut self, pid: u32) -> Result<(), Complaint> {
        self.unshare(pid)?;
        self.close_where(pid, |_, close_on_exec| close_on_exec);
        self.unmap(pid, 0..u64::MAX);
        if let Some(guess) = self.guess(pid) {
            guess.ran = true;
        }
        Ok(())
    }

    /// The process has a table of its own from now on.
    pub fn unshare(&mut self, pid: u32) -> Result<(), Complaint> {
        let table = self.processes.get(&pid).map(|p| p.table);
        let shared = table.and_then(|t| Some((t, self.tables.get(&t).filter(|t| t.users > 1)?)));
        let Some((table, shared)) = shared else {
            return Ok(());
        };
        self.check(self.descriptors + shared.descriptors.len())?;
        let own = self.copy(table);
        self.leave(table);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.table = own;
        }
        Ok(())
    }

    /// The process has a current directory of its own from now on.
    pub fn unshare_directory(&mut self, pid: u32) {
        let Some(shared) = self.processes.get(&pid).map(|p| p.place) else {
            return;
        };
        let own = self.enter(shared, false);
        self.leave_place(shared);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.place = own;
        }
    }

    /// One more process is in the directory of others, with them or by itself.
    fn enter(&mut self, place: u64, share: bool) -> u64 {
        let own = self.fresh();
        let Some((known, users)) = self.places.get_mut(&place) else {
            return own;
        };
        if share {
            *users += 1;
            return place;
        }
        let known = known.clone();
        self.places.insert(own, (known, 1));
        own
    }

    fn leave_place(&mut self, place: u64) {
        if let Some((_, users)) = self.places.get_mut(&place) {
            *users -= 1;
            if *users == 0 {
                self.places.remove(&place);
            }
        }
    }

    /// The process ends.
    pub fn end(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.leave(process.table);
            self.leave_place(process.place);
        }
    }

    fn leave(&mut self, table: u64) {
        let Some(t) = self.tables.get_mut(&table) else {
            return;
        };
        t.users -= 1;
        if t.users == 0 {
            let Table {
                descriptors, maps, ..
            } = self.tables.remove(&table).unwrap_or_default();
            self.mappings -= maps.len();
            descriptors.values().for_each(|d| self.release(d.open));
        }
    }

    fn release(&mut self, open: u64) {
        self.descriptors -= 1;
        let Some((_, users)) = self.open.get_mut(&open) else {
            return;
        };
        *users -= 1;
        if *users > 0 {
            return;
        }
        let closed = self.open.remove(&open).map(|(open, _)| open.what);
        if let Some(What::File(file)) = closed
            && self.nameless.contains(&file)
            && !self.is_open(file)
        {
            self.nameless.remove(&file);
            self.gone.insert(file);
        }
    }

    fn is_open(&self, file: FileKey) -> bool {
        let mut open = self.open.values();
        open.any(|(open, _)| open.what == What::File(file))
    }

    /// A file has lost its name. It is gone now, or when it is closed.
    pub fn unlink(&mut self, file: FileKey) {
        if self.is_open(file) {
            self.nameless.insert(file);
        } else {
            self.gone.insert(file);
        }
    }

    /// A file has a name, be it one that it did not have before.
    pub fn has_name(&mut self, file: FileKey) {
        self.nameless.remove(&file);
    }

    /// Files that are gone since this was asked last, in order.
    pub fn gone(&mut self) -> BTreeSet<FileKey> {
        std::mem::take(&mut self.gone)
    }

    /// A descriptor now points to a new open file.
    pub fn open(
        &mut self,
        pid: u32,
        fd: u32,
        file: Open,
        close_on_exec: bool,
    ) -> Result<(), Complaint> {
        self.room()?;
        let open = self.fresh();
        self.open.insert(open, (file, 0));
        self.point(pid, fd, open, close_on_exec);
        Ok(())
    }

    /// `to` points to what `from` points to; it is closed if that is nothing.
    pub fn duplicate(&mut self, pid: u32, from: u32, to: u32, close_on_exec: bool) {
        match self.descriptor(pid, from).map(|d| d.open) {
            None => self.close(pid, to),
            Some(_) if from == to => {}
            Some(open) => self.point(pid, to, open, close_on_exec),
        }
    }

    fn point(&mut self, pid: u32, fd: u32, open: u64, close_on_exec: bool) {
        if let Some((_, users)) = self.open.get_mut(&open) {
            *users += 1;
            self.descriptors += 1;
        }
        let descriptor = Descriptor {
            open,
            close_on_exec,
        };
        let before = self
            .table(pid)
            .and_then(|t| t.descriptors.insert(fd, descriptor));
        if let Some(before) = before {
            self.release(before.open);
        }
    }

    pub fn close(&mut self, pid: u32, fd: u32) {
        if let Some(gone) = self.table(pid).and_then(|t| t.descriptors.remove(&fd)) {
            self.release(gone.open);
        }
        if let Some(guess) = self.guess(pid) {
            guess.closed.insert(fd);
        }
    }

    /// Closes the descriptors that `which` picks, by number and whether they close on exec.
    pub fn close_where(&mut self, pid: u32, which: impl Fn(u32, bool) -> bool) {
        let mut gone = Vec::new();
        if let Some(table) = self.table(pid) {
            table.descriptors.retain(|fd, d| {
                let closes = which(*fd, d.close_on_exec);
                if closes {
                    gone.push(d.open);
                }
                !closes
            });
        }
        gone.into_iter().for_each(|open| self.release(open));
    }

    /// Says of the descriptors that `which` picks by number whether they close on exec.
    pub fn set_close_on_exec(&mut self, pid: u32, which: impl Fn(u32) -> bool, set: bool) {
        let descriptors = self.table(pid).into_iter().flat_map(|t| &mut t.descriptors);
        let picked = descriptors.filter(|(fd, _)| which(**fd));
        picked.for_each(|(_, d)| d.close_on_exec = set);
    }

    /// Addresses of the process show a file from `offset` on.
    pub fn map(
        &mut self,
        pid: u32,
        addresses: Range<u64>,
        file: FileKey,
        offset: u64,
    ) -> Result<(), Complaint> {
        self.check(self.mappings + 2)?;
        self.change_maps(pid, |maps| maps.put(addresses, file, offset));
        Ok(())
    }

    /// Addresses of the process show no file.
    pub fn unmap(&mut self, pid: u32, addresses: Range<u64>) {
        self.change_maps(pid, |maps| maps.take(addresses));
    }

    fn change_maps(&mut self, pid: u32, change: impl FnOnce(&mut Maps)) {
        if let Some(table) = self.table(pid) {
            let before = table.maps.len();
            change(&mut table.maps);
            let after = table.maps.len();
            self.mappings = self.mappings + after - before;
        }
    }

    /// The file that an address of the process shows, and where in it that is.
    pub fn mapped_at(&self, pid: u32, address: u64) -> Option<(FileKey, u64)> {
        let process = self.processes.get(&pid)?;
        self.tables.get(&process.table)?.maps.at(address)
    }

    /// What a descriptor points to.
    pub fn get(&mut self, pid: u32, fd: u32) -> Option<&mut Open> {
        let open = self.descriptor(pid, fd)?.open;
        self.open.get_mut(&open).map(|(file, _)| file)
    }

    /// The same to look only.
    pub fn seen(&self, pid: u32, fd: u32) -> Option<&Open> {
        let open = self.descriptor(pid, fd)?.open;
        self.open.get(&open).map(|(file, _)| file)
    }

    /// Whether the name that strace wrote behind a descriptor says more than is known. Files are often
    /// renamed while they are open, so the name of a file whose opening was seen says nothing; but a
    /// pipe is none, so its opening was not seen.
    pub fn needs_name(&self, pid: u32, fd: u32, is_path: bool) -> bool {
        let open = self.descriptor(pid, fd);
        let open = open.and_then(|d| self.open.get(&d.open));
        open.is_none_or(|(open, _)| match open.what {
            What::File(_) => open.assumed || !is_path,
            What::Elsewhere => open.assumed,
            What::Unnamed => true,
        })
    }

    /// Whether descriptors of several processes point to an open file whose opening was seen, and the log
    /// has calls of more than this one.
    pub fn is_shared_for_certain(&self, pid: u32, fd: u32) -> bool {
        let open = self.descriptor(pid, fd);
        let open = open.and_then(|d| self.open.get(&d.open));
        let shared = |open: &Open, users: u32| open.inherited && !open.assumed && users > 1;
        self.several && open.is_some_and(|(open, users)| shared(open, *users))
    }

    /// A process made a call.
    pub fn calls(&mut self, pid: u32) {
        let first = *self.first.get_or_insert(pid);
        self.several |= first != pid;
    }

    fn place(&self, pid: u32) -> Option<&Place> {
        let key = self.processes.get(&pid)?.place;
        Some(&self.places.get(&key)?.0)
    }

    pub fn directory(&self, pid: u32) -> Option<&[u8]> {
        self.place(pid)?.directory.as_deref()
    }

    /// What stands for `/` in paths of the process, if that is another directory.
    pub fn root(&self, pid: u32) -> Option<&[u8]> {
        self.place(pid)?.root.as_deref()
    }

    pub fn set_directory(&mut self, pid: u32, path: Vec<u8>) {
        if let Some(place) = self.place_mut(pid) {
            place.directory = Some(path);
        }
    }

    pub fn set_root(&mut self, pid: u32, path: Vec<u8>) {
        if let Some(place) = self.place_mut(pid) {
            place.root = Some(path);
        }
    }

    fn place_mut(&mut self, pid: u32) -> Option<&mut Place> {
        let key = self.processes.get(&pid)?.place;
        self.places.get_mut(&key).map(|(place, _)| place)
    }

    fn table(&mut self, pid: u32) -> Option<&mut Table> {
        let table = self.processes.get(&pid)?.table;
        self.tables.get_mut(&table)
    }

    fn descriptor(&self, pid: u32, fd: u32) -> Option<Descriptor> {
        let process = self.processes.get(&pid)?;
        self.tables
            .get(&process.table)?
            .descriptors
            .get(&fd)
            .copied()
    }

    const fn fresh(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn room(&self) -> Result<(), Complaint> {
        let most = self.descriptors.max(self.processes.len());
        self.check(most.max(self.mappings) + 1)
    }

    fn check(&self, live: usize) -> Result<(), Complaint> {
        match live <= MAX_LIVE {
            true => Ok(()),
            false => Err(Complaint::number(
                "the number of open descriptors, mappings or processes",
                live as u64,
                "up to 1048576 at a time",
            )),
        }
    }

    /// Recounts what points where.
    #[cfg(test)]
    pub fn validate(&self) {
        let mut pointers: HashMap<u64, u32> = HashMap::new();
        for table in self.tables.values() {
            for descriptor in table.descriptors.values() {
                *pointers.entry(descriptor.open).or_default() += 1;
            }
        }
        assert_eq!(pointers.len(), self.open.len());
        let descriptors: u32 = pointers.values().sum();
        assert_eq!(descriptors as usize, self.descriptors);
        let mappings: usize = self.tables.values().map(|t| t.maps.len()).sum();
        assert_eq!(mappings, self.mappings);
        for (key, (_, users)) in &self.open {
            assert_eq!(pointers.get(key), Some(users));
        }
        let mut users: HashMap<u64, u32> = HashMap::new();
        for process in self.processes.values() {
            *users.entry(process.table).or_default() += 1;
        }
        assert_eq!(users.len(), self.tables.len());
        for (key, table) in &self.tables {
            assert_eq!(users.get(key), Some(&table.users));
        }
        let mut inside: HashMap<u64, u32> = HashMap::new();
        for process in self.processes.values() {
            *inside.entry(process.place).or_default() += 1;
        }
        assert_eq!(inside.len(), self.places.len());
        for (key, (_, users)) in &self.places {
            assert_eq!(inside.get(key), Some(users));
        }
    }
}

#[cfg(test)]
mod tests;
