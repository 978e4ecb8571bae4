//! Everything recounted from scratch.

use piebald_policy::contract::replacement::Replacement;
use piebald_units::block::BlockPort;

use super::{
    super::{cache::flag, error::BrokenHost},
    FileHost,
};

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Recounts cache, policy, write-back, swap and queue, and compares. Slow.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&self) -> Result<(), BrokenHost> {
        self.cache.validate()?;
        self.queue.validate().map_err(BrokenHost::Queue)?;
        self.dirty.validate().map_err(BrokenHost::Rule)?;
        if let Some(swap) = &self.swap {
            swap.validate().map_err(BrokenHost::Rule)?;
        }
        self.validate_dirty()?;
        self.validate_io()?;
        self.validate_counts()
    }

    fn validate_dirty(&self) -> Result<(), BrokenHost> {
        let of_files = || self.cache.residents().filter(|(_, p)| !p.key.is_anon());
        let dirty = of_files().filter(|(_, p)| p.is(flag::DIRTY));
        let (mut count, mut listed) = (0, true);
        for (_, p) in dirty {
            count += 1;
            listed &= self.dirty.contains(p.key);
        }
        if count != self.dirty.len() || !listed || self.dirty.iter().any(|k| k.is_anon()) {
            return Err(BrokenHost::Rule("dirty pages of files are listed"));
        }
        let writing = of_files().filter(|(_, p)| p.is(flag::WRITEBACK)).count() as u64;
        if writing != self.dirty.under_way {
            return Err(BrokenHost::Rule("pages under write-back are counted"));
        }
        Ok(())
    }

    fn validate_io(&self) -> Result<(), BrokenHost> {
        let io = flag::LOCKED | flag::WRITEBACK;
        let under_io = self.cache.residents().filter(|(_, p)| p.is(io)).count() as u64;
        if under_io != self.queue.pages_under_way() {
            return Err(BrokenHost::Rule(
                "every page under I/O is in the queue once",
            ));
        }
        let pins: usize = self
            .cache
            .residents()
            .map(|(_, p)| usize::from(p.pins))
            .sum();
        let waiting: usize = self.page_waiters.values().map(Vec::len).sum();
        if pins != waiting {
            return Err(BrokenHost::Rule("a page is held by those that wait for it"));
        }
        let blocked = waiting + self.memory_waiters.len() + self.throttled.len();
        let calls = self.tasks.iter().filter(|t| t.call.is_some()).count();
        if blocked + self.going_on.len() != calls {
            return Err(BrokenHost::Rule(
                "a call that is not done waits for one thing",
            ));
        }
        Ok(())
    }

    fn validate_counts(&self) -> Result<(), BrokenHost> {
        let uses = self.stats.uses();
        if uses.references != uses.hits + uses.waited + uses.misses {
            return Err(BrokenHost::Rule("a reference hits, waits or misses"));
        }
        let unused = self
            .cache
            .residents()
            .filter(|(_, p)| p.is(flag::UNUSED))
            .count() as u64;
        let prefetched = self.stats.prefetched + self.stats.swap_readahead;
        let accounted = self.stats.prefetched_used + self.cache.departures.unused + unused;
        if prefetched != accounted {
            return Err(BrokenHost::Rule(
                "a page read ahead was used, left unused, or is waiting",
            ));
        }
        Ok(())
    }
}
