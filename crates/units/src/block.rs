//! The port between the operating system and a disk.

use crate::{DiskBlock, Lba, PAGE_SHIFT, Picos};

/// log2 of the sectors of 512 B in a page.
pub const SECTORS_SHIFT: u32 = PAGE_SHIFT - 9;

/// Direction of a disk request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockDir {
    /// From the disk to memory.
    Read,
    /// From memory to the disk.
    Write,
}

/// One request to a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockReq {
    /// First sector.
    pub lba: Lba,
    /// Number of 512 B sectors, at least 1.
    pub sectors: u32,
    /// Read or write.
    pub dir: BlockDir,
}

/// Names a submitted request until it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ReqId(pub u64);

/// A disk as the I/O scheduler sees it.
///
/// The caller submits in rising time, asks for the next completion, and moves
/// its clock there; a completion is handed out once.
pub trait BlockPort {
    /// Hands a request to the disk at `now`.
    fn submit(&mut self, req: BlockReq, now: Picos) -> ReqId;

    /// The earliest request that completes, and when; `None` if the disk is
    /// idle. Changes nothing.
    fn next_done(&self) -> Option<(ReqId, Picos)>;

    /// Takes a completed request off the disk's books.
    fn retire(&mut self, id: ReqId);

    /// Where the page-sized unit that begins at `lba` lies on the medium. Without
    /// more knowledge the address is the position.
    fn place(&self, lba: Lba) -> DiskBlock {
        DiskBlock(lba.0 >> SECTORS_SHIFT)
    }
}
