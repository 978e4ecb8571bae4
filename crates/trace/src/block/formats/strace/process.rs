//! Descriptors of the traced processes: who has which file open, and where in it they are.
//!
//! Three levels, as in the system: a process uses a *table* of descriptors, which threads share and
//! a fork copies; a descriptor points to an *open file*, which `dup` and a fork share, and with it
//! the offset.

use std::collections::HashMap;

use super::super::super::request::FileKey;
use crate::foreign::error::Complaint;

/// Most descriptors and most processes at a time.
const MAX_LIVE: usize = 1 << 20;

/// An open file.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// `None` if it is not a file on a disk, or one that is not wanted.
    pub file: Option<FileKey>,
    pub offset: u64,
    /// Writes go to the end.
    pub append: bool,
    /// Its opening was not seen.
    pub assumed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    open: u64,
    close_on_exec: bool,
}

#[derive(Debug, Default)]
struct Table {
    descriptors: HashMap<u32, Descriptor>,
    users: u32,
}

#[derive(Debug)]
struct Process {
    table: u64,
    directory: Option<Vec<u8>>,
}

/// All processes.
#[derive(Debug, Default)]
pub(super) struct Processes {
    processes: HashMap<u32, Process>,
    tables: HashMap<u64, Table>,
    /// Open files, with the number of descriptors that point to each.
    open: HashMap<u64, (Open, u32)>,
    /// Number of the next table or open file.
    next: u64,
    /// Descriptors of all tables.
    descriptors: usize,
}

impl Processes {
    pub fn knows(&self, pid: u32) -> bool {
        self.processes.contains_key(&pid)
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
        let directory = None;
        self.processes.insert(pid, Process { table, directory });
        Ok(())
    }

    /// A child, which shares its parent's table or gets a copy.
    pub fn fork(&mut self, parent: u32, child: u32, share: bool) -> Result<(), Complaint> {
        self.room()?;
        let Some(from) = self.processes.get(&parent) else {
            return self.begin(child);
        };
        let (mut table, directory) = (from.table, from.directory.clone());
        if share {
            if let Some(t) = self.tables.get_mut(&table) {
                t.users += 1;
            }
        } else {
            let copied = self.tables.get(&table).map_or(0, |t| t.descriptors.len());
            self.check(self.descriptors + copied)?;
            table = self.copy(table);
        }
        self.processes.insert(child, Process { table, directory });
        Ok(())
    }

    fn copy(&mut self, table: u64) -> u64 {
        let descriptors = self.tables.get(&table).map(|t| t.descriptors.clone());
        let descriptors = descriptors.unwrap_or_default();
        self.descriptors += descriptors.len();
        for descriptor in descriptors.values() {
            if let Some((_, users)) = self.open.get_mut(&descriptor.open) {
                *users += 1;
            }
        }
        let key = self.fresh();
        let copied = Table {
            descriptors,
            users: 1,
        };
        self.tables.insert(key, copied);
        key
    }

    /// The process runs another program: it has a table of its own from now on, without what closes
    /// then.
    pub fn exec(&mut self, pid: u32) {
        let Some(table) = self.processes.get(&pid).map(|p| p.table) else {
            return;
        };
        if self.tables.get(&table).is_some_and(|t| t.users > 1) {
            let own = self.copy(table);
            self.leave(table);
            if let Some(process) = self.processes.get_mut(&pid) {
                process.table = own;
            }
        }
        self.close_where(pid, |_, close_on_exec| close_on_exec);
    }

    /// The process ends.
    pub fn end(&mut self, pid: u32) {
        if let Some(process) = self.processes.remove(&pid) {
            self.leave(process.table);
        }
    }

    fn leave(&mut self, table: u64) {
        let Some(t) = self.tables.get_mut(&table) else {
            return;
        };
        t.users -= 1;
        if t.users == 0 {
            let descriptors = self.tables.remove(&table).unwrap_or_default().descriptors;
            descriptors.values().for_each(|d| self.release(d.open));
        }
    }

