//! PostMark (Katcher 1997), with SRM-buffer's settings (its section 4.3): a pool of
//! files, on which transactions are made.
//!
//! Set-up creates `files` files of `low` to `high` bytes; with `there` they exist already, as an earlier run
//! has left them. One iteration is one
//! transaction: a read of a whole file or an append of up to what is missing to
//! `high`, then a creation or a deletion, each on a file drawn uniformly.
//! `read` and `create` are PostMark's biases: of ten, so many reads and so many
//! creations. SRM-buffer: 1,000 files of 128 to 384 KiB (32,000 in its figure
//! 15), about 20 % reads, half creations. A pool without files only creates.
//!
//! Data go through a stdio buffer, as PostMark's default `buffering` has it: `call`
//! bytes per system call, one `copy` for 32 B of them (5 instructions, a load and a
//! store) between that buffer and the program's own, of 64 KiB. Without it there is no copy, and
//! hardly a reference. Block `transact`,
//! 400 instructions and four loads of the table's entry (from memory): names, lists and random
//! numbers. Word w of any file holds w.

use super::{Kernel, WrongResult};
use crate::memory::{Array, Block, File, Shape, Tape};
use crate::random::Random;
use crate::spec::{Param, Spec, Unit, Values};

const FILES: usize = 0;
const LOW: usize = 1;
const HIGH: usize = 2;
const READ: usize = 3;
const CREATE: usize = 4;
const CALL: usize = 5;
const THERE: usize = 6;
const BUFFERING: usize = 7;
const OWN: u64 = 64 << 10;
const PIECE: u64 = 32;

static SPEC: Spec = Spec {
    name: "postmark",
    about: "PostMark's transactions on a pool of files (SRM-buffer's settings)",
    params: &[
        Param::count("files", "files of the pool at first", 1000, 1, 1 << 17),
        bytes("low", "least bytes of a file", 128 << 10, 512),
        bytes("high", "most bytes of a file", 384 << 10, 512),
        Param::count("read", "reads of ten reads and appends", 2, 0, 10),
        Param::count(
            "create",
            "creations of ten creations and deletions",
            5,
            0,
            10,
        ),
        bytes("call", "bytes of a read or write call", 4096, 512),
        Param::count(
            "there",
            "1: the pool is there, set-up makes nothing",
            0,
            0,
            1,
        ),
        Param::count("buffering", "1: through a stdio buffer", 1, 0, 1),
    ],
};

const fn bytes(key: &'static str, about: &'static str, default: u64, min: u64) -> Param {
    Param {
        key,
        unit: Unit::Bytes,
        default,
        min,
        max: 1 << 20,
        pow2: false,
        about,
    }
}

/// PostMark.
pub(super) struct PostMark;

struct Pool {
    files: Vec<File>,
    /// Files ever created.
    created: u64,
    deleted: u64,
    /// Bytes of all files, as the transactions count them.
    bytes: u64,
}

struct Mail {
    transact: Block,
    copy: Block,
    table: Array<[u64; 8]>,
    stdio: Array<u64>,
    own: Array<u64>,
    call: u64,
    buffering: bool,
    sizes: [u64; 2],
    random: Random,
    pool: Pool,
}

impl Kernel for PostMark {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn check(&self, values: &Values) -> Result<(), String> {
        let [low, high, call] = [LOW, HIGH, CALL].map(|p| values.get(p));
        match low <= high && call % PIECE == 0 {
            true => Ok(()),
            false => Err(format!(
                "low = {low} B, high = {high} B, call = {call} B; allowed: low at most high, call a \
                 multiple of {PIECE} B"
            )),
        }
    }

    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult> {
        let files = values.get(FILES);
        let call = values.get(CALL);
        let copy = tape.block(Shape::new(5).load(0, 32).store(1, 32));
        let transact = [60, 61, 62, 63].iter();
        let transact = transact.fold(Shape::new(400), |s, &i| s.load(i, 8));
        let mut mail = Mail {
            transact: tape.block(transact),
            copy,
            // Deletions and creations keep the pool near its first size.
            table: tape.map(vec![[0; 8]; 2 * files as usize], 64),
            stdio: tape.map(vec![0; (call / 8) as usize], 8),
            own: tape.map(vec![0; (OWN / 8) as usize], 8),
            call,
            buffering: values.get(BUFFERING) == 1,
            sizes: [LOW, HIGH].map(|p| values.get(p)),
            random: Random::new(seed),
            pool: Pool {
                files: Vec::new(),
                created: 0,
                deleted: 0,
                bytes: 0,
            },
        };
        for _ in 0..files {
            match values.get(THERE) {
                0 => mail.create(tape),
                _ => mail.find(tape),
            }
        }
        tape.ready();
        while tape.again() {
            mail.transaction(tape, values.get(READ), values.get(CREATE))?;
            mail.pool.check()?;
        }
        Ok(())
    }
}

impl Mail {
    fn transaction(&mut self, t: &mut Tape<'_>, read: u64, create: u64) -> Result<(), WrongResult> {
        if let Some(i) = self.choose(t) {
            match self.random.below(10) < read {
                true => self.read(t, i)?,
                false => self.append(t, i),
            }
        }
        let creates = self.random.below(10) < create;
        match self.choose(t) {
            Some(i) if !creates => self.delete(t, i),
            _ => self.create(t),
        }
        Ok(())
    }

