//! What is mapped before the first instruction.
//!
//! The kernel's map of the process shows QEMU and the program together. What was mapped when
//! the plugin was loaded, which is before the program is, belongs to QEMU. Of the rest QEMU up to
//! 8.2 places programs below all that is its own. Newer ones let the kernel choose, as it
//! does for themselves; then these are the program's: mappings of files, which QEMU no longer
//! makes; what goes on where one of these ends (memory that begins as zeroes); the page of
//! functions that QEMU gives to programs, which is the only one without a file that cannot be
//! written; and the stack, which holds the program's name.
//!
//! QEMU maps guest code without the right to execute it; that right is taken
//! from the segments of the mapped ELF file.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;

use piebald_trace::recording::model::{EventKind, FileIdent};

use crate::image::{Elf, Segment};

/// QEMU's own mappings: first byte, and the one behind the last.
static QEMU: OnceLock<Vec<(u64, u64)>> = OnceLock::new();

/// Least bytes of a stack.
const MIN_STACK: u64 = 64 << 10;

/// Remembers what QEMU has mapped. To be called before the program is loaded.
pub fn remember_qemu() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lines = maps.lines().filter_map(Line::parse);
    let _ = QEMU.set(lines.map(|l| (l.addr, l.end)).collect());
}

/// Copies from a guest address; how many bytes could be read.
type Read = fn(u64, &mut [u8]) -> usize;

/// The program's mappings, now. `name`: the program's, as QEMU was given it; `base`: what is to be added
/// to a guest address.
pub fn initial(name: &OsStr, base: u64, read: Read) -> Vec<EventKind> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let qemu = QEMU.get().map_or(&[][..], Vec::as_slice);
    let lines = maps.lines().filter_map(Line::parse);
    let lines = lines.filter(|l| l.addr >= base && l.accessible);
    // The kernel joins neighbours without a file.
    let ends: Vec<u64> = qemu.iter().flat_map(|q| [q.0, q.1]).collect();
    let all: Vec<Line> = lines.flat_map(|l| l.divided(&ends)).collect();
    let stack = stack(&all, qemu, |at, to| read(at - base, to), name);
    let ends: Vec<u64> = stack.iter().flat_map(|s| [s.0, s.1]).collect();
    let mut found = Vec::new();
    let mut writable_end = 0;
    for line in all.iter().flat_map(|l| l.divided(&ends)) {
        let goes_on = line.write && line.addr == writable_end;
        let Some(name) = line.role(qemu, stack, goes_on) else {
            continue;
        };
        if line.write && name != STACK {
            writable_end = line.end;
        }
        let mut events = line.events(base);
        rename(&mut events, name);
        found.extend(events);
    }
    found
}

/// Gives mappings of no file a name; code that QEMU provides may be executed.
fn rename(events: &mut [EventKind], new: &str) {
    for event in events {
        if let EventKind::Initial { name, exec, .. } = event
            && !new.is_empty()
        {
            new.clone_into(name);
            *exec |= new == VDSO;
        }
    }
}

const STACK: &str = "[stack]";
const VDSO: &str = "[vdso]";

/// The stack: the mapping at whose end the program's name stands, up to there.
fn stack(
    all: &[Line],
    qemu: &[(u64, u64)],
    read: impl Fn(u64, &mut [u8]) -> usize,
    name: &OsStr,
) -> Option<(u64, u64)> {
    let ended = [name.as_bytes(), &[0]].concat();
    let is_candidate = |l: &&Line| {
        let plain = l.write && !l.exec && l.path.is_empty() && !l.is_of(qemu);
        plain && l.end - l.addr >= MIN_STACK
    };
    let mut candidates = all.iter().filter(is_candidate);
    candidates.find_map(|l| {
        let place = last(l.addr, l.end, &read, &ended)?;
        // Behind the name there is a word of zeroes.
        let end = (place + ended.len() as u64 + 8).next_multiple_of(PAGE);
        Some((l.addr, end.min(l.end)))
    })
}

/// The last place of some bytes in memory.
fn last(from: u64, to: u64, read: impl Fn(u64, &mut [u8]) -> usize, bytes: &[u8]) -> Option<u64> {
    const PIECE: u64 = 64 << 10;
    let mut piece = vec![0; PIECE as usize + bytes.len()];
    let mut at = to;
    while at > from {
        at = at.saturating_sub(PIECE).max(from);
        let want = piece.len().min((to - at) as usize);
        let n = read(at, &mut piece[..want]);
        let found = piece[..n].windows(bytes.len()).rposition(|w| w == bytes);
        if let Some(found) = found {
            return Some(at + found as u64);
        }
    }
    None
}

