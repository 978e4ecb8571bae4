//! The machine model inside QEMU system mode: a guest's references by physical address,
//! through the caches and DRAM banks of a modelled machine.
//!
//! * `args`: what the plugin is told; `results`: what it writes;
//! * `mark`: how programs in the guest say what counts; `decode`: what else it must know of
//!   instructions; `address`: where an access went;
//! * `word`, `lanes`: what the virtual processors did, merged by instruction clocks;
//! * `watcher`: the machine model and the regions; `published`: counters that the guest reads.
//!
//! # What is asked of QEMU
//! All virtual processors run on one thread (`-accel tcg,thread=single`): the counter of
//! instructions and everything here belongs to that thread, and a second one ends QEMU with
//! a message. With `-icount` guest time is instruction time. A disk still answers in the host's
//! time, so that runs differ a little (`docs/guest.md`).
//!
//! # What is not seen
//! Instruction fetches, page walks, and what devices write to memory. A block that an
//! exception leaves in its middle counts all its instructions.

mod address;
mod args;
mod decode;
pub mod held;
mod lanes;
mod mark;
pub mod published;
pub mod results;
mod running;
mod watcher;
mod word;

use core::cell::UnsafeCell;
use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use crate::api::{self, Api, Counting, CpuApi, Events, MEM_RW, NO_REGS, SystemApi};
use address::{Addresses, Place};
pub use args::{MAX_MEMORY, QUANTUM, TURN};
use decode::Nature;
use lanes::{Lanes, Next};
pub use mark::{Mark, Op};
use results::{Results, SCHEMA, Work};
use running::Running;
use watcher::Watcher;
use word::Kind;

static API: OnceLock<(Api, SystemApi)> = OnceLock::new();
static STATE: Owned = Owned(UnsafeCell::new(None));
/// QEMU's thread of the virtual processors; 0 = not seen yet.
static THREAD: AtomicI64 = AtomicI64::new(0);

/// Everything that the callbacks change.
struct State {
    watching: bool,
    counting: Counting,
    /// Instructions of all virtual processors.
    counted: Box<UnsafeCell<u64>>,
    running: Running,
    stores: api::MemInfo,
    sizes: SizeBits,
    addresses: Addresses,
    lanes: Lanes,
    /// Ends turns; `None` = QEMU decides alone.
    cpus: Option<CpuApi>,
    watcher: Watcher,
    output: PathBuf,
    /// The results before the guest ran.
    empty: Results,
    elsewhere: u64,
    /// When watching began, and how long it took before: wall-clock and processor seconds.
    since: Option<(Instant, f64)>,
    seconds: (f64, f64),
}

struct Owned(UnsafeCell<Option<State>>);

// SAFETY: callbacks come on one thread (`THREAD`), which is checked at each translation, and
// at the end from another one when no virtual processor runs any more.
unsafe impl Sync for Owned {}

/// # Safety
/// To be called on QEMU's thread of virtual processors, or when that has stopped; the
/// reference must be gone before the callback returns.
#[inline(always)]
unsafe fn state() -> Option<&'static mut State> {
    // SAFETY: the caller's word.
    unsafe { (*STATE.0.get()).as_mut() }
}

