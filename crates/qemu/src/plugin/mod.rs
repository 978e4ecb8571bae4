//! The recorder inside QEMU user mode.
//!
//! QEMU loads this library, calls `qemu_plugin_install`, and from then on calls
//! back at translation, for each block and access, and around system calls.
//!
//! * `decode`: what a block does; `process`: the dictionary of blocks;
//! * `hot`: the callbacks that fill a thread's stream; `lane`: how it is
//!   written; `limits`: which part of it is kept;
//! * `calls`, `guest`: system calls; `refusals`: those that QEMU does not do as the kernel;
//!   `maps`: what is mapped at the start;
//! * `follow`: a process that replaces its image.
//!
//! No thread is started, no descriptor is kept, and no lock is held over a fork:
//! programs fork, close all descriptors, and replace their image at any time.

mod calls;
pub mod decode;
mod follow;
mod guest;
mod hot;
pub mod lane;
pub mod limits;
mod maps;
mod process;
mod refusals;

use core::cell::Cell;
use core::ffi::{c_uint, c_void};
use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use std::path::Path;
use std::sync::OnceLock;

use piebald_trace::recording::model::{AccessKind, BlockDef, EventKind, Raw};

use crate::api::{self, Api, Calls, Events, MEM_RW, NO_REGS};
use crate::shared::{Areas, Shared};
use decode::Watch;
pub use hot::MARGIN;
#[cfg(test)]
pub(crate) use hot::push_checked;

static SHARED: OnceLock<Shared> = OnceLock::new();
static API: OnceLock<Api> = OnceLock::new();
static GUEST_BASE: AtomicU64 = AtomicU64::new(0);

/// The bits that say of a report that it is a store: found by asking QEMU, since
/// asking it each time would cost a call.
static STORE_BITS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static VCPU: Cell<c_uint> = const { Cell::new(c_uint::MAX) };
}

/// The memory that all processes share, once the plugin is installed.
fn shared() -> Option<&'static Shared> {
    SHARED.get()
}

/// Notes on which virtual processor the calling thread runs.
fn enter_thread(vcpu: c_uint) {
    VCPU.with(|v| v.set(vcpu));
}

/// Virtual processor of the calling thread.
fn current_vcpu() -> c_uint {
    VCPU.with(Cell::get)
}

/// What must be added to a guest address.
fn guest_base() -> u64 {
    GUEST_BASE.load(Relaxed)
}

/// An entry had no room.
fn dropped() {
    if let Some(shared) = shared() {
        shared.dropped.fetch_add(1, Relaxed);
    }
}

/// Is a reported access a store (or a store too)?
fn is_store(info: api::MemInfo) -> bool {
    info & STORE_BITS.load(Relaxed) != 0
}

/// Counts an instruction that accesses a whole area, or a report of it.
fn count_areas(which: impl Fn(&Areas) -> &AtomicU64) {
    if let Some(shared) = shared() {
        which(&shared.tally().areas).fetch_add(1, Relaxed);
    }
}

/// Bytes of a reported access.
fn access_bytes(info: api::MemInfo) -> u64 {
    // SAFETY: QEMU's function on QEMU's value.
    API.get()
        .map_or(8, |api| 1 << unsafe { (api.mem_size_shift)(info) })
}

/// Begins to record: QEMU has loaded the plugin in user mode.
///
/// # Errors
/// What is not as it has to be, in words.
pub(crate) fn install(id: api::PluginId, info: &api::Info, args: &[String]) -> Result<(), String> {
    if info.target() != "x86_64" {
        let target = info.target();
        return Err(format!("QEMU user mode for {target}; it records x86_64"));
    }
    maps::remember_qemu();
    let mut state = None;
    for arg in args {
        match arg.split_once('=') {
            Some(("state", path)) => state = Some(path.to_owned()),
            _ => return Err(format!("argument {arg:?}; state=PATH is allowed")),
        }
    }
    let state = state.ok_or("argument state=PATH is missing; start it by piebald record")?;
    let api = Api::load(info).map_err(|name| format!("this QEMU has no function {name}"))?;
    let shared = Shared::open(Path::new(&state))
        .map_err(|e| format!("{state}: {e}; has the recording driver ended?"))?;
    // First the new slot, so that at no time the process has none: the driver
    // would take it for ended.
    process::begin(&shared).map_err(|e| format!("{state}: {e}"))?;
    lane::finish_replaced(&shared);
    STORE_BITS.store(api.store_bits(), Relaxed);
    if SHARED.set(shared).is_err() || API.set(api).is_err() {
        return Err("it is loaded twice".into());
    }
    register(id);
    Ok(())
}

fn register(id: api::PluginId) {
    let Some(api) = API.get() else {
        return;
    };
    // SAFETY: QEMU's functions with callbacks of the declared types; the fork
    // handlers are static functions.
    unsafe {
        api.subscribe::<Recording>(id);
        api.subscribe_calls::<Recording>(id);
        libc::pthread_atfork(
            Some(process::before_fork),
            Some(process::after_fork_in_parent),
            Some(process::after_fork_in_child),
        );
    }
}

/// What is done when QEMU calls.
struct Recording;

impl Events for Recording {
    unsafe fn translate(tb: *mut api::Tb) {
        // SAFETY: the caller's word.
        unsafe { translate(tb) }
    }

    fn exit() {
        lane::end_all(calls::exit_status());
        if let Some(shared) = shared() {
            process::end(shared);
        }
    }
}

