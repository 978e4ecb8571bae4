//! Files, swap space and a replacement policy for a kernel that is to have them.

use piebald_hw::{
    SpecError,
    disk::{Disk, DiskSpec},
};
use piebald_os_model::{
    file::{FileConfig, FileError, FileHost, FileTable, Layout, LayoutError, SwapArea},
    kernel::{Kernel, KernelError, PagingConfig},
    replace::{
        AnyPolicy, PolicySpec,
        registry::{BuildError, Setup},
    },
};
use piebald_policy::{color_map::ColorMap, srm};
use piebald_units::{Lba, block::SECTORS_SHIFT};

/// Longest run whose cost policies may ask for, in pages: DULO's longest sequence.
const LONGEST_RUN: u64 = 128;

/// What a joined machine has besides processors and memory.
#[derive(Clone, Debug)]
pub struct Files {
    /// Which page leaves memory.
    pub replace: PolicySpec,
    /// Readahead, scheduler, write-back. Its swap area is set by
    /// [`swap_pages`](Self::swap_pages); the time of processors is the kernel's matter
    /// and must be zero here.
    pub config: FileConfig,
    /// Where files lie.
    pub layout: Layout,
    /// The disk.
    pub disk: DiskSpec,
    /// Pages of swap space at the disk's end; 0 = none.
    pub swap_pages: u32,
    /// SRM-buffer between replacement and free memory; `None` = frames as they come.
    pub zone: Option<Zone>,
}

/// SRM-buffer's coloured zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// What a colour is. That of the kernel's own colours, if it has some.
    pub map: ColorMap,
    /// Thresholds.
    pub config: srm::Config,
}

/// Why a kernel cannot have files.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The disk.
    #[error("device: {0}")]
    Disk(#[from] SpecError),
    /// The policy.
    #[error(transparent)]
    Policy(#[from] BuildError),
    /// The layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The file side.
    #[error(transparent)]
    Host(#[from] FileError),
    /// The kernel.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Swap space and disk.
    #[error("swap = {swap} pages: the disk has {disk}, and files need some")]
    Swap {
        /// Pages of swap space.
        swap: u32,
        /// Pages of the disk.
        disk: u64,
    },
}

impl Files {
    /// Puts them under a kernel that has no programs yet. All its free memory is for pages but what
    /// Linux keeps of so much.
    ///
    /// # Errors
    /// What does not go together.
    pub fn install(&self, kernel: &mut Kernel) -> Result<(), FilesError> {
        let frames = kernel.free_frames();
        let kept = PagingConfig::for_frames(frames);
        let pages = frames.saturating_sub(kept.reserve.into());
        let disk = Disk::new(&self.disk)?;
        let costs: Vec<u32> = (1..=LONGEST_RUN).map(|n| cost(&disk, n)).collect();
        let config = FileConfig {
            swap: self.swap(&disk)?,
            ..self.config.clone()
        };
        let setup = Setup::new(u32::try_from(pages).unwrap_or(u32::MAX));
        let policy = AnyPolicy::build(&self.replace, &setup, Some(&costs))?;
        let paging = FileHost::new(config, FileTable::new(self.layout)?, policy, disk)?;
        kernel.page_with(Box::new(paging), kept)?;
        if let Some(zone) = &self.zone {
            kernel.color_files(zone.map.clone(), zone.config)?;
        }
        Ok(())
    }

    fn swap(&self, disk: &Disk) -> Result<Option<SwapArea>, FilesError> {
        if self.swap_pages == 0 {
            return Ok(None);
        }
        let pages = disk.capacity_sectors() >> SECTORS_SHIFT;
        let first = pages.checked_sub(self.swap_pages.into());
        let first = first.filter(|f| *f > 0).ok_or(FilesError::Swap {
            swap: self.swap_pages,
            disk: pages,
        })?;
        Ok(Some(SwapArea::new(
            Lba(first << SECTORS_SHIFT),
            self.swap_pages,
        )))
    }
}

/// What the disk takes for a random run, in ns.
fn cost(disk: &Disk, pages: u64) -> u32 {
    let ns = disk.run_cost(pages << SECTORS_SHIFT).0 / 1000;
    u32::try_from(ns).unwrap_or(u32::MAX).max(1)
}
