//! The recorder's plugin, inside the command: one file that records from any folder.
//!
//! Cargo builds the library of `piebald-qemu` before it compiles this crate, which depends on it
//! (a build script would run too early for it). The assembler takes it in rather than
//! `include_bytes!`, so that checks and documentation, which build no library, need none.

use core::{arch::global_asm, ptr};

global_asm!(
    ".pushsection .rodata.piebald_plugin,\"a\",@progbits",
    ".globl piebald_plugin_begin",
    ".globl piebald_plugin_end",
    "piebald_plugin_begin:",
    concat!(".incbin \"", env!("PIEBALD_PLUGIN_BUILT"), "\""),
    "piebald_plugin_end:",
    ".popsection",
    options(raw)
);

unsafe extern "C" {
    static piebald_plugin_begin: u8;
    static piebald_plugin_end: u8;
}

/// The library.
pub(crate) fn library() -> &'static [u8] {
    let (begin, end) = (
        &raw const piebald_plugin_begin,
        &raw const piebald_plugin_end,
    );
    // SAFETY: the two symbols enclose the library's bytes, which are read-only and never unmapped.
    unsafe { &*ptr::slice_from_raw_parts(begin, end.addr() - begin.addr()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_one_that_qemu_can_enter() {
        let library = library();
        assert_eq!(library.get(..4), Some(&b"\x7fELF"[..]));
        let entry = b"qemu_plugin_install";
        assert!(library.windows(entry.len()).any(|w| w == entry));
    }
}
