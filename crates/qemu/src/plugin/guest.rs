//! Reading the program's memory.
//!
//! It is part of the process, at an offset; the kernel does the copying, so a bad
//! pointer of the program is an error rather than a crash.

/// Longest string that is read: `PATH_MAX`, and `MAX_ARG_STRLEN` for arguments.
const MAX_STRING: usize = 128 << 10;
/// Most pointers in an argument list.
const MAX_LIST: usize = 1 << 20;
const PAGE: u64 = 4096;

/// Copies from a guest address; returns how many bytes could be read.
pub fn read(addr: u64, to: &mut [u8]) -> usize {
    let local = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let remote = libc::iovec {
        iov_base: addr.wrapping_add(super::guest_base()) as *mut _,
        iov_len: to.len(),
    };
    // SAFETY: the local range is writable; the kernel checks the other one.
    let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    usize::try_from(n).unwrap_or_else(|_| read_file(addr, to))
}

/// Containers may forbid the call above.
fn read_file(addr: u64, to: &mut [u8]) -> usize {
    use std::os::unix::fs::FileExt;
    let at = addr.wrapping_add(super::guest_base());
    let file = std::fs::File::open("/proc/self/mem");
    file.and_then(|f| f.read_at(to, at)).unwrap_or(0)
}

/// A string that ends in a zero byte, without it.
pub fn string(addr: u64) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut at = addr;
    while out.len() < MAX_STRING {
        // Up to the end of the page: the next one may not exist.
        let mut chunk = [0; 256];
        let left = (PAGE - at % PAGE).min(chunk.len() as u64) as usize;
        let n = read(at, &mut chunk[..left]);
        if n == 0 {
            return None;
        }
        if let Some(end) = chunk[..n].iter().position(|&b| b == 0) {
            out.extend_from_slice(&chunk[..end]);
            return Some(out);
        }
        out.extend_from_slice(&chunk[..n]);
        at = at.wrapping_add(n as u64);
    }
    None
}

/// The strings of a list of pointers that ends in a null pointer; a null list is
/// an empty one.
pub fn strings(addr: u64) -> Option<Vec<Vec<u8>>> {
    let mut out = Vec::new();
    if addr == 0 {
        return Some(out);
    }
    for i in 0..MAX_LIST {
        let mut pointer = [0; 8];
        if read(addr.wrapping_add(8 * i as u64), &mut pointer) != 8 {
            return None;
        }
        match u64::from_le_bytes(pointer) {
            0 => return Some(out),
            p => out.push(string(p)?),
        }
    }
    None
}
