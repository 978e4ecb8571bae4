//! What is mapped before the first instruction.
//!
//! The kernel's map of the process shows QEMU and the program together. QEMU
//! places programs from 0x4000000000 up, or at their linked address, with the
//! stack and the loader beside them; its own image, libraries and buffers lie
//! where the kernel puts images (0x55..., 0x7f...). So everything below the lowest
//! mapping that existed when the plugin was loaded, which is before the program
//! is, belongs to the program.
//!
//! QEMU maps guest code without the right to execute it; that right is taken
//! from the segments of the mapped ELF file.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;

use piebald_trace::recording::model::{EventKind, FileIdent};

use crate::image::{Elf, Segment};

static LOWEST: OnceLock<u64> = OnceLock::new();

/// Remembers where QEMU begins. To be called before the program is loaded.
pub fn remember_qemu() {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lowest = maps
        .lines()
        .filter_map(|l| Some(Line::parse(l)?.addr))
        .min();
    let _ = LOWEST.set(lowest.unwrap_or(0));
}

/// The program's mappings, now.
pub fn initial() -> Vec<EventKind> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lowest = LOWEST.get().copied().unwrap_or(0);
    let base = super::guest_base();
    let lines = maps.lines().filter_map(Line::parse);
    let guest = lines.filter(|l| l.addr >= base && l.addr - base < lowest && l.accessible);
    let mut found: Vec<_> = guest.flat_map(|l| l.events(base)).collect();
    name_stack(&mut found);
    found
}

/// QEMU's stack for the program is the only large anonymous mapping that no
/// file's mapping touches from below.
fn name_stack(events: &mut [EventKind]) {
    let mut end = 0;
    for event in events {
        if let EventKind::Initial {
            addr,
            len,
            write,
            file,
            name,
            ..
        } = event
        {
            if *write && file.is_none() && *addr != end && *len >= 64 << 10 {
                *name = "[stack]".into();
            }
            end = *addr + *len;
        }
    }
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
