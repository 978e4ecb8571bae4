//! What running a file means: which image, with which arguments.
//!
//! Plain QEMU runs the images that a program starts natively. To follow them the
//! recorder starts QEMU on the new image itself, and so has to do what the
//! kernel does with `#!` scripts, and to know what it cannot follow.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::api::declared;
use crate::emulator::Emulator;
use crate::sanitizer;

/// Interpreters of interpreters that the kernel follows (`fs/exec.c` allows
/// four rewrites).
const MAX_LEVELS: u32 = 4;
/// Bytes of a file that the kernel looks at (`BINPRM_BUF_SIZE`).
const HEAD_BYTES: usize = 256;

/// An image that can run under QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The ELF file.
    pub path: PathBuf,
    /// Its arguments, the name first.
    pub argv: Vec<OsString>,
}

/// What to do with a request to run a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run this image under QEMU.
    Follow(Image),
    /// The kernel will refuse, and says best why: its errno.
    Refused(i32),
    /// It would run, but cannot be followed; the reason.
    Escapes(String),
}

/// Decides about running `path` with `argv`; `preload` is `LD_PRELOAD` of its environment.
pub fn resolve(path: &Path, argv: Vec<OsString>, preload: Option<&OsStr>) -> Verdict {
    let mut image = Image {
        path: path.to_owned(),
        argv,
    };
    for _ in 0..=MAX_LEVELS {
        match look(&image.path, preload) {
            Ok(Kind::Elf) => return Verdict::Follow(image),
            Ok(Kind::Script(interpreter, argument)) => {
                image = rewrite(image, interpreter, argument)
            }
            Err(verdict) => return verdict,
        }
    }
    Verdict::Refused(libc::ELOOP)
}

/// `LD_PRELOAD` of an environment.
pub fn preload(env: &[OsString]) -> Option<OsString> {
    let value = |v: &OsString| Some(v.as_bytes().strip_prefix(b"LD_PRELOAD=")?.to_vec());
    env.iter().find_map(value).map(OsString::from_vec)
}

enum Kind {
    Elf,
    Script(OsString, Option<OsString>),
}

fn rewrite(old: Image, interpreter: OsString, argument: Option<OsString>) -> Image {
    let mut argv = vec![interpreter.clone()];
    argv.extend(argument);
    argv.push(old.path.into_os_string());
    argv.extend(old.argv.into_iter().skip(1));
    Image {
        path: interpreter.into(),
        argv,
    }
}

fn look(path: &Path, preload: Option<&OsStr>) -> Result<Kind, Verdict> {
    let refused = |e: io::Error| Verdict::Refused(e.raw_os_error().unwrap_or(libc::EACCES));
    let meta = fs::metadata(path).map_err(refused)?;
    if !meta.is_file() {
        return Err(Verdict::Refused(libc::EACCES));
    }
    may_execute(path).map_err(refused)?;
    let name = path.display();
    if changes_rights(path, &meta) {
        let why = format!("{name}: runs with other rights (set-user-ID or file capabilities)");
        return Err(Verdict::Escapes(why));
    }
    let unreadable = |e| Verdict::Escapes(format!("{name}: not readable: {e}"));
    let file = File::open(path).map_err(unreadable)?;
    let mut head = Vec::with_capacity(HEAD_BYTES);
    (&file)
        .take(HEAD_BYTES as u64)
        .read_to_end(&mut head)
        .map_err(refused)?;
    if head.starts_with(b"#!") {
        let (interpreter, argument) = shebang(&head).ok_or(Verdict::Refused(libc::ENOEXEC))?;
        return Ok(Kind::Script(interpreter, argument));
    }
    match Elf::parse(&head) {
        Some(elf) if elf.interpreter_missing(&file) => Err(Verdict::Refused(libc::ENOENT)),
        Some(elf) => match sanitizer::obstacle(&file, &elf, preload) {
            Some(why) => Err(Verdict::Escapes(format!("{name}: {why}"))),
            None => Ok(Kind::Elf),
        },
        None if head.starts_with(b"\x7fELF") => {
            Err(Verdict::Escapes(format!("{name}: not an x86-64 program")))
        }
        None => Err(Verdict::Refused(libc::ENOEXEC)),
    }
}