impl Calls for Recording {
    fn begin(vcpu: c_uint, number: i64, args: [u64; 6]) {
        if let Some(shared) = shared() {
            calls::begin(shared, vcpu, number, args);
        }
    }

    fn end(vcpu: c_uint, number: i64, ret: i64) {
        if let Some(shared) = shared() {
            calls::end(shared, vcpu, number, ret);
        }
    }
}

/// # Safety
/// The block must be under translation.
unsafe fn translate(tb: *mut api::Tb) {
    let (Some(api), Some(shared)) = (API.get(), shared()) else {
        return;
    };
    if !shared.running() {
        return;
    }
    // SAFETY: the block is valid during this call.
    let (addr, code, lengths) = unsafe { read_block(api, tb) };
    let Some((id, block)) = process::translate(shared, addr, &code, &lengths) else {
        return;
    };
    // SAFETY: as above; userdata are words, not pointers.
    unsafe {
        (api.on_tb_exec)(tb, hot::on_block, NO_REGS, Raw::block(id).0 as *mut c_void);
        for hook in &block.hooks {
            let insn = (api.tb_get_insn)(tb, hook.insn as usize);
            watch(api, insn, hook, id, &block.def);
        }
        for &(insn, number) in &block.marks {
            let insn = (api.tb_get_insn)(tb, insn as usize);
            (api.on_insn_exec)(insn, on_mark, NO_REGS, number as usize as *mut c_void);
        }
    }
}

/// # Safety
/// The block must be under translation.
unsafe fn read_block(api: &Api, tb: *mut api::Tb) -> (u64, Vec<u8>, Vec<u8>) {
    // SAFETY: the caller's word; each instruction has as many bytes as it says.
    unsafe {
        let addr = (api.tb_vaddr)(tb);
        let n = (api.tb_n_insns)(tb);
        let mut code = Vec::with_capacity(n * 4);
        let mut lengths = Vec::with_capacity(n);
        for i in 0..n {
            let insn = (api.tb_get_insn)(tb, i);
            lengths.push(api.append_bytes(insn, &mut code) as u8);
            if i == 0 {
                let host = (api.insn_haddr)(insn) as u64;
                GUEST_BASE.store(host.wrapping_sub(addr), Relaxed);
            }
        }
        (addr, code, lengths)
    }
}

/// # Safety
/// The instruction must belong to the block under translation.
unsafe fn watch(api: &Api, insn: *mut api::Insn, hook: &decode::Hook, block: u32, def: &BlockDef) {
    let own = def.accesses.iter().filter(|a| a.insn == hook.insn);
    let newer = api.ends_watches();
    let last = hook.insn + 1 == def.instrs && !newer;
    if newer && hook.area {
        // SAFETY: the caller's word.
        unsafe { (api.on_insn_exec)(insn, hot::before_area, NO_REGS, core::ptr::null_mut()) };
    }
    let loads = own.clone().all(|a| a.kind == AccessKind::Load);
    let (callback, low): (api::Mem, u64) = match hook.watch {
        Watch::Join(size) if newer && hook.area => (hot::on_small_area, size.into()),
        Watch::Pieces if newer && hook.area => (hot::on_area, 0),
        Watch::Plain if newer && hook.repeated => (hot::on_repeated, 0),
        Watch::LoadStore(store) if newer && hook.repeated => {
            (hot::on_repeated_load_store, store.into())
        }
        Watch::Alternate(second) if newer && hook.repeated => {
            (hot::on_repeated_alternate, second.into())
        }
        Watch::Plain if last => (hot::on_last, block.into()),
        Watch::LoadStore(store) if last && own.count() == 2 => {
            (hot::on_last_load_store, hot::last_pair(store, block))
        }
        Watch::Pieces if last && loads => (hot::on_last_piece, 0),
        Watch::Plain => (hot::on_plain, 0),
        Watch::Join(size) => (hot::on_join, size.into()),
        Watch::Pieces => (hot::on_piece, 0),
        Watch::Update => (hot::on_update, 0),
        Watch::LoadStore(store) => (hot::on_load_store, store.into()),
        Watch::Alternate(second) => (hot::on_alternate, second.into()),
    };
    let data = Raw::access(hook.access, low).0 as *mut c_void;
    // Always both directions: QEMU 7.2 mistakes one for the other when it filters
    // (loads count as stores, stores as both), and with two callbacks on one
    // instruction it drops reports of helper functions.
    // SAFETY: the caller's word.
    unsafe { (api.on_mem)(insn, callback, NO_REGS, MEM_RW, data) }
}

unsafe extern "C" fn on_mark(vcpu: c_uint, data: *mut c_void) {
    let number = data as usize as u32;
    let Some(shared) = shared() else {
        return;
    };
    if let Some(lane) = lane::lane(vcpu).as_mut().and_then(|l| l.as_mut()) {
        let region = shared.region_from != u32::MAX;
        if region && number == shared.region_from && shared.open.load(Acquire) == 0 {
            lane.split(shared, false);
            shared.open.store(1, Release);
            shared.opened.store(1, Release);
            lane.event(shared, EventKind::Mark(number));
        } else if region && number == shared.region_to && shared.open.load(Acquire) != 0 {
            lane.event(shared, EventKind::Mark(number));
            lane.split(shared, true);
            shared.open.store(0, Release);
        } else {
            lane.event(shared, EventKind::Mark(number));
        }
    }
}
