//! Following a process into a new image.
//!
//! QEMU would hand the request to the kernel and so leave the new image to run
//! natively. Before it does, the recorder replaces the process by QEMU on the new
//! image. What the kernel would refuse is left to QEMU, so that the program sees
//! the kernel's own error.

use core::ffi::{c_char, c_uint};
use core::sync::atomic::Ordering::Relaxed;
use std::ffi::{CString, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use piebald_trace::recording::model::{Event, EventKind};

use super::calls::{EXECVEAT, Pending};
use super::{guest, lane, process};
use crate::image::{self, Image, Verdict};
use crate::shared::Shared;

struct Request {
    path: PathBuf,
    argv: Vec<OsString>,
    env: Vec<OsString>,
}

/// Replaces the process by the recorded new image. Returns if the program's call
/// should be left to QEMU.
pub fn exec(shared: &'static Shared, vcpu: c_uint, call: Pending, args: &[u64; 6]) {
    let Some(request) = read(call.number() == EXECVEAT, args) else {
        return;
    };
    let preload = image::preload(&request.env);
    match image::resolve(&request.path, request.argv, preload.as_deref()) {
        Verdict::Refused(_) => {}
        Verdict::Escapes(why) => escape(shared, &why),
        Verdict::Follow(image) => replace(shared, vcpu, call.unfinished(), &image, request.env),
    }
}

fn escape(shared: &Shared, why: &str) {
    shared.escapes.fetch_add(1, Relaxed);
    shared.notice(&format!("not followed: {why}"));
}

fn read(at: bool, args: &[u64; 6]) -> Option<Request> {
    let (name, argv, env) = if at { (1, 2, 3) } else { (0, 1, 2) };
    let path = PathBuf::from(OsString::from_vec(guest::string(args[name])?));
    let path = if at {
        relative_to(args[0] as i32, &path, args[4] as i32)?
    } else {
        path
    };
    let strings = |addr| {
        let list = guest::strings(addr)?.into_iter();
        Some(list.map(OsString::from_vec).collect::<Vec<_>>())
    };
    Some(Request {
        path: own_image(path),
        argv: strings(args[argv])?,
        env: strings(args[env])?,
    })
}

/// The path that `execveat` means.
fn relative_to(dir: i32, path: &Path, flags: i32) -> Option<PathBuf> {
    if path.is_absolute() || dir == libc::AT_FDCWD && !path.as_os_str().is_empty() {
        return Some(path.to_owned());
    }
    let link = std::fs::read_link(format!("/proc/self/fd/{dir}")).ok()?;
    if !path.as_os_str().is_empty() {
        return Some(link.join(path));
    }
    (flags & libc::AT_EMPTY_PATH != 0).then_some(link)
}

/// `/proc/self/exe` is QEMU's own; the program means itself.
fn own_image(path: PathBuf) -> PathBuf {
    let pid = std::process::id();
    let names = ["/proc/self/exe", "/proc/thread-self/exe"];
    let own = names.iter().any(|n| path == Path::new(n));
    if own || path == Path::new(&format!("/proc/{pid}/exe")) {
        return process::exe().unwrap_or(path);
    }
    path
}

fn replace(shared: &'static Shared, vcpu: c_uint, call: Event, image: &Image, env: Vec<OsString>) {
    let command = image::command(&shared.emulator(), shared.path(), image, env);
    let (Some(argv), Some(env)) = (c_strings(command.argv), c_strings(command.env)) else {
        return;
    };
    let seq = shared.next_seq();
    let argv_text = image.argv.iter();
    let argv_text = argv_text
        .map(|a| a.to_string_lossy().into_owned())
        .collect();
    let kind = EventKind::Exec { argv: argv_text };
    process::set_replaced(shared, true);
    let exec = Event {
        seq,
        seq_end: seq,
        kind,
    };
    lane::before_exec(shared, vcpu, vec![call, exec]);
    let (args, vars) = (pointers(&argv), pointers(&env));
    // SAFETY: both lists end in a null pointer and their strings live.
    unsafe { libc::execve(args[0], args.as_ptr(), vars.as_ptr()) };
    let error = std::io::Error::last_os_error();
    lane::exec_failed(vcpu);
    process::set_replaced(shared, false);
    escape(shared, &format!("{}: {error}", image.path.display()));
}

fn c_strings(list: Vec<OsString>) -> Option<Vec<CString>> {
    let strings = list.into_iter().map(|s| CString::new(s.into_vec()).ok());
    strings.collect()
}

fn pointers(list: &[CString]) -> Vec<*const c_char> {
    let all = list.iter().map(|s| s.as_ptr());
    all.chain([core::ptr::null()]).collect()
}
