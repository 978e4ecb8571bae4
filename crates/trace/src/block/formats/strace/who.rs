//! Which process a line is about.
//!
//! With `-f` and `-o` every line says it. In a log of standard error a line has no process while
//! strace follows only one, and `[pid N]` while it follows several: the number of the process that strace
//! started appears late or never, and lines without a number are of whoever is left. That process
//! is called 0 here, from its first line to its last. In a file of `-ff` no line says the process, but
//! the end of the file's name does.

use std::collections::HashSet;

/// Most processes whose last line is awaited.
const MAX_LEAVING: usize = 1 << 16;
/// Endings of packed files.
const PACKED: [&str; 6] = ["gz", "bz2", "xz", "zst", "zstd", "lz4"];

/// What is known of the processes that lines name.
#[derive(Debug, Default)]
pub(super) struct Who {
    /// The process of lines that name none, as long as it lives.
    pub home: u32,
    /// Its number, as soon as a line says it.
    number: Option<u32>,
    /// Has a line without a process been seen?
    unnamed: bool,
    /// Who made the line before.
    last: u32,
    /// They have called `exit`, and only their end is to come.
    leaving: HashSet<u32>,
}

/// What the log says of the process that is to be found.
pub(super) struct Clues<'a> {
    /// A process that is known by its number, or the only one.
    pub knows: &'a dyn Fn(u32) -> bool,
    pub only: Option<u32>,
    /// Whether this line can be the next one of the process of lines that name none: it is not in
    /// the middle of another call.
    pub follows_home: &'a dyn Fn(u32) -> bool,
}

impl Who {
    /// Takes the process from the name of a file of `strace -ff -o`: `log.77`, packed or not.
    pub fn in_file(name: &str) -> Self {
        Self {
            home: named(name).map_or(0, |(_, pid)| pid),
            ..Self::default()
        }
    }

    /// The name of a file of `strace -ff -o` without its process.
    pub fn stem(name: &str) -> Option<&str> {
        named(name).map(|(stem, _)| stem)
    }

    /// The process of a line.
    pub fn resolve(&mut self, named: Option<u32>, clues: &Clues<'_>) -> u32 {
        let pid = match named {
            Some(pid) => self.known_as(pid, clues),
            None => self.of_unnamed(clues),
        };
        self.last = pid;
        pid
    }

    fn known_as(&mut self, pid: u32, clues: &Clues<'_>) -> u32 {
        if self.number == Some(pid) {
            return self.home;
        }
        let open = self.unnamed && self.number.is_none() && (clues.knows)(self.home);
        let new = !(clues.knows)(pid) && !self.leaving.contains(&pid);
        if open && new && (clues.follows_home)(self.home) {
            self.number = Some(pid);
            return self.home;
        }
        pid
    }

    fn of_unnamed(&mut self, clues: &Clues<'_>) -> u32 {
        if (clues.knows)(self.home) {
            self.unnamed = true;
            return self.home;
        }
        match clues.only {
            Some(pid) => pid,
            // Ends that were not printed (`-qq`).
            None if (clues.knows)(self.last) => self.last,
            None => {
                self.unnamed = true;
                self.home
            }
        }
    }

    /// A process has called `exit`: what comes is its last line, if it comes.
    pub fn leaves(&mut self, pid: u32) {
        if self.leaving.len() >= MAX_LEAVING {
            self.leaving.clear();
        }
        self.leaving.insert(pid);
    }

    /// Whether it has called `exit`.
    pub fn is_leaving(&self, pid: u32) -> bool {
        self.leaving.contains(&pid)
    }

    /// A process has made its last line, or another one with its number begins.
    pub fn has_left(&mut self, pid: u32) {
        self.leaving.remove(&pid);
        if pid == self.home {
            self.number = None;
            self.unnamed = false;
        }
    }
}

/// `log.77`, packed or not, in two parts.
fn named(name: &str) -> Option<(&str, u32)> {
    let unpacked = match name.rsplit_once('.') {
        Some((before, end)) if PACKED.contains(&end) => before,
        _ => name,
    };
    let (stem, number) = unpacked.rsplit_once('.')?;
    let digits = number.bytes().all(|b| b.is_ascii_digit());
    Some((stem, number.parse().ok().filter(|_| digits)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_may_end_in_a_process() {
        for (name, pid) in [
            ("log.77", 77),
            ("/a.1/log.77.gz", 77),
            ("log", 0),
            ("77", 0),
            ("log.txt", 0),
            ("a.77.log", 0),
            ("log.", 0),
            ("log.99999999999", 0),
        ] {
            assert_eq!(Who::in_file(name).home, pid, "{name}");
        }
    }

    fn clues<'a>(known: &'a dyn Fn(u32) -> bool, only: Option<u32>, follows: bool) -> Clues<'a> {
        Clues {
            knows: known,
            only,
            follows_home: if follows { &|_| true } else { &|_| false },
        }
    }

    #[test]
    fn the_first_process_is_the_one_that_no_fork_has_made() {
        let mut who = Who::default();
        assert_eq!(who.resolve(None, &clues(&|_| false, None, true)), 0);
        let both = |pid| pid == 0 || pid == 501;
        assert_eq!(who.resolve(Some(501), &clues(&both, None, true)), 501);
        // In the middle of a call of the first process another one can only be its child.
        assert_eq!(who.resolve(Some(502), &clues(&both, None, false)), 502);
        assert_eq!(who.resolve(Some(500), &clues(&both, None, true)), 0);
        assert_eq!(who.resolve(Some(503), &clues(&both, None, true)), 503);
        assert_eq!(who.resolve(None, &clues(&both, None, true)), 0);
    }

    #[test]
    fn lines_without_a_process_are_of_whoever_is_left() {
        let mut who = Who::default();
        assert_eq!(who.resolve(None, &clues(&|_| false, None, true)), 0);
        let child = |pid| pid == 501;
        assert_eq!(who.resolve(None, &clues(&child, Some(501), true)), 501);
        let children = |pid| pid == 501 || pid == 502;
        who.resolve(Some(502), &clues(&children, None, true));
        assert_eq!(who.resolve(None, &clues(&children, None, true)), 502);
    }
}