fn may_execute(path: &Path) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a C string.
    let ok =
        unsafe { libc::faccessat(libc::AT_FDCWD, name.as_ptr(), libc::X_OK, libc::AT_EACCESS) };
    if ok != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Would the kernel give the program other rights than its caller's? QEMU
/// cannot: it is QEMU that is executed.
fn changes_rights(path: &Path, meta: &fs::Metadata) -> bool {
    // SAFETY: plain system calls.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let mode = meta.mode();
    let setuid = mode & libc::S_ISUID != 0 && meta.uid() != uid;
    let setgid = mode & libc::S_ISGID != 0 && mode & libc::S_IXGRP != 0 && meta.gid() != gid;
    setuid || setgid || uid != 0 && has_capabilities(path)
}

fn has_capabilities(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    let attribute = c"security.capability".as_ptr();
    // SAFETY: both names are C strings; no buffer is passed.
    unsafe { libc::getxattr(name.as_ptr(), attribute, core::ptr::null_mut(), 0) > 0 }
}

/// Splits a `#!` line as the kernel does: the interpreter, and the rest of the
/// line as one argument.
fn shebang(head: &[u8]) -> Option<(OsString, Option<OsString>)> {
    let line = head[2..].split(|&b| b == b'\n').next()?;
    let complete = line.len() + 2 < head.len() || head.len() < HEAD_BYTES;
    let line = line.trim_ascii();
    let end = line
        .iter()
        .position(|b| matches!(b, b' ' | b'\t' | 0))
        .unwrap_or(line.len());
    // A cut interpreter name is refused, a cut argument is passed on.
    if end == 0 || end == line.len() && !complete {
        return None;
    }
    let argument = line[end..].trim_ascii();
    let argument = (!argument.is_empty()).then(|| OsString::from_vec(argument.to_vec()));
    Some((OsString::from_vec(line[..end].to_vec()), argument))
}

/// A loadable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// Bytes in the file.
    pub len: u64,
    /// May be executed.
    pub exec: bool,
}

/// The part of an ELF header that is needed.
#[derive(Clone, Copy, Debug)]
pub struct Elf {
    table: u64,
    entries: u16,
    /// The table of sections: its place in the file, how many, bytes of one.
    pub(crate) section_table: (u64, u16, u16),
}

const ELF_MACHINE_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PF_X: u32 = 1;
const PHDR_BYTES: usize = 56;

impl Elf {
    /// The header, if these are the first bytes of an x86-64 program.
    pub fn parse(head: &[u8]) -> Option<Self> {
        let half = |at: usize| Some(u16::from_le_bytes(head.get(at..at + 2)?.try_into().ok()?));
        let (class, order) = (*head.get(4)?, *head.get(5)?);
        let program = matches!(half(16)?, 2 | 3);
        let fits = head.starts_with(b"\x7fELF") && class == 2 && order == 1;
        if !fits || !program || half(18)? != ELF_MACHINE_X86_64 {
            return None;
        }
        if half(54)? as usize != PHDR_BYTES {
            return None;
        }
        Some(Self {
            table: u64::from_le_bytes(head.get(32..40)?.try_into().ok()?),
            entries: half(56)?,
            section_table: (
                u64::from_le_bytes(head.get(40..48)?.try_into().ok()?),
                half(60)?,
                half(58)?,
            ),
        })
    }

    pub(crate) fn headers(&self, file: &File) -> Vec<[u8; PHDR_BYTES]> {
        let header = |i: u16| {
            let mut bytes = [0; PHDR_BYTES];
            let at = self.table.checked_add(i as u64 * PHDR_BYTES as u64)?;
            file.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        };
        (0..self.entries).map_while(header).collect()
    }