/// Begins to watch a machine: QEMU has loaded the plugin in system mode.
///
/// # Errors
/// What is not as it has to be, in words.
pub(crate) fn install(id: api::PluginId, info: &api::Info, words: &[String]) -> Result<(), String> {
    if info.target() != "x86_64" {
        let target = info.target();
        return Err(format!("QEMU system mode for {target}; it watches x86_64"));
    }
    let args = args::read(words)?;
    let missing = |name| format!("this QEMU has no function {name}");
    let api = Api::load(info).map_err(missing)?;
    let system = SystemApi::load().map_err(missing)?;
    let counting = Counting::load(info, add_instructions).map_err(missing)?;
    let running = Running::new(&api, usize::try_from(info.smp_vcpus).unwrap_or(1))?;
    let vcpus = usize::try_from(info.smp_vcpus).unwrap_or(0).max(1);
    let watcher = Watcher::new(&args, vcpus)?;
    let empty = Results {
        schema: SCHEMA,
        machine: args.machine.name.clone(),
        features: args.features.on().into_iter().map(str::to_owned).collect(),
        levels: watcher.levels().to_vec(),
        quantum: args.quantum,
        memory: args.memory,
        complete: false,
        work: Work::default(),
        dumps: Vec::new(),
        regions: Vec::new(),
        last_levels: Vec::new(),
    };
    // Without these functions turns are as long as QEMU likes, and the results say so.
    let cpus = args.turn.and_then(|_| CpuApi::load().ok());
    let turn = match (&cpus, args.turn) {
        (Some(_), Some(turn)) => turn,
        _ => u64::MAX,
    };
    // An output that cannot be written must show now, not after the run.
    empty.write(&args.output)?;
    let new = State {
        watching: false,
        counting,
        counted: Box::new(UnsafeCell::new(0)),
        running,
        stores: api.store_bits(),
        sizes: SizeBits::ask(&api)?,
        addresses: Addresses::new(args.memory),
        lanes: Lanes::new(vcpus, args.quantum, turn),
        cpus,
        watcher,
        output: args.output,
        empty,
        elsewhere: 0,
        since: None,
        seconds: (0.0, 0.0),
    };
    // SAFETY: QEMU loads plugins before any virtual processor runs.
    unsafe { *STATE.0.get() = Some(new) };
    if API.set((api, system)).is_err() {
        return Err("it is loaded twice".into());
    }
    if let Some((api, _)) = API.get() {
        // SAFETY: QEMU's name for this plugin.
        unsafe {
            api.subscribe::<Watching>(id);
        }
    }
    Ok(())
}

/// Where a report says how many bytes were accessed, found by asking QEMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SizeBits {
    shift: u32,
    mask: u32,
}

impl SizeBits {
    fn ask(api: &Api) -> Result<Self, String> {
        // SAFETY: QEMU's function on numbers.
        let size = |bit: u32| unsafe { (api.mem_size_shift)(1 << bit) };
        Self::of(size).ok_or_else(|| "this QEMU reports sizes in an unknown form".into())
    }

    /// The bits that count 1, 2 and 4, which must lie side by side.
    fn of(size: impl Fn(u32) -> c_uint) -> Option<Self> {
        let bits: Vec<u32> = (0..u32::BITS).filter(|b| size(*b) != 0).collect();
        let (first, n) = (*bits.first()?, bits.len() as u32);
        let in_turn = bits
            .iter()
            .zip(0..)
            .all(|(b, i)| size(*b) == 1 << i && *b == first + i);
        (in_turn && (2..=3).contains(&n)).then_some(Self {
            shift: first,
            mask: (1 << n) - 1,
        })
    }

    #[inline(always)]
    const fn read(self, info: api::MemInfo) -> u32 {
        info >> self.shift & self.mask
    }
}

impl State {
    /// Instructions up to one that has `behind` others after it in its block.
    #[inline(always)]
    fn counted(&self, behind: u64) -> u64 {
        // SAFETY: what counts the block has added to it and does not do so now.
        unsafe { *self.counted.get() }.wrapping_sub(behind)
    }

    fn mark(&mut self, vcpu: usize, counted: u64, mark: Mark) {
        if !self.watching && mark.op == Op::Start {
            self.watching = true;
            self.since = Some((Instant::now(), cpu_seconds()));
            self.lanes.start(vcpu, counted);
        }
        if self.watching {
            let more = self
                .lanes
                .mark(vcpu, counted, mark.code(), &mut self.watcher);
            // What is published has to have all that the reader did before.
            let more = more && (mark.op != Op::Publish || self.lanes.flush(&mut self.watcher));
            if !more {
                self.stop();
            }
        } else {
            lanes::Sink::mark(&mut self.watcher, vcpu, mark.code());
        }
        if mark.op == Op::Publish {
            self.watcher.publish();
        }
    }

