//! The simulated operating system: frames, address spaces, system calls, run
//! queues.
//!
//! The crate decides nothing about time and knows no machine. A host (the
//! simulator) drives it, performs the [`Actions`](kernel::Actions) that it
//! hands back through its memory port, and owns all clocks.
//!
//! # Rooms
//! * [`frames`]: which frame a request gets (stock Linux buddy, random, bin
//!   hopping), and ageing;
//! * [`space`]: areas, page tables in real frames, access bits;
//! * [`kernel`]: processes and tasks, translation, faults, system calls;
//! * [`file`](mod@file): page cache, readahead, write-back, swap; [`io`]: the request queue;
//! * [`sched`]: queues, pinning, slices, events;
//! * [`replace`]: replacement policies of the literature, and the registry of all.
//!
//! # The interface in one view
//! ```text
//! Kernel::new(KernelConfig::new(cores), Box<dyn OwnedFrames>) -> Kernel
//!   .age(&Age::new(seed, free_permille, cores))         before programs start
//!   .start(program) -> TaskId                           one task, empty space
//!   .translate(task, &[MemRef], &mut Vec<PhysRef>) -> Translated { consumed, fault }
//!   .fault(task, core, Fault, &mut Actions) -> FaultWork { kind, frame, size }
//!   .syscall(task, core, &SysOp, &mut Actions) -> SysWork { Done | Spawned { task, thread } | Schedule }
//!   .read_part(task, core, &ReadPart, &mut Actions) -> SysWork
//!   .exit(task, core, &mut Actions)      .tick(core, task, &mut Actions)      .switch(core, task, &mut Actions)
//!   .space(task) -> &AddressSpace (PageTables)          .kernel_space() -> &KernelSpace (PageTables)
//!   .reserve(task, core, &ColorAsk, &mut Actions)   .resize(..)   .attach(..)   .set_on_limit(task, OnLimit)
//!   .recolor(task, core, max_pages, &mut Actions) -> Recolored { moved, failed, left, done }
//!   .migrate(task, core, vpn, Move, &mut Actions) -> Moved
//!   .scan_accessed(task, vpns, clear, |vpn, entry| ..) -> Scan
//!   .page_with(Box<dyn Paging>, PagingConfig)           one memory for files and programs
//!   .at(now)   .next_event() -> Option<Picos>   .advance(now, &mut Actions) -> Vec<Woken>
//!   .resume(task, core, &mut Actions) -> SysWork { .. | More | Blocked }
//!   .owner_of(pfn) -> Owner   .space(task)?.resident()   .counters()   .validate()
//!
//! Action  = Instrs(n)                       MemoryPort::retire
//!         | Touch { frame, .. }             action.refs(&mut refs); MemoryPort::run(core, kernel_space, refs)
//!         | Zero { frame, frames }          MemoryPort::fill, whole frames
//!         | Copy { from, to }               MemoryPort::copy, whole frame
//!         | CopyUser { from, from_offset, to, to_offset, len, load }
//!         | DeviceFill, SwapIn, SwapOut     MemoryPort::device_write, device_write, device_read
//!         | Wait(time)                      the core's clock moves on
//!         | ShootDown { asid, page }        MemoryPort::shoot_down
//!
//! Scheduler::new(SchedConfig::new(cores))
//!   .add(task, CoreSet) -> Wake   .next_on(core) -> Option<TaskId>   .preempt(core)   .contended(core)
//!   .await_event(task, EventKey) -> blocked?   .post(EventKey, &mut Vec<Wake>)
//!   .migrate(task, core) -> CoreId   .balance(core) -> Option<Wake>   .load(core)
//!   .block(task)   .wake(task) -> Wake   .exit(task)   .status(task)   .all_done()   .deadlock()
//! ```
//!
//! Only `Post` and `Await` concern the scheduler: [`SysWork::Schedule`]. A
//! spawned task must be added to it, and the end of one reported to both.
//!
//! [`SysWork::Schedule`]: kernel::SysWork::Schedule
//!
//! # A reference's way
//! ```
//! use piebald_os_model::{
//!     frames::{Flavour, Stock, StockConfig},
//!     kernel::{Actions, Kernel, KernelConfig},
//! };
//! use piebald_units::{CoreId, VirtAddr, op::{MemRef, RefKind}};
//!
//! let frames = Stock::new(&StockConfig::new(1 << 18, 4, Flavour::V2_6_30))?; // 1 GiB
//! let mut kernel = Kernel::new(KernelConfig::new(4), Box::new(frames))?;
//! let task = kernel.start(0)?;
//! let store = MemRef { addr: VirtAddr(0x1000), size: 8, kind: RefKind::Store, ..MemRef::default() };
//! let batch = [store; 3];
//! let (mut physical, mut actions) = (Vec::new(), Actions::new());
//!
//! let mut rest = &batch[..];
//! while !rest.is_empty() {
//!     let t = kernel.translate(task, rest, &mut physical)?;
//!     // ... hand `physical` to the machine, together with kernel.space(task)? ...
//!     rest = &rest[t.consumed..];
//!     if let Some(fault) = t.fault {
//!         kernel.fault(task, CoreId(0), fault, &mut actions)?;
//!         // ... perform `actions` ...
//!         actions.clear();
//!     }
//! }
//! assert_eq!(physical.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod file;
pub mod frames;
pub mod io;
pub mod kernel;
pub mod replace;
pub mod sched;
pub mod space;
