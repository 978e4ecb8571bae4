//! What the modelled kernel can be set to. Every number has its source;
//! \[M\] marks one that is from memory or chosen, to be adjusted against a real
//! kernel.

use piebald_policy::{color_map::ColorMap, hvr, rainbow};
use piebald_units::Picos;

/// Whether anonymous memory gets 2 MiB pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Thp {
    /// Only 4 KiB pages: kernels before 2.6.38, and those of the papers.
    #[default]
    Never,
    /// A fault in a 2 MiB range that one private anonymous area covers takes a
    /// 2 MiB block if one is free (`transparent_hugepage/enabled = always`).
    Always,
}

/// What one kernel path costs, apart from the work itself (zeroing, copying,
/// page-table entries, `struct page`s), which is charged as what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCost {
    /// Instructions retired.
    pub instrs: u32,
    /// 64 B lines of kernel text fetched.
    pub text_lines: u16,
    /// Lines of the core's own kernel data (run queue, per-core lists): half
    /// loaded, half stored to.
    pub core_lines: u16,
    /// Lines of the task's own kernel data (task struct, kernel stack, areas).
    pub task_lines: u16,
}

impl PathCost {
    const fn new(instrs: u32, text_lines: u16, core_lines: u16, task_lines: u16) -> Self {
        Self {
            instrs,
            text_lines,
            core_lines,
            task_lines,
        }
    }
}

/// Kernel paths that have a cost of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Path {
    /// A page fault, its handler included.
    Fault,
    /// Entering and leaving a system call.
    Syscall,
    /// `mmap`, `munmap`, `mremap`, `madvise`, `brk`.
    Mapping,
    /// `read` and `write` up to the first page.
    File,
    /// A new thread.
    Spawn,
    /// A new process, its page tables apart.
    Fork,
    /// A new image.
    Exec,
    /// The end of a task.
    Exit,
    /// A timer tick.
    Tick,
    /// A switch to another task.
    Switch,
    /// Moving one page to another frame.
    Migrate,
    /// Reserving, changing or joining a partition of colours.
    Colors,
    /// Writing one page to swap space, apart from the device's time.
    SwapOut,
    /// Reading one page back, its fault and the device's time apart.
    SwapIn,
}

/// Number of [`Path`]s.
pub(crate) const NR_PATHS: usize = 14;

/// The cost of every path.
///
/// Defaults are \[M\]: instruction counts and footprints in the range of
/// published `perf` profiles. The fault is set so that a 4 KiB anonymous fault,
/// zeroing included, comes to about 1,300 ns on a 3 GHz core (facts on peer
/// projects), the switch to about 1.5 us with cold lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    /// Indexed by [`Path`].
    paths: [PathCost; NR_PATHS],
    /// Instructions for every further page that a call maps, unmaps, copies the
    /// entry of, or reads through the page cache. \[M\]
    pub per_page_instrs: u32,
    /// Instructions to look at one page in a search for victims or for pages of
    /// other colours. \[M\]
    pub per_scan_instrs: u32,
}

impl Costs {
    /// The cost of a path.
    pub const fn of(&self, path: Path) -> PathCost {
        self.paths[path as usize]
    }

    /// Sets the cost of a path.
    pub const fn set(&mut self, path: Path, cost: PathCost) {
        self.paths[path as usize] = cost;
    }
}

impl Default for Costs {
    fn default() -> Self {
        Self {
            paths: [
                PathCost::new(1_100, 56, 8, 10),    // Fault
                PathCost::new(150, 8, 2, 4),        // Syscall
                PathCost::new(1_800, 72, 4, 14),    // Mapping
                PathCost::new(900, 40, 4, 10),      // File
                PathCost::new(9_000, 160, 16, 48),  // Spawn
                PathCost::new(25_000, 320, 24, 80), // Fork
                PathCost::new(60_000, 480, 24, 80), // Exec
                PathCost::new(15_000, 240, 16, 48), // Exit
                PathCost::new(2_500, 80, 16, 8),    // Tick
                PathCost::new(1_200, 48, 12, 20),   // Switch
                PathCost::new(3_000, 96, 8, 12),    // Migrate
                PathCost::new(2_500, 40, 2, 8),     // Colors
                PathCost::new(4_500, 140, 10, 10),  // SwapOut
                PathCost::new(3_500, 120, 10, 10),  // SwapIn
            ],
            per_page_instrs: 180,
            per_scan_instrs: 15,
        }
    }
}