#[derive(Clone, Copy)]
struct Line<'a> {
    addr: u64,
    end: u64,
    accessible: bool,
    write: bool,
    exec: bool,
    offset: u64,
    path: &'a str,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (addr, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?.as_bytes();
        let offset = fields.next()?;
        let path = fields.nth(2).unwrap_or_default().trim_start();
        Some(Self {
            addr: u64::from_str_radix(addr, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            accessible: rights.first() == Some(&b'r'),
            write: rights.get(1) == Some(&b'w'),
            exec: rights.get(2) == Some(&b'x'),
            offset: u64::from_str_radix(offset, 16).ok()?,
            path,
        })
    }

    /// Was it there before the program?
    fn is_of(&self, qemu: &[(u64, u64)]) -> bool {
        qemu.iter().any(|q| self.addr < q.1 && q.0 < self.end)
    }

    /// Its pieces between these addresses, if it is of no file.
    fn divided(self, ends: &[u64]) -> Vec<Self> {
        let inside = |e: &u64| self.path.is_empty() && self.addr < *e && *e < self.end;
        let mut places: Vec<u64> = ends.iter().copied().filter(inside).collect();
        places.extend([self.addr, self.end]);
        places.sort_unstable();
        places.dedup();
        let piece = |p: &[u64]| Self {
            addr: p[0],
            end: p[1],
            ..self
        };
        places.windows(2).map(piece).collect()
    }

    /// A name if it is the program's, empty for what has one or needs none. `goes_on`: it begins where
    /// another of the program's ends, and both can be written.
    fn role(
        &self,
        qemu: &[(u64, u64)],
        stack: Option<(u64, u64)>,
        goes_on: bool,
    ) -> Option<&'static str> {
        if stack == Some((self.addr, self.end)) {
            return Some(STACK);
        }
        let lowest = qemu.iter().map(|q| q.0).min().unwrap_or(0);
        let placed_low = self.end <= lowest;
        let of_file = self.path.starts_with('/') && !self.is_of(qemu);
        if placed_low || of_file || goes_on && self.path.is_empty() && !self.is_of(qemu) {
            return Some("");
        }
        let provided = self.path.is_empty() && !self.write && !self.is_of(qemu);
        provided.then_some(VDSO)
    }

    /// The mapping, divided where the segments of its file differ in the right
    /// to execute.
    fn events(&self, base: u64) -> Vec<EventKind> {
        let file = self
            .path
            .starts_with('/')
            .then(|| identify(self.path))
            .flatten();
        let segments = if file.is_some() {
            segments(self.path)
        } else {
            Vec::new()
        };
        let mut out: Vec<EventKind> = Vec::new();
        for page in (self.addr..self.end).step_by(PAGE as usize) {
            let at = self.offset + (page - self.addr);
            let executable = segments.iter().any(|s| s.exec && covers(s, at));
            if let Some(EventKind::Initial { len, exec, .. }) = out.last_mut()
                && (*exec == executable || segments.is_empty())
            {
                *len += PAGE;
                continue;
            }
            out.push(EventKind::Initial {
                addr: page - base,
                len: PAGE,
                write: self.write,
                exec: executable,
                file: file.clone().map(|f| (f, at)),
                name: self.path.to_owned(),
            });
        }
        out
    }
}

const PAGE: u64 = 4096;

fn covers(segment: &Segment, offset: u64) -> bool {
    let first = segment.offset & !(PAGE - 1);
    offset >= first && offset < segment.offset.saturating_add(segment.len)
}

fn identify(path: &str) -> Option<FileIdent> {
    let meta = fs::metadata(path).ok()?;
    Some(FileIdent {
        dev: meta.dev(),
        ino: meta.ino(),
        size: meta.size(),
        mode: meta.mode(),
    })
}

fn segments(path: &str) -> Vec<Segment> {
    let Ok(file) = File::open(path) else {
        return Vec::new();
    };
    let mut head = [0; 64];
    let read = file.read_exact_at(&mut head, 0);
    let elf = read.ok().and_then(|()| Elf::parse(&head));
    elf.map_or(Vec::new(), |e| e.segments(&file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
655555556000-655555557000 r--p 00000000 fe:00 1 /bin/p
655555557000-655555558000 rw-p 00001000 fe:00 1 /bin/p
655555558000-655555559000 rw-p 00000000 00:00 0
7f0000000000-7f0000100000 rw-p 00000000 00:00 0
7f0000200000-7f0000201000 r--p 00000000 00:00 0
7f0000300000-7f0000340000 rwxp 00000000 00:00 0
7f0000400000-7f0000401000 r--p 00000000 fe:00 2 /lib/libqemu.so
";

    /// Roles of the lines when QEMU had mapped what lies at the end of the large one, and the
    /// program's name stands before that.
    #[test]
    fn the_programs_mappings_are_told_from_qemus() {
        let qemu = [
            (0x5555_0000_0000, 0x5555_0000_1000),
            (0x7f00_000f_0000, 0x7f00_0010_0000),
            (0x7f00_0040_0000, 0x7f00_0040_1000),
        ];
        let ends = [qemu[1].0, qemu[1].1];
        let lines = MAPS.lines().filter_map(Line::parse);
        let all: Vec<Line> = lines.flat_map(|l| l.divided(&ends)).collect();
        let name = 0x7f00_0008_0ff0;
        let read = |at: u64, to: &mut [u8]| {
            to.fill(0);
            for (k, b) in b"/bin/p".iter().enumerate() {
                if let Some(i) = (name + k as u64).checked_sub(at)
                    && let Some(to) = to.get_mut(i as usize)
                {
                    *to = *b;
                }
            }
            to.len()
        };
        let found = stack(&all, &qemu, read, OsStr::new("/bin/p"));
        // The name and what follows end in the next page.
        assert_eq!(found, Some((0x7f00_0000_0000, 0x7f00_0008_1000)));
        assert_eq!(stack(&all, &qemu, read, OsStr::new("/bin/q")), None);
        let ends = [0x7f00_0000_0000, 0x7f00_0008_1000];
        let pieces = all.iter().flat_map(|l| l.divided(&ends));
        let roles: Vec<_> = pieces
            .map(|l| l.role(&qemu, found, l.addr == 0x6555_5555_8000))
            .collect();
        let expected = [
            Some(""),
            Some(""),
            Some(""),
            Some(STACK),
            None,
            None,
            Some(VDSO),
            None,
            None,
        ];
        assert_eq!(roles, expected);
    }
}
