//! The machine with shadow tags: see [`crate::shadow`].

use piebald_units::{CoreSet, MAX_CORES, PAGE_SHIFT, Pfn};

use super::Machine;
use crate::{
    error::SpecError,
    shadow::{MissCurve, Shadow, ShadowRequest},
    spec::MachineSpec,
};

impl Machine {
    /// From now on some cores are watched.
    pub(super) fn watch(
        &mut self,
        spec: &MachineSpec,
        request: &ShadowRequest,
        seed: u64,
    ) -> Result<(), SpecError> {
        let cores = self.watched(request.cores)?;
        let last = self.levels.len() - 1;
        if last == 0 {
            let allowed = "two levels or more: what hits the only one is not looked at";
            return Err(SpecError::new("cache", "one level", allowed));
        }
        let topology = &self.hierarchy.topology;
        let path = &topology.paths[cores.trailing_zeros() as usize];
        let cache = &topology.caches[usize::from(path.data[last])];
        // Levels were checked to be there, one each, when the caches were built.
        let Some(like) = spec.cache.iter().max_by_key(|c| c.level) else {
            return Err(SpecError::new("cache", "[]", "at least one"));
        };
        let frames = self.memory.size() >> PAGE_SHIFT;
        let shadow = Shadow::new(request, cores, (cache, like), frames, seed)?;
        self.hierarchy.watch(shadow);
        Ok(())
    }

    /// The physical cores of some hardware threads that share a last level.
    fn watched(&self, threads: CoreSet) -> Result<u64, SpecError> {
        let there = self.threads.len();
        let groups = &self.hierarchy.topology.groups;
        let mut cores = 0u64;
        for thread in threads.iter().map(|t| usize::from(t.0)) {
            if thread >= there {
                let allowed = format!("0-{} on this machine", there - 1);
                return Err(SpecError::new("shadow.cores", threads, allowed));
            }
            cores |= 1 << self.physical(thread);
        }
        if cores == 0 || !groups.iter().any(|group| cores & !group == 0) {
            let allowed = format!(
                "one or more of 0-{}, all behind one instance of the last level",
                there.min(MAX_CORES) - 1
            );
            return Err(SpecError::new("shadow.cores", threads, allowed));
        }
        Ok(cores)
    }

    /// A page of the program that is watched is given a frame: it takes its turn. Frames
    /// that had theirs keep it. To be called before anything touches the page; what was
    /// never called out counts as the kernel's. Without shadow tags it does nothing.
    pub fn page_has_come(&mut self, frame: Pfn) {
        if let Some(shadow) = &mut self.hierarchy.shadow {
            shadow.page_has_come(frame);
        }
    }

    /// Forgets the counts of the shadow tags and keeps their lines: what is asked for
    /// begins here. Without shadow tags it does nothing.
    pub fn restart_miss_curve(&mut self) {
        if let Some(shadow) = &mut self.hierarchy.shadow {
            shadow.restart();
        }
    }

    /// Misses of the last level at every partition size since the last restart; none
    /// without [`Options::shadow`](super::Options::shadow).
    pub fn miss_curve(&self) -> Option<MissCurve> {
        self.hierarchy.shadow.as_ref().map(|s| s.curve())
    }
}