    #[cold]
    fn end_turn(&self, vcpu: c_uint) {
        let Some(cpus) = &self.cpus else {
            return;
        };
        // SAFETY: QEMU's own functions, on the thread of virtual processors; a null
        // pointer is checked.
        unsafe {
            let cpu = (cpus.get_cpu)(vcpu as i32);
            if !cpu.is_null() {
                (cpus.exit)(cpu);
            }
        }
    }

    #[cold]
    fn stop(&mut self) {
        self.watching = false;
        if let Some((wall, cpu)) = self.since.take() {
            self.seconds.0 += wall.elapsed().as_secs_f64();
            self.seconds.1 += cpu_seconds() - cpu;
        }
    }

    fn finish(&mut self) {
        if self.watching {
            self.lanes.flush(&mut self.watcher);
            self.stop();
        }
        let results = Results {
            complete: true,
            work: Work {
                references: self.watcher.references,
                elsewhere: self.elsewhere,
                host_seconds: self.seconds.0,
                cpu_seconds: self.seconds.1,
                stood: self.lanes.stood,
                forced: self.lanes.forced,
                addresses: self.addresses.way().to_owned(),
                turns_end: self.cpus.is_some(),
            },
            dumps: self.watcher.dumps().to_vec(),
            regions: self.watcher.regions(),
            last_levels: self.watcher.last_levels().to_vec(),
            ..self.empty.clone()
        };
        if let Err(why) = results.write(&self.output) {
            eprintln!("piebald guest: {why}");
        }
    }
}

/// Processor seconds that QEMU has used so far.
fn cpu_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Bits of what callbacks are given that say how many instructions of the block come behind
/// theirs; above lies which mark it is.
const BEHIND_BITS: u32 = 16;
const BEHIND: usize = (1 << BEHIND_BITS) - 1;

fn check_thread() {
    // SAFETY: a system call without arguments.
    let here = i64::from(unsafe { libc::gettid() });
    let first = THREAD.compare_exchange(0, here, Relaxed, Relaxed);
    if first.is_err_and(|known| known != here) {
        eprintln!(
            "piebald guest: virtual processors run on several threads; \
             start QEMU with -accel tcg,thread=single"
        );
        std::process::exit(1);
    }
}

/// What is done when QEMU calls.
struct Watching;

impl Events for Watching {
    unsafe fn translate(tb: *mut api::Tb) {
        // SAFETY: the caller's word.
        unsafe { translate(tb) }
    }

    fn exit() {
        // SAFETY: the virtual processors have stopped.
        if let Some(state) = unsafe { state() } {
            state.finish();
        }
    }
}

/// # Safety
/// The block must be under translation.
unsafe fn translate(tb: *mut api::Tb) {
    check_thread();
    // SAFETY: QEMU's thread of virtual processors.
    let (Some((api, _)), Some(state)) = (API.get(), (unsafe { state() })) else {
        return;
    };
    let mut bytes = Vec::new();
    // SAFETY: the block and its instructions are valid during this call.
    unsafe {
        let n = (api.tb_n_insns)(tb);
        let word = state.counted.get();
        state.counting.add(api, tb, word, n as u64);
        for i in 0..n {
            let insn = (api.tb_get_insn)(tb, i);
            bytes.clear();
            api.append_bytes(insn, &mut bytes);
            watch(api, insn, &bytes, (n - 1 - i).min(BEHIND));
        }
    }
}