/// Page colours that processes can reserve for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColorConfig {
    /// What a colour is: the allocator's own map.
    pub map: ColorMap,
    /// The choices about partitions.
    pub rainbow: rainbow::Config,
    /// Programs that are handed over to HVR get their colours from it; `None` = none can be.
    pub hvr: Option<hvr::Config>,
}

/// What happens when a process asks for a page and the colours that bind it are
/// used up. Children inherit it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnLimit {
    /// The request fails, and with it the run.
    #[default]
    Fail,
    /// A page of the same partition leaves memory: a clean page of a file is
    /// dropped, an anonymous one written to swap space.
    Swap,
    /// Any other colour will do, which is counted as a fallback: the process's own
    /// colours do not bind.
    Borrow,
}

/// The device that anonymous pages are written to and read back from. There is no
/// model of it yet: each page takes a fixed time, during which the core that caused
/// it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwapConfig {
    /// 4 KiB pages that it holds, 1 to 2^32 - 1; default 4 GiB.
    pub pages: u32,
    /// Time to read a page, at least 1 ps. Default 77 us: 4 KiB at random, one
    /// request at a time, 870 EVO (SATA), 13,000 per second in KitGuru's review.
    pub read: Picos,
    /// Time to write a page, at least 1 ps. Default 28 us: the same, 36,000 per
    /// second.
    pub write: Picos,
}

impl Default for SwapConfig {
    fn default() -> Self {
        Self {
            pages: 1 << 20,
            read: Picos(77_000_000),
            write: Picos(28_000_000),
        }
    }
}

/// Configuration of the modelled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelConfig {
    /// Cores that the machine has, 1 to 64.
    pub cores: u16,
    /// 2 MiB pages.
    pub thp: Thp,
    /// A load from untouched anonymous memory maps one shared page of zeroes
    /// (all kernels but 2.6.24 to 2.6.31).
    pub zero_page: bool,
    /// 4 KiB pages of kernel text and static data, taken at boot. Default
    /// 16 MiB. \[M\]
    pub image_pages: u32,
    /// Bytes of `struct page` per frame, taken at boot: 64 since 2.6.24 with
    /// memory cgroups, else 56; at most 64 here.
    pub struct_page_bytes: u16,
    /// Unmapping more pages than this drops all TLB entries of the space
    /// instead of each page's (`tlb_single_page_flush_ceiling`, 33).
    pub flush_ceiling: u64,
    /// Time between timer ticks. Default 4 ms: 250 Hz, Debian's and RHEL's
    /// later choice; RHEL 5 has 1000 Hz. \[M\]
    pub tick: Picos,
    /// Costs of kernel paths.
    pub costs: Costs,
    /// Colours that can be reserved; `None` = none, as in a stock kernel.
    pub colors: Option<ColorConfig>,
    /// Swap space, which only processes under [`OnLimit::Swap`] use.
    pub swap: SwapConfig,
}

impl KernelConfig {
    /// The defaults for that many cores.
    pub fn new(cores: u16) -> Self {
        Self {
            cores,
            thp: Thp::default(),
            zero_page: true,
            image_pages: 4096,
            struct_page_bytes: 64,
            flush_ceiling: 33,
            tick: Picos(4_000_000_000),
            costs: Costs::default(),
            colors: None,
            swap: SwapConfig::default(),
        }
    }
}
