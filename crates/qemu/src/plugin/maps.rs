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
    let all: Vec<Line> = lines.filter(|l| l.addr >= base && l.accessible).collect();
    let stack = stack(&all, qemu, |at, to| read(at - base, to), name);
    let mut found = Vec::new();
    let mut writable_end = 0;
    for line in &all {
        let goes_on = line.write && line.addr == writable_end;
        let Some(name) = line.role(qemu, stack, goes_on) else {
            continue;
        };
        if line.write {
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

/// The first address of the stack: of the mapping at whose end the program's name stands.
fn stack(
    all: &[Line],
    qemu: &[(u64, u64)],
    read: impl Fn(u64, &mut [u8]) -> usize,
    name: &OsStr,
) -> Option<u64> {
    let candidates = all
        .iter()
        .filter(|l| l.write && l.path.is_empty() && l.end - l.addr >= MIN_STACK && !l.is_of(qemu));
    let mut holding = candidates.filter(|l| {
        let mut top = vec![0; 2 * PAGE as usize];
        let n = read(l.end - top.len() as u64, &mut top);
        top[..n].windows(name.len()).any(|w| w == name.as_bytes())
    });
    holding.next().map(|l| l.addr)
}

struct Line<'a> {
    addr: u64,
    end: u64,
    accessible: bool,
    write: bool,
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
            offset: u64::from_str_radix(offset, 16).ok()?,
            path,
        })
    }

    /// Was it there before the program?
    fn is_of(&self, qemu: &[(u64, u64)]) -> bool {
        qemu.iter().any(|q| self.addr < q.1 && q.0 < self.end)
    }

    /// A name if it is the program's, empty for what has one or needs none. `goes_on`: it begins where
    /// another of the program's ends, and both can be written.
    fn role(&self, qemu: &[(u64, u64)], stack: Option<u64>, goes_on: bool) -> Option<&'static str> {
        if stack == Some(self.addr) {
            return Some(STACK);
        }
        let lowest = qemu.iter().map(|q| q.0).min().unwrap_or(0);
        let placed_low = self.end <= lowest;
        let of_file = self.path.starts_with('/') && !self.is_of(qemu);
        if placed_low || of_file || goes_on && self.path.is_empty() {
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
