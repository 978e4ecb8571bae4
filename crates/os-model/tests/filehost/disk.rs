//! A disk with two costs: a seek, unless a request begins where the last one ended,
//! and a time per page.

use std::collections::VecDeque;

use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, BlockReq, ReqId},
};

#[derive(Clone, Debug)]
pub struct TestDisk {
    pub seek: Picos,
    pub page: Picos,
    head: Lba,
    busy_until: Picos,
    queue: VecDeque<(ReqId, Picos)>,
    ids: u64,
    /// Every request, and when it was handed in.
    pub log: Vec<(BlockReq, Picos)>,
}

impl Default for TestDisk {
    /// 10 ms and 1 ms.
    fn default() -> Self {
        Self::new(Picos(10_000_000_000), Picos(1_000_000_000))
    }
}

impl TestDisk {
    pub fn new(seek: Picos, page: Picos) -> Self {
        Self {
            seek,
            page,
            head: Lba(u64::MAX),
            busy_until: Picos(0),
            queue: VecDeque::new(),
            ids: 0,
            log: Vec::new(),
        }
    }

    /// `(first page, pages)` of all reads or writes.
    pub fn requests(&self, dir: BlockDir) -> Vec<(u64, u64)> {
        let of_dir = self.log.iter().filter(|(r, _)| r.dir == dir);
        of_dir
            .map(|(r, _)| (r.lba.0 / 8, u64::from(r.sectors) / 8))
            .collect()
    }
}

impl BlockPort for TestDisk {
    fn submit(&mut self, req: BlockReq, now: Picos) -> ReqId {
        if let Some((_, last)) = self.log.last() {
            assert!(now >= *last, "requests are handed in in rising time");
        }
        let seek = match req.lba == self.head {
            true => Picos(0),
            false => self.seek,
        };
        let transfer = Picos(self.page.0 * u64::from(req.sectors) / 8);
        self.busy_until = self.busy_until.max(now) + seek + transfer;
        self.head = Lba(req.lba.0 + u64::from(req.sectors));
        self.log.push((req, now));
        self.ids += 1;
        self.queue.push_back((ReqId(self.ids), self.busy_until));
        ReqId(self.ids)
    }

    fn next_done(&self) -> Option<(ReqId, Picos)> {
        self.queue.front().copied()
    }

    fn retire(&mut self, id: ReqId) {
        assert_eq!(self.queue.pop_front().map(|e| e.0), Some(id));
    }
}
