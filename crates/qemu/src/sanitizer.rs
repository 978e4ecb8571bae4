//! Programs that were built with a sanitizer.
//!
//! The run-time library of a sanitizer maps memory at fixed addresses (AddressSanitizer: shadow
//! from 0x7fff8000 on, 16 TiB long), and QEMU goes through such a mapping page by page: the
//! program hangs before it begins. It is better told than started.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::image::Elf;

/// A sanitizer, and what tells that a program has it.
struct Sanitizer {
    name: &'static str,
    /// What follows `-fsanitize=`.
    option: &'static str,
    /// How names of its shared library begin: GCC's, LLVM's.
    libraries: &'static [&'static str],
    /// A function of its library, if that is linked into the program.
    symbol: &'static str,
}

const SANITIZERS: [Sanitizer; 5] = [
    Sanitizer {
        name: "AddressSanitizer",
        option: "address",
        libraries: &["libasan.so", "libclang_rt.asan"],
        symbol: "__asan_init",
    },
    Sanitizer {
        name: "ThreadSanitizer",
        option: "thread",
        libraries: &["libtsan.so", "libclang_rt.tsan"],
        symbol: "__tsan_init",
    },
    Sanitizer {
        name: "MemorySanitizer",
        option: "memory",
        libraries: &["libclang_rt.msan"],
        symbol: "__msan_init",
    },
    Sanitizer {
        name: "HWAddressSanitizer",
        option: "hwaddress",
        libraries: &["libhwasan.so", "libclang_rt.hwasan"],
        symbol: "__hwasan_init",
    },
    // After AddressSanitizer, which contains it.
    Sanitizer {
        name: "LeakSanitizer",
        option: "leak",
        libraries: &["liblsan.so", "libclang_rt.lsan"],
        symbol: "__lsan_init",
    },
];

/// Why a program cannot run under QEMU because of a sanitizer; `None` if it has none. `preload`
/// is its `LD_PRELOAD`.
pub fn obstacle(file: &File, elf: &Elf, preload: Option<&OsStr>) -> Option<String> {
    let needed = elf.needed(file);
    for sanitizer in &SANITIZERS {
        let is_its = |name: &&String| sanitizer.has_library(name);
        if let Some(library) = needed.iter().find(is_its) {
            return Some(sanitizer.told(&format!("it needs {library}")));
        }
    }
    let preload = preload.map_or("".into(), OsStr::to_string_lossy);
    for path in preload.split([':', ' ']) {
        let name = path.rsplit('/').next().unwrap_or(path);
        if let Some(found) = SANITIZERS.iter().find(|s| s.has_library(name)) {
            return Some(found.told(&format!("LD_PRELOAD is {path}")));
        }
    }
    let symbols = SANITIZERS.each_ref().map(|s| s.symbol);
    let defined = elf.first_defined(file, &symbols)?;
    let found = SANITIZERS.iter().find(|s| s.symbol == defined)?;
    Some(found.told(&format!("it has {defined}")))
}

impl Sanitizer {
    fn has_library(&self, name: &str) -> bool {
        self.libraries.iter().any(|l| name.starts_with(l))
    }

    fn told(&self, evidence: &str) -> String {
        format!(
            "built with {} ({evidence}), whose memory at fixed addresses makes it hang under QEMU; \
             build it without -fsanitize={}",
            self.name, self.option
        )
    }
}

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const SHT_SYMTAB: u32 = 2;
const SHT_DYNSYM: u32 = 11;
/// Bytes of an `Elf64_Sym`.
const SYMBOL: usize = 24;
/// More of a dynamic section or of a table of sections is not looked at.
const MAX_TABLE: u64 = 1 << 20;
/// Bytes that are read at a time.
const WINDOW: usize = 1 << 20;
/// Longest name of a library.
const MAX_NAME: usize = 256;

