//! Processes that appear before the log says who their parents are.
//!
//! A child's first lines may stand before the end of its parent's `fork`. Two processes may be in the
//! middle of one, so that the child may be of either, or none is, because strace was told to print only
//! calls that succeed and prints them when they end (`-z`). What the child inherits is then guessed, and
//! set right when a `fork` has returned its number.

use std::collections::{HashMap, HashSet};

use super::{Complaint, Descriptor, Processes, Shares};

/// What was guessed about a process, and what it did since that matters if the guess is wrong.
#[derive(Debug, Default)]
pub(super) struct Guess {
    parent: Option<u32>,
    /// It uses that parent's table.
    share: bool,
    /// It is in that parent's directory, or has begun in it.
    share_directory: bool,
    directory: Option<Vec<u8>>,
    /// Open files by descriptor, as that parent had them.
    inherited: HashMap<u32, u64>,
    pub closed: HashSet<u32>,
    /// It runs another program.
    pub ran: bool,
}

impl Processes {
    /// A child whose parent is probably this one.
    pub fn guess_fork(&mut self, parent: u32, child: u32, shares: Shares) -> Result<(), Complaint> {
        self.fork(parent, child, shares)?;
        let inherited = match self.table(parent) {
            Some(table) if !shares.descriptors => {
                let all = table.descriptors.iter();
                all.map(|(fd, d)| (*fd, d.open)).collect()
            }
            _ => HashMap::new(),
        };
        let directory = self.directory(parent).map(<[u8]>::to_vec);
        if let Some(process) = self.processes.get_mut(&child) {
            process.guess = Some(Guess {
                parent: Some(parent),
                share: shares.descriptors,
                share_directory: shares.directory,
                directory,
                inherited,
                ..Guess::default()
            });
        }
        Ok(())
    }

    /// A `fork` of `parent` has returned the number of a process that is known. If that process has a
    /// parent already, it has ended unseen.
    pub fn fork_known(&mut self, parent: u32, child: u32, shares: Shares) -> Result<(), Complaint> {
        if self.guess(child).is_some() {
            return self.settle(parent, child, shares);
        }
        self.end(child);
        self.fork(parent, child, shares)
    }

    fn settle(&mut self, parent: u32, child: u32, shares: Shares) -> Result<(), Complaint> {
        let guess = self.processes.get_mut(&child).and_then(|c| c.guess.take());
        let Some(guess) = guess.filter(|g| g.parent != Some(parent)) else {
            return Ok(());
        };
        let Some(from) = self.processes.get(&parent) else {
            return Ok(());
        };
        let (table, place) = (from.table, from.place);
        self.disinherit(child, &guess)?;
        let own = self.descriptors_of(child);
        if shares.descriptors {
            own.into_iter()
                .for_each(|(fd, d)| self.share_open(parent, fd, d));
            self.join(child, table);
        } else {
            let all = self.descriptors_of(parent);
            self.check(self.descriptors + all.len())?;
            for (fd, descriptor) in all {
                let taken = own.get(&fd).is_some_and(|d| self.is_certain(d));
                let gone = guess.closed.contains(&fd) || guess.ran && descriptor.close_on_exec;
                if !taken && !gone {
                    self.share_open(child, fd, descriptor);
                }
            }
        }
        // What the child itself has said of its directory is known better.
        if guess.share_directory || self.directory(child) == guess.directory.as_deref() {
            self.join_place(child, place, shares.directory);
        }
        Ok(())
    }

    pub(super) fn guess(&mut self, pid: u32) -> Option<&mut Guess> {
        self.processes.get_mut(&pid)?.guess.as_mut()
    }

    /// Takes away what came from the wrong parent.
    fn disinherit(&mut self, child: u32, guess: &Guess) -> Result<(), Complaint> {
        if guess.share {
            self.unshare(child)?;
            self.close_where(child, |_, _| true);
            return Ok(());
        }
        for (fd, open) in &guess.inherited {
            if self.descriptor(child, *fd).is_some_and(|d| d.open == *open) {
                self.close(child, *fd);
            }
        }
        Ok(())
    }

    fn descriptors_of(&mut self, pid: u32) -> HashMap<u32, Descriptor> {
        let table = self.table(pid);
        table.map(|t| t.descriptors.clone()).unwrap_or_default()
    }

    fn is_certain(&self, descriptor: &Descriptor) -> bool {
        let open = self.open.get(&descriptor.open);
        open.is_some_and(|(open, _)| !open.assumed)
    }

    /// The process uses a table from now on, instead of its own.
    fn join(&mut self, pid: u32, table: u64) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let own = std::mem::replace(&mut process.table, table);
        if let Some(joined) = self.tables.get_mut(&table) {
            joined.users += 1;
        }
        self.leave(own);
    }

    /// The process is where others are from now on, with them or by itself.
    fn join_place(&mut self, pid: u32, place: u64, share: bool) {
        let joined = self.enter(place, share);
        if let Some(process) = self.processes.get_mut(&pid) {
            let own = std::mem::replace(&mut process.place, joined);
            self.leave_place(own);
        }
    }

    fn share_open(&mut self, pid: u32, fd: u32, descriptor: Descriptor) {
        if self.open.contains_key(&descriptor.open) {
            self.point(pid, fd, descriptor.open, descriptor.close_on_exec);
        }
    }
}
