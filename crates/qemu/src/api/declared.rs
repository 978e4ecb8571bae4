//! The interface version that the plugin declares.
//!
//! QEMU reads a number out of a plugin that it has loaded, and refuses the plugin if it does
//! not serve that version. No number suits all: 7.2 serves none after 1, 11.1 none but 7. The
//! plugin's number is therefore set when the library is loaded, which is before QEMU reads it.
//!
//! The driver asks a QEMU beforehand ([`crate::emulator`]) and says what to declare (`api=N`
//! among the plugin's arguments). Without that, the functions that a QEMU has tell roughly how
//! new it is.

use core::ffi::c_int;
use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

use super::look_up;

/// Oldest interface version that the plugin can use.
pub const OLDEST: c_int = 1;
/// Newest one that it knows.
pub const NEWEST: c_int = 7;
/// What says which version to declare, among the plugin's arguments.
pub const ARGUMENT: &str = "api";

/// The version that QEMU reads.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(OLDEST);

/// Runs when the library is loaded. In a program that contains it nothing is found.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = declare;

extern "C" fn declare() {
    let Some(likely) = likely() else {
        return;
    };
    let line = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    qemu_plugin_version.store(asked_for(&line).unwrap_or(likely), Relaxed);
}

/// A version that a QEMU with these functions serves; `None` outside of QEMU.
fn likely() -> Option<c_int> {
    let has = |name| look_up(name).is_some();
    if has("qemu_plugin_register_vcpu_tb_exec_inline\0") {
        return Some(OLDEST);
    }
    // Since version 6, of which 7 is not told by any function.
    if has("qemu_plugin_set_pc\0") {
        return Some(NEWEST);
    }
    has("qemu_plugin_scoreboard_new\0").then_some(2)
}

/// Is this argument of the plugin the one that says what to declare?
pub fn is_argument(argument: &str) -> bool {
    argument
        .split_once('=')
        .is_some_and(|(name, _)| name == ARGUMENT)
}

/// The version that QEMU's command line asks for.
fn asked_for(line: &[u8]) -> Option<c_int> {
    let mut words = line.split(|&b| b == 0);
    words.find(|w| *w == b"-plugin" || *w == b"--plugin")?;
    let plugin = std::str::from_utf8(words.next()?).ok()?;
    let said = plugin.rsplit(',').find(|part| is_argument(part))?;
    said[ARGUMENT.len() + 1..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(words: &[&str]) -> Option<c_int> {
        asked_for(words.join("\0").as_bytes())
    }

    #[test]
    fn the_command_line_says_which_version_to_declare() {
        let program = ["qemu-x86_64", "-cpu", "max", "-plugin"];
        let with = |option| asked(&[&program[..], &[option, "-0", "ls", "/bin/ls"]].concat());
        assert_eq!(with("/lib/p.so,state=/proc/1/fd/3,api=4"), Some(4));
        assert_eq!(with("/lib/p,,q.so,api=7,state=x"), Some(7));
        assert_eq!(with("/lib/p.so,state=api"), None);
        assert_eq!(with("/lib/p.so,api=new"), None);
    }

    #[test]
    fn the_programs_own_words_say_nothing() {
        let line = ["qemu-x86_64", "-0", "ls", "/bin/ls", "x,api=3"];
        assert_eq!(asked(&line), None);
        let line = ["qemu", "-plugin", "p.so", "ls", "-plugin", "x,api=3"];
        assert_eq!(asked(&line), None);
    }

    #[test]
    fn outside_of_qemu_nothing_is_declared() {
        assert_eq!(likely(), None);
        assert_eq!(qemu_plugin_version.load(Relaxed), OLDEST);
    }
}