impl Elf {
    /// Names of the shared libraries that the program itself asks for.
    fn needed(&self, file: &File) -> Vec<String> {
        let headers = self.headers(file);
        let Some(dynamic) = headers.iter().find(|h| word(&h[..], 0) == PT_DYNAMIC) else {
            return Vec::new();
        };
        let bytes = part(
            file,
            long(&dynamic[..], 8),
            long(&dynamic[..], 32).min(MAX_TABLE),
        );
        let entries: Vec<(u64, u64)> = bytes
            .chunks_exact(16)
            .map(|e| (long(e, 0), long(e, 8)))
            .take_while(|e| e.0 != 0)
            .collect();
        let names = entries.iter().find(|e| e.0 == DT_STRTAB);
        let in_file = |addr: u64| {
            let inside = |h: &&[u8; 56]| {
                let (from, len) = (long(&h[..], 16), long(&h[..], 32));
                word(&h[..], 0) == PT_LOAD && addr >= from && addr - from < len
            };
            let load = headers.iter().find(inside)?;
            long(&load[..], 8).checked_add(addr - long(&load[..], 16))
        };
        let Some(names) = names.and_then(|e| in_file(e.1)) else {
            return Vec::new();
        };
        let needed = entries.iter().filter(|e| e.0 == DT_NEEDED);
        let name = |at: u64| {
            let bytes = part(file, names.checked_add(at)?, MAX_NAME as u64);
            let end = bytes.iter().position(|&b| b == 0)?;
            String::from_utf8(bytes[..end].to_vec()).ok()
        };
        needed.filter_map(|e| name(e.1)).collect()
    }

    /// The first of these symbols that the program defines.
    fn first_defined<'a>(&self, file: &File, wanted: &[&'a str]) -> Option<&'a str> {
        let sections = self.sections(file);
        let tables = sections.iter();
        let tables = tables.filter(|s| matches!(word(s, 4), SHT_SYMTAB | SHT_DYNSYM));
        for table in tables {
            let Some(names) = sections.get(word(table, 40) as usize) else {
                continue;
            };
            let places = places(file, long(names, 24), long(names, 32), wanted);
            let defined = defined(file, long(table, 24), long(table, 32), &places);
            // Of several, the one that is asked for first contains the others.
            if let Some(first) = wanted.iter().find(|w| defined.contains(w)) {
                return Some(first);
            }
        }
        None
    }

    /// The table of sections.
    fn sections(&self, file: &File) -> Vec<Vec<u8>> {
        let (at, count, size) = self.section_table;
        let bytes = part(file, at, u64::from(count) * u64::from(size));
        let whole = bytes.chunks_exact(usize::from(size.max(64)));
        whole.map(<[u8]>::to_vec).collect()
    }
}

/// Where in a table of strings these names begin.
fn places<'a>(file: &File, at: u64, len: u64, names: &[&'a str]) -> Vec<(u64, &'a str)> {
    let longest = names.iter().map(|n| n.len() + 1).max().unwrap_or(0) as u64;
    let mut found = Vec::new();
    let mut done = 0;
    while done < len {
        let window = (len - done).min(WINDOW as u64);
        let bytes = part(file, at.saturating_add(done), window);
        for name in names {
            let ended = [name.as_bytes(), &[0]].concat();
            let hits = bytes.windows(ended.len()).enumerate();
            let hits = hits.filter(|(_, w)| *w == ended);
            found.extend(hits.map(|(i, _)| (done + i as u64, *name)));
        }
        if window == len - done || (bytes.len() as u64) < window {
            break;
        }
        // A name may lie across the border of two windows.
        done += window - longest;
    }
    found
}

/// The symbols of a table that are defined and have a name at one of these places.
fn defined<'a>(file: &File, at: u64, len: u64, places: &[(u64, &'a str)]) -> Vec<&'a str> {
    let window = (WINDOW / SYMBOL * SYMBOL) as u64;
    let mut found = Vec::new();
    if places.is_empty() {
        return found;
    }
    for done in (0..len).step_by(window as usize) {
        let bytes = part(file, at.saturating_add(done), window.min(len - done));
        for symbol in bytes.chunks_exact(SYMBOL) {
            let section = u16::from_le_bytes([symbol[6], symbol[7]]);
            let name = places.iter().find(|p| p.0 == u64::from(word(symbol, 0)));
            if section != 0 {
                found.extend(name.map(|p| p.1));
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    found
}

/// Up to `len` bytes of a file from `at` on, as many as there are.
fn part(file: &File, at: u64, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; len.min(WINDOW as u64) as usize];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], at.saturating_add(read as u64)) {
            Ok(n @ 1..) => read += n,
            _ => break,
        }
    }
    bytes.truncate(read);
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}
