//! Where QEMU enters: one library, two plugins.
//!
//! QEMU says whether it runs one program or a whole machine; the first is recorded,
//! the second is watched.

use core::ffi::{CStr, c_char, c_int};

use crate::api::declared;
use crate::{api, emulator, plugin, system};

/// Called by QEMU when it loads the plugin; not 0 makes QEMU give up.
///
/// # Safety
/// `info` and `argv` must be what QEMU passes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: api::PluginId,
    info: *const api::Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let args = (0..argc as usize).map(|i| {
        // SAFETY: QEMU passes `argc` C strings.
        unsafe { CStr::from_ptr(*argv.add(i)) }.to_string_lossy()
    });
    let args: Vec<String> = args.map(|a| a.into_owned()).collect();
    // SAFETY: QEMU passes a valid structure.
    let info = unsafe { &*info };
    if emulator::is_question(&args) {
        emulator::answer(info);
    }
    let args: Vec<String> = args
        .into_iter()
        .filter(|a| !declared::is_argument(a))
        .collect();
    let (who, installed) = match info.system_emulation {
        true => ("piebald guest", system::install(id, info, &args)),
        false => ("piebald recorder", plugin::install(id, info, &args)),
    };
    match installed {
        Ok(()) => 0,
        Err(what) => {
            eprintln!("{who}: {what}");
            1
        }
    }
}
