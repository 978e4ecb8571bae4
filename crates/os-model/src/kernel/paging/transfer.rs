//! `read` and `write`, when memory is paged: page by page, as far as they get.

use piebald_units::{Pfn, VirtAddr, Vpn, op::RefKind};

use super::{
    super::{
        Action, Actions, Kernel, KernelError, Path, SysWork, charge::STRUCT_PAGE_SITE, fault::Site,
        mapping::Caller, syscall::Transfer,
    },
    Held,
};
use crate::{
    file::{Request, Span},
    space::{Entry, VPN_MASK},
};

/// A transfer under way.
#[derive(Clone, Copy)]
pub(in super::super) struct Ongoing {
    transfer: Transfer,
    /// Bytes of the pages that are done.
    done: u64,
    /// Bytes of the present page that are copied.
    part: u64,
    /// The present page had to be waited for.
    waited: bool,
    /// The present page, or the last one, while its copy is performed.
    pub held: Option<Held>,
}

impl Ongoing {
    fn offset(&self) -> u64 {
        self.transfer.offset + self.done
    }

    /// Bytes of the present page that belong to the transfer.
    fn len(&self) -> u64 {
        (4096 - (self.offset() & 4095)).min(self.transfer.len - self.done)
    }

    fn request(&self) -> Request {
        let Transfer {
            file, offset, len, ..
        } = self.transfer;
        let (span, page) = (Span { offset, len }, self.offset() >> 12);
        match self.transfer.to_user {
            true => Request::Read { file, span, page },
            false => Request::Write { file, span, page },
        }
    }
}

impl Kernel {
    /// Begins a transfer.
    pub(in super::super) fn begin_transfer(
        &mut self,
        c: Caller,
        transfer: Transfer,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        // What a program has read was there.
        let pages = match (transfer.to_user, transfer.len) {
            (true, 1..) => (transfer.offset + transfer.len).div_ceil(4096),
            _ => 0,
        };
        self.ensure_file(transfer.file, pages)?;
        self.pool_mut().task(c.task).transfer = Some(Ongoing {
            transfer,
            done: 0,
            part: 0,
            waited: false,
            held: None,
        });
        self.go_on(c, actions)
    }

    /// Copies the next page of the task's transfer.
    pub(super) fn go_on(
        &mut self,
        c: Caller,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        let mine = self.pool_mut().task(c.task);
        mine.is_blocked = false;
        let Some(mut t) = mine.transfer.take() else {
            return Ok(SysWork::Done);
        };
        if t.part == t.len() && t.held.is_some() {
            (t.done, t.part) = (t.done + t.part, 0);
            if let Some(held) = t.held.take() {
                self.release(held, c.core);
            }
        }
        if t.done == t.transfer.len {
            return Ok(SysWork::Done);
        }
        let went = self.copy_page(c, &mut t, actions);
        self.pool_mut().task(c.task).transfer = Some(t);
        Ok(match went? {
            true => SysWork::More,
            false => SysWork::Blocked,
        })
    }

    /// False if the task waits.
    fn copy_page(
        &mut self,
        c: Caller,
        t: &mut Ongoing,
        actions: &mut Actions,
    ) -> Result<bool, KernelError> {
        let held = match t.held {
            Some(held) => held,
            None => {
                if t.transfer.to_user {
                    self.ensure_file(t.transfer.file, (t.offset() >> 12) + 1)?;
                }
                let before = self.used_ahead();
                let Some(held) = self.page(c, t.request(), actions)? else {
                    t.waited = true;
                    return Ok(false);
                };
                let ahead = self.used_ahead() > before;
                self.count_use(c, t, ahead);
                let at = self.boot.struct_page(held.frame);
                actions.touch(at, RefKind::Update, STRUCT_PAGE_SITE);
                actions.instrs(self.config.costs.per_page_instrs);
                t.held = Some(held);
                held
            }
        };
        while t.part < t.len() {
            let to_go = t.len() - t.part;
            t.part += match t.transfer.buffer.0 {
                0 => to_go,
                _ => match self.copy_part(c, t, held, actions)? {
                    Some(copied) => copied,
                    None => return Ok(false),
                },
            };
        }
        Ok(true)
    }

    /// Pages that readahead brought in and that were used since.
    fn used_ahead(&self) -> u64 {
        let paging = self.pool.as_ref().and_then(|pool| pool.paging.0.as_ref());
        paging.map_or(0, |p| p.stats().prefetched_used)
    }

    /// Books the use of a page that is there now. `ahead`: it is the first use of one that
    /// was read ahead.
    fn count_use(&mut self, c: Caller, t: &mut Ongoing, ahead: bool) {
        let waited = std::mem::take(&mut t.waited);
        let usage = self.usage_mut(c.process);
        usage.io_pages += 1;
        usage.io_waits += u64::from(waited);
        if t.transfer.to_user {
            usage.io_reads.pages += 1;
            usage.io_reads.waits += u64::from(waited);
            usage.io_reads.ahead += u64::from(ahead && !waited);
        }
    }

    /// Copies what lies on one page of the program's buffer; `None` if that has to come
    /// first.
    fn copy_part(
        &mut self,
        c: Caller,
        t: &Ongoing,
        held: Held,
        actions: &mut Actions,
    ) -> Result<Option<u64>, KernelError> {
        let addr = VirtAddr(t.transfer.buffer.0.wrapping_add(t.done + t.part));
        let len = (4096 - addr.page_offset()).min(t.len() - t.part);
        let Some(user) = self.user_page_paged(c, addr, t.transfer.to_user, actions)? else {
            return Ok(None);
        };
        let file = (
            Pfn(held.frame.into()),
            ((t.offset() + t.part) & 4095) as u16,
        );
        let user = (user, addr.page_offset() as u16);
        let (from, to) = match t.transfer.to_user {
            true => (file, user),
            false => (user, file),
        };
        actions.push(Action::CopyUser {
            from: from.0,
            from_offset: from.1,
            to: to.0,
            to_offset: to.1,
            len: len as u16,
            load: t.transfer.load,
        });
        Ok(Some(len))
    }

    /// The frame of a page of the program's buffer, with its access bits set.
    fn user_page_paged(
        &mut self,
        c: Caller,
        addr: VirtAddr,
        write: bool,
        actions: &mut Actions,
    ) -> Result<Option<Pfn>, KernelError> {
        let vpn = Vpn(addr.0 >> 12 & VPN_MASK);
        let site = Site {
            task: c.task,
            core: c.core,
            process: c.process,
            vpn,
            write,
        };
        let fits = |e: &Entry| !e.has(Entry::HINT) && (!write || e.has(Entry::WRITE));
        let found = self.process(c.process).space.entry(vpn).filter(fits);
        if found.is_none() {
            self.counters.faults += 1;
            self.charge(Path::Fault, c.core, Some(c.task), actions);
            if self.resolve_paged(site, actions)?.is_none() {
                return Ok(None);
            }
            self.process_mut(c.process).note_fault(vpn);
        }
        let bits = Entry::ACCESSED | if write { Entry::DIRTY } else { 0 };
        let tables = &mut self.process_mut(c.process).space.tables;
        Ok(tables.lookup(vpn).map(|(entry, _)| {
            tables.update(vpn, entry.with(bits));
            entry.pfn()
        }))
    }
}