    /// The loadable segments.
    pub fn segments(&self, file: &File) -> Vec<Segment> {
        let load = |h: &[u8; PHDR_BYTES]| {
            (word(h, 0) == PT_LOAD).then(|| Segment {
                offset: long(h, 8),
                len: long(h, 32),
                exec: word(h, 4) & PF_X != 0,
            })
        };
        self.headers(file).iter().filter_map(load).collect()
    }

    fn interpreter_missing(&self, file: &File) -> bool {
        let headers = self.headers(file);
        let Some(interp) = headers.iter().find(|h| word(h, 0) == PT_INTERP) else {
            return false;
        };
        let mut name = vec![0; long(interp, 32).min(4096) as usize];
        if file.read_exact_at(&mut name, long(interp, 8)).is_err() {
            return true;
        }
        let end = name.iter().position(|&b| b == 0).unwrap_or(name.len());
        fs::metadata(OsStr::from_bytes(&name[..end])).is_err()
    }
}

fn word(h: &[u8; PHDR_BYTES], at: usize) -> u32 {
    h[at..at + 4].try_into().map_or(0, u32::from_le_bytes)
}

fn long(h: &[u8; PHDR_BYTES], at: usize) -> u64 {
    h[at..at + 8].try_into().map_or(0, u64::from_le_bytes)
}

/// Processor that programs see. Without the two features a string copy would be
/// microcode that counts one access per byte.
pub const CPU: &str = "max,-erms,-fsrm";

/// What QEMU adds to a program's addresses. Up to 8.2 it places programs from 0x4000000000 up.
/// Newer ones would put them among their own mappings, and, as the kernel places these at
/// random, somewhere else in each run.
const GUEST_BASE: &str = "0x100000000000";

/// The command that runs an image under QEMU with the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Arguments; the first is QEMU's path.
    pub argv: Vec<OsString>,
    /// Environment, `NAME=value` each.
    pub env: Vec<OsString>,
}

/// Composes the command.
///
/// Variables of the dynamic loader are meant for the program; QEMU, a dynamic
/// program itself, gets them as an option to pass on. `state` is
/// [`Shared::path`](crate::shared::Shared::path).
pub fn command(emulator: &Emulator, state: &Path, image: &Image, env: Vec<OsString>) -> Command {
    let qemu = emulator.qemu.as_os_str();
    let mut argv: Vec<OsString> = vec![qemu.into(), "-cpu".into(), CPU.into()];
    if emulator.api > declared::OLDEST {
        argv.extend(["-B".into(), GUEST_BASE.into()]);
    }
    let option = emulator.option(&[("state", state.as_os_str())]);
    argv.extend(["-plugin".into(), option]);
    let (passed, kept): (Vec<_>, Vec<_>) = env.into_iter().partition(|v| {
        // QEMU splits the option's value at commas.
        v.as_bytes().starts_with(b"LD_") && !v.as_bytes().contains(&b',')
    });
    for variable in passed {
        argv.extend(["-E".into(), variable]);
    }
    argv.push("-0".into());
    argv.push(image.argv.first().cloned().unwrap_or_default());
    argv.push(if image.path.as_os_str().as_bytes().starts_with(b"-") {
        Path::new(".").join(&image.path).into_os_string()
    } else {
        image.path.clone().into_os_string()
    });
    argv.extend(image.argv.iter().skip(1).cloned());
    Command { argv, env: kept }
}

/// The image that a command line of [`command`] runs.
pub fn image_of(argv: &[OsString]) -> Option<Image> {
    let at = argv.iter().position(|a| a == "-0")?;
    let path = argv.get(at + 2)?;
    let mut args = vec![argv.get(at + 1)?.clone()];
    args.extend(argv[at + 3..].iter().cloned());
    Some(Image {
        path: path.into(),
        argv: args,
    })
}