    fn release(&mut self, open: u64) {
        self.descriptors -= 1;
        let Some((_, users)) = self.open.get_mut(&open) else {
            return;
        };
        *users -= 1;
        if *users == 0 {
            self.open.remove(&open);
        }
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

    pub fn set_close_on_exec(&mut self, pid: u32, fd: u32, set: bool) {
        let table = self.table(pid);
        if let Some(d) = table.and_then(|t| t.descriptors.get_mut(&fd)) {
            d.close_on_exec = set;
        }
    }

    /// What a descriptor points to.
    pub fn get(&mut self, pid: u32, fd: u32) -> Option<&mut Open> {
        let open = self.descriptor(pid, fd)?.open;
        self.open.get_mut(&open).map(|(file, _)| file)
    }

    /// Whether the descriptor points to something whose opening was seen.
    pub fn saw_opening(&self, pid: u32, fd: u32) -> bool {
        let open = self.descriptor(pid, fd);
        let open = open.and_then(|d| self.open.get(&d.open));
        open.is_some_and(|(file, _)| !file.assumed)
    }

    pub fn directory(&self, pid: u32) -> Option<&[u8]> {
        self.processes.get(&pid)?.directory.as_deref()
    }

    pub fn set_directory(&mut self, pid: u32, path: Vec<u8>) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.directory = Some(path);
        }
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
        self.check(self.descriptors.max(self.processes.len()) + 1)
    }

    fn check(&self, live: usize) -> Result<(), Complaint> {
        match live <= MAX_LIVE {
            true => Ok(()),
            false => Err(Complaint::number(
                "the number of open descriptors or processes",
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(offset: u64) -> Open {
        Open {
            file: None,
            offset,
            append: false,
            assumed: false,
        }
    }

    #[test]
    fn a_fork_shares_offsets_but_not_descriptors() {
        let mut p = Processes::default();
        p.begin(1).expect("room");
        p.open(1, 3, at(0), false).expect("room");
        p.fork(1, 2, false).expect("room");
        p.get(2, 3).expect("inherited").offset = 100;
        assert_eq!(p.get(1, 3).expect("open").offset, 100);
        p.close(1, 3);
        assert!(p.get(1, 3).is_none());
        assert_eq!(p.get(2, 3).expect("still open").offset, 100);
        p.validate();
    }

    #[test]
    fn threads_share_descriptors_until_one_runs_another_program() {
        let mut p = Processes::default();
        p.begin(1).expect("room");
        p.fork(1, 2, true).expect("room");
        p.open(2, 3, at(7), true).expect("room");
        assert_eq!(p.get(1, 3).expect("shared").offset, 7);
        p.exec(2);
        assert!(p.get(2, 3).is_none());
        assert!(p.get(1, 3).is_some());
        p.validate();
    }

    #[test]
    fn random_lives_of_processes_keep_the_counts() {
        let mut p = Processes::default();
        let mut state = 0x5eed_u64;
        let mut random = |n: u32| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as u32 % n
        };
        for _ in 0..4000 {
            let (pid, other, fd, to) = (random(6), random(6), random(5), random(5));
            match random(9) {
                0 if !p.knows(pid) => p.begin(pid).expect("room"),
                1 if !p.knows(other) && p.knows(pid) => {
                    p.fork(pid, other, fd % 2 == 0).expect("room");
                }
                2 => p.end(pid),
                3 => p.exec(pid),
                4 | 5 if p.knows(pid) => p.open(pid, fd, at(0), to % 2 == 0).expect("room"),
                6 => p.duplicate(pid, fd, to, false),
                7 => p.close(pid, fd),
                _ => p.set_close_on_exec(pid, fd, true),
            }
            p.validate();
        }
        (0..6).for_each(|pid| p.end(pid));
        assert!(p.open.is_empty() && p.tables.is_empty());
    }
}
