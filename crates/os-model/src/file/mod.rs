//! The file side of the simulated kernel: files, page cache, readahead, write-back
//! and swap, on one disk.
//!
//! [`FileHost`] is the way in. It is generic over the replacement policy `P` and
//! the disk `D`, is driven by time as an argument, and calls nobody back.
//!
//! ```text
//! FileHost::new(FileConfig, FileTable, policy, disk)
//!   .read(task, file, Span, now)   .write(..)   .touch_mapped(task, file, page, write, now)
//!   .touch_anon(task, page, write, now)         -> Step::Ready(at) | Step::Blocked
//!   .next_event() -> Option<Picos>              when to call advance
//!   .advance(now) -> Vec<Woken { task, at }>    calls that are done
//!   .delete(file, now)   .truncate(file, pages, now)   .exit(task, now)   .close(task, file)
//!   .stats() -> Stats    .io_stats()   .runs() -> &RunLengths   .validate()
//! ```
//!
//! # Driving it
//! Every task has at most one call under way. The driver keeps a clock per task and
//! repeats: if the next event of the host is not later than the earliest ready task,
//! [`advance`](FileHost::advance) to it, else let that task make its next call. All
//! calls and advances come in rising time. When no task is ready and there is no
//! event, tasks that still wait never wake (memory is full of pages that cannot go).
//!
//! ```
//! use piebald_os_model::file::{FileConfig, FileHost, FileTable, Layout, Span, Step};
//! use piebald_os_model::replace::{Arc, ArcConfig};
//! use piebald_units::{FileId, Lba, Picos, TaskId};
//! # use piebald_units::block::{BlockPort, BlockReq, ReqId};
//! # #[derive(Default)]
//! # struct Disk(std::collections::VecDeque<(ReqId, Picos)>, u64);
//! # impl BlockPort for Disk {
//! #     fn submit(&mut self, _: BlockReq, now: Picos) -> ReqId {
//! #         self.1 += 1;
//! #         let start = self.0.back().map_or(now, |last| last.1);
//! #         self.0.push_back((ReqId(self.1), start + Picos(1_000_000)));
//! #         ReqId(self.1)
//! #     }
//! #     fn next_done(&self) -> Option<(ReqId, Picos)> {
//! #         self.0.front().copied()
//! #     }
//! #     fn retire(&mut self, _: ReqId) {
//! #         self.0.pop_front();
//! #     }
//! # }
//!
//! let mut files = FileTable::new(Layout::Packed { start: Lba(0), gap_pages: 0 })?;
//! files.add(FileId(7), 1000)?;
//! let policy = Arc::new(ArcConfig::new(256))?;
//! let mut host = FileHost::new(FileConfig::linux_2_6_30(), files, policy, Disk::default())?;
//!
//! let (task, mut clock) = (TaskId(1), Picos(0));
//! for page in 0..1000 {
//!     match host.read(task, FileId(7), Span::pages(page, 1), clock)? {
//!         Step::Ready(at) => clock = at,
//!         Step::Blocked => loop {
//!             let event = host.next_event().ok_or("nothing will ever happen")?;
//!             if let Some(woken) = host.advance(event)?.first() {
//!                 clock = woken.at;
//!                 break;
//!             }
//!         },
//!     }
//! }
//! assert_eq!(host.stats().reads.misses, 1, "all others were read ahead");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What happens to a page
//! A page that is missing enters the cache before its I/O, locked; whoever needs it
//! waits for it. Demand reads block their task, reads ahead do not. The policy's
//! proposals decide who leaves: clean pages are forgotten, locked ones are passed over.
//! Dirty ones are written, at most a batch at a time, and are outside of the policy's
//! order meanwhile; when that is over they leave, unless they were used again. Behind
//! a batch of dirty pages reclaim waits, so that a policy's choice is never missed by
//! more than that. While anything is dirty, reclaim looks a batch ahead.

mod cache;
mod config;
mod dirty;
mod error;
mod host;
mod key;
mod layout;
mod memory;
mod paging;
pub mod readahead;
mod scatter;
mod span;
mod stats;
mod swap;
mod table;

pub use config::{
    CpuCost, FileConfig, FileConfigError, SwapArea, VictimWrites, Watermarks, WriteBack,
};
pub use error::{BrokenHost, FileError};
pub use host::{FileHost, Removal, Request, Step, Woken};
pub use layout::{Extent, FileIndex, FileTable, Layout, LayoutError, MAX_FILE_PAGES, MAX_FILES};
pub use memory::{Came, Content, Memory, Place, Spared, Unbound};
pub use paging::{FilePaging, Paging};
pub use span::Span;
pub use stats::{Stats, Uses};