    /// A file of the pool, unless it is empty.
    fn choose(&mut self, tape: &mut Tape<'_>) -> Option<usize> {
        let n = self.pool.files.len() as u64;
        let i = self.random.below(n.max(1)) as usize;
        tape.enter(self.transact);
        for slot in 0..4 {
            let entry = i % self.table.len();
            self.table.touch(tape, slot, entry, 8 * u64::from(slot));
        }
        (n > 0).then_some(i)
    }

    fn read(&mut self, tape: &mut Tape<'_>, i: usize) -> Result<(), WrongResult> {
        let size = self.pool.files[i].size();
        let mut sum = 0u64;
        tape.reopen(&mut self.pool.files[i]);
        for at in (0..size).step_by(self.call as usize) {
            let len = self.call.min(size - at);
            tape.read(&self.pool.files[i], at, len, self.stdio.addr(0));
            for (w, word) in self.stdio.raw_mut().iter_mut().enumerate() {
                *word = at / 8 + w as u64;
            }
            self.copy(tape, at, len, true);
            sum = self.stdio.raw()[..(len / 8) as usize]
                .iter()
                .fold(sum, |s, &w| s.wrapping_add(w));
        }
        tape.close(&self.pool.files[i]);
        check_sum(size, self.call, sum)
    }

    fn append(&mut self, tape: &mut Tape<'_>, i: usize) {
        let size = self.pool.files[i].size();
        if size < self.sizes[1] {
            let more = 1 + self.random.below(self.sizes[1] - size);
            tape.reopen(&mut self.pool.files[i]);
            self.write(tape, i, more);
            tape.close(&self.pool.files[i]);
        }
    }

    fn create(&mut self, tape: &mut Tape<'_>) {
        let len = self.len();
        let i = self.open(tape, 0);
        self.write(tape, i, len);
        tape.close(&self.pool.files[i]);
    }

    /// A file that was made before.
    fn find(&mut self, tape: &mut Tape<'_>) {
        let len = self.len();
        let i = self.open(tape, len);
        self.pool.bytes += len;
        tape.close(&self.pool.files[i]);
    }

    /// Bytes of a further file.
    fn len(&mut self) -> u64 {
        let [low, high] = self.sizes;
        low + self.random.below(high - low + 1)
    }

    /// A further file of the pool, and its place there.
    fn open(&mut self, tape: &mut Tape<'_>, len: u64) -> usize {
        let number = self.pool.created;
        let file = tape.open(&format!("builtin/postmark/{number}"), len);
        self.pool.created += 1;
        self.pool.files.push(file);
        self.pool.files.len() - 1
    }

    fn delete(&mut self, tape: &mut Tape<'_>, i: usize) {
        let file = self.pool.files.swap_remove(i);
        self.pool.bytes -= file.size();
        self.pool.deleted += 1;
        tape.remove(&file);
    }

    /// Adds `len` bytes at the end of a file.
    fn write(&mut self, tape: &mut Tape<'_>, i: usize, len: u64) {
        let start = self.pool.files[i].size();
        for at in (0..len).step_by(self.call as usize) {
            let piece = self.call.min(len - at);
            self.copy(tape, at, piece, false);
            let from = self.stdio.addr(0);
            tape.write(&mut self.pool.files[i], start + at, piece, from);
        }
        self.pool.bytes += len;
    }

    /// Between the stdio buffer and the program's own, of which byte `at` is next.
    fn copy(&mut self, tape: &mut Tape<'_>, at: u64, len: u64, reading: bool) {
        if !self.buffering {
            return;
        }
        for piece in 0..len.div_ceil(PIECE) {
            let own = ((at + piece * PIECE) % OWN / 8) as usize;
            let stdio = (piece * PIECE / 8) as usize;
            tape.enter(self.copy);
            let (from, to) = match reading {
                true => ((&self.stdio, stdio), (&self.own, own)),
                false => ((&self.own, own), (&self.stdio, stdio)),
            };
            from.0.touch(tape, 0, from.1, 0);
            to.0.touch(tape, 1, to.1, 0);
        }
    }
}

impl Pool {
    /// The running counts against a recount.
    fn check(&self) -> Result<(), WrongResult> {
        let bytes: u64 = self.files.iter().map(File::size).sum();
        if bytes != self.bytes {
            return Err(WrongResult(format!(
                "{} bytes in files of {bytes}",
                self.bytes
            )));
        }
        match self.created - self.deleted == self.files.len() as u64 {
            true => Ok(()),
            false => Err(WrongResult(format!(
                "{} files of {} created and {} deleted",
                self.files.len(),
                self.created,
                self.deleted
            ))),
        }
    }
}

/// The sum of the whole words of a file that was read in calls.
fn check_sum(size: u64, call: u64, sum: u64) -> Result<(), WrongResult> {
    let words = |len: u64| len / 8;
    let expected = (0..size)
        .step_by(call as usize)
        .flat_map(|at| at / 8..at / 8 + words(call.min(size - at)))
        .fold(0u64, u64::wrapping_add);
    match sum == expected {
        true => Ok(()),
        false => Err(WrongResult(format!(
            "a file of {size} B adds up to {sum}, expected {expected}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_counts_and_sums_are_found() {
        let pool = |created, deleted, bytes| Pool {
            files: Vec::new(),
            created,
            deleted,
            bytes,
        };
        assert_eq!(pool(3, 3, 0).check(), Ok(()));
        assert!(pool(3, 2, 0).check().is_err());
        assert!(pool(3, 3, 1).check().is_err());
        assert_eq!(check_sum(24, 16, 3), Ok(()));
        assert!(check_sum(24, 16, 4).is_err());
    }
}