/// Asks for the callbacks of one instruction.
///
/// # Safety
/// The instruction must belong to the block under translation.
unsafe fn watch(api: &Api, insn: *mut api::Insn, bytes: &[u8], behind: usize) {
    let callback: api::Mem = match decode::nature(bytes) {
        Nature::NonTemporal => on_non_temporal,
        Nature::Locked => on_locked,
        Nature::Waits => {
            // SAFETY: the caller's word; the userdata is a number.
            unsafe { (api.on_insn_exec)(insn, on_wait, NO_REGS, behind as *mut c_void) };
            return;
        }
        Nature::Plain => match Mark::of(bytes) {
            Some(mark) => {
                let data = (usize::from(mark.code()) << BEHIND_BITS | behind) as *mut c_void;
                // SAFETY: as above.
                unsafe { (api.on_insn_exec)(insn, on_mark, NO_REGS, data) };
                return;
            }
            None => on_access,
        },
    };
    // SAFETY: as above.
    unsafe { (api.on_mem)(insn, callback, NO_REGS, MEM_RW, behind as *mut c_void) };
}

/// Runs for each access of an ordinary instruction.
unsafe extern "C" fn on_access(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    // SAFETY: QEMU's thread of virtual processors, in the report of an access.
    unsafe { access(vcpu, info, addr, data, [Kind::Load, Kind::Store]) }
}

/// Runs for each access of a non-temporal instruction.
unsafe extern "C" fn on_non_temporal(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
) {
    // SAFETY: as above.
    unsafe { access(vcpu, info, addr, data, [Kind::LoadNt, Kind::StoreNt]) }
}

/// Runs for each access of a locked instruction.
unsafe extern "C" fn on_locked(vcpu: c_uint, info: api::MemInfo, addr: u64, data: *mut c_void) {
    // SAFETY: as above.
    unsafe { access(vcpu, info, addr, data, [Kind::Load, Kind::StoreLocked]) }
}

/// # Safety
/// To be called on QEMU's thread of virtual processors, in the report of an access.
#[inline(always)]
unsafe fn access(
    vcpu: c_uint,
    info: api::MemInfo,
    addr: u64,
    data: *mut c_void,
    [load, store]: [Kind; 2],
) {
    // SAFETY: the caller's word.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    if !state.watching {
        return;
    }
    let Some((_, system)) = API.get() else {
        return;
    };
    let vcpu = state.running.of(vcpu);
    // SAFETY: as above.
    match unsafe { state.addresses.find(system, info, addr) } {
        Place::Memory(phys) => {
            let counted = state.counted(data as u64);
            let kind = if info & state.stores != 0 {
                store
            } else {
                load
            };
            let next = state.lanes.reference(
                vcpu as usize,
                counted,
                kind,
                phys,
                state.sizes.read(info),
                &mut state.watcher,
            );
            match next {
                Next::GoOn => {}
                Next::EndTurn => state.end_turn(vcpu),
                Next::Stop => state.stop(),
            }
        }
        Place::Elsewhere => state.elsewhere += 1,
    }
}

/// Runs for each execution of a block where QEMU does not count by itself.
unsafe extern "C" fn add_instructions(_: c_uint, n: *mut c_void) {
    // SAFETY: QEMU's thread of virtual processors.
    if let Some(state) = unsafe { state() } {
        *state.counted.get_mut() += n as u64;
    }
}

/// Runs before an instruction that waits.
unsafe extern "C" fn on_wait(vcpu: c_uint, data: *mut c_void) {
    // SAFETY: QEMU's thread of virtual processors.
    if let Some(state) = unsafe { state() }
        && state.watching
    {
        let vcpu = state.running.of(vcpu);
        let counted = state.counted(data as u64);
        state.lanes.wait(vcpu as usize, counted);
    }
}

/// Runs before a mark.
unsafe extern "C" fn on_mark(vcpu: c_uint, data: *mut c_void) {
    let data = data as usize;
    // SAFETY: QEMU's thread of virtual processors.
    let Some(state) = (unsafe { state() }) else {
        return;
    };
    if let Some(mark) = Mark::from_code((data >> BEHIND_BITS) as u16) {
        let vcpu = state.running.of(vcpu);
        let counted = state.counted((data & BEHIND) as u64);
        state.mark(vcpu as usize, counted, mark);
    }
}
