//! What the C side asks of a kernel's type information; `core.h` has the C form.

use core::{mem, slice};

use crate::{
    btf::{self, Btf, Field},
    line::Line,
};

/// Room for a [`Btf`] on the C side.
const BTF_BYTES: usize = 48;

const _: () = assert!(size_of::<Btf<'_>>() <= BTF_BYTES && align_of::<Btf<'_>>() <= 8);

/// A text or data of the C side.
///
/// # Safety
/// `at` has `len` bytes, for as long as the answer is used.
unsafe fn bytes<'a>(at: *const u8, len: usize) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { slice::from_raw_parts(at, len) }
}

/// The number of types in the data; 0 if it cannot be read.
///
/// # Safety
/// `data` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_btf_types(data: *const u8, len: usize) -> usize {
    // SAFETY: the caller's promise.
    btf::count(unsafe { bytes(data, len) }).unwrap_or(0)
}

/// Opens the data; false if it cannot be read.
///
/// # Safety
/// `data` has `len` bytes and `index` has `types` places, for as long as `out` is used; `out` has
/// room for a `struct pb_btf`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_btf_open(
    data: *const u8,
    len: usize,
    index: *mut u32,
    types: usize,
    out: *mut Btf<'static>,
) -> bool {
    // SAFETY: the caller's promise.
    let opened = unsafe { Btf::open(bytes(data, len), slice::from_raw_parts_mut(index, types)) };
    match opened {
        Some(btf) => {
            // SAFETY: the caller's promise; what lies there need not be dropped.
            unsafe { out.write(btf) };
            true
        }
        None => false,
    }
}

/// Prints the signature of a function; its length, or 0 if there is none or it does not fit.
///
/// # Safety
/// `btf` was opened; `name` has `name_len` bytes and `out` has `len`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_btf_signature(
    btf: *const Btf<'static>,
    name: *const u8,
    name_len: usize,
    out: *mut u8,
    len: usize,
) -> usize {
    // SAFETY: the caller's promise.
    let (btf, name, out) = unsafe {
        let out = slice::from_raw_parts_mut(out, len);
        (&*btf, bytes(name, name_len), out)
    };
    let mut line = Line::new(out);
    if btf.signature(name, &mut line) {
        line.len()
    } else {
        0
    }
}

/// Where a field of a structure is; false if there is none.
///
/// # Safety
/// `btf` was opened; the names have their lengths.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_btf_field(
    btf: *const Btf<'static>,
    of: *const u8,
    of_len: usize,
    name: *const u8,
    name_len: usize,
    out: *mut Field,
) -> bool {
    // SAFETY: the caller's promise.
    let found = unsafe { (*btf).field(bytes(of, of_len), bytes(name, name_len)) };
    // SAFETY: the caller's promise.
    found.map(|field| unsafe { out.write(field) }).is_some()
}

/// The value of an enumerator; false if there is none.
///
/// # Safety
/// `btf` was opened; `name` has `name_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pb_btf_value(
    btf: *const Btf<'static>,
    name: *const u8,
    name_len: usize,
    out: *mut i64,
) -> bool {
    // SAFETY: the caller's promise.
    let found = unsafe { (*btf).value(bytes(name, name_len)) };
    // SAFETY: the caller's promise.
    found.map(|value| unsafe { out.write(value) }).is_some()
}

const _: () = assert!(mem::size_of::<Field>() == 16);
