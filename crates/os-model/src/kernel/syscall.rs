//! System calls.

use piebald_units::{
    CoreId, FileId, Pfn, TaskId, VirtAddr, Vpn,
    memory::Load,
    op::{RefKind, SysOp},
};

use super::{
    Action, Actions, Kernel, KernelError, Path,
    charge::STRUCT_PAGE_SITE,
    fault::{Site, device_fill},
    mapping::{Caller, range},
};
use crate::space::{Entry, Object, ObjectPage, VPN_MASK};

/// What a system call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SysWork {
    /// Done.
    Done,
    /// A task was made; it runs thread `thread` of the program.
    Spawned {
        /// The new task.
        task: TaskId,
        /// As in [`SysOp::Spawn`].
        thread: u32,
    },
    /// A part is done: perform it, then [`resume`](Kernel::resume).
    More,
    /// The task waits; when it is woken, [`resume`](Kernel::resume).
    Blocked,
    /// `Post` and `Await` are the scheduler's; only the entry was charged.
    Schedule,
}

/// A part of a read call, for hosts that choose core and loads for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadPart {
    /// The file.
    pub file: FileId,
    /// Where the part begins, in bytes from the file's start.
    pub offset: u64,
    /// Bytes of it.
    pub len: u64,
    /// Where the part goes; address 0 = nowhere.
    pub buffer: VirtAddr,
    /// How the file's data is loaded.
    pub load: Load,
    /// It is the call's first part, and pays for entering the kernel.
    pub first: bool,
}

/// A file transfer.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    pub file: FileId,
    pub offset: u64,
    pub len: u64,
    pub buffer: VirtAddr,
    pub to_user: bool,
    pub load: Load,
}

impl Kernel {
    /// Performs a system call and appends what it costs.
    ///
    /// Reads and writes copy between the file's page-cache frames and the
    /// buffer, whose missing pages are faulted in. Pages that are not cached
    /// are granted with [`Purpose::File`](piebald_policy::contract::Purpose);
    /// no disk is asked. If memory is [paged](Self::page_with), a disk is, and a call
    /// goes page by page: see [`SysWork::More`] and [`SysWork::Blocked`]. A buffer at address 0 moves nothing to user memory
    /// (`splice`, `sendfile`).
    ///
    /// # Errors
    /// No such task, an argument that cannot be, or no memory.
    pub fn syscall(
        &mut self,
        task: TaskId,
        core: CoreId,
        op: &SysOp,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        let process = self.process_of(task)?;
        let c = Caller {
            task,
            core,
            process,
        };
        self.counters.syscalls += 1;
        self.charge(Path::Syscall, core, Some(task), actions);
        match *op {
            SysOp::Spawn { thread, kind } => {
                let task = self.spawn(c, kind, actions)?;
                return Ok(SysWork::Spawned { task, thread });
            }
            SysOp::Post { .. } | SysOp::Await { .. } => return Ok(SysWork::Schedule),
            SysOp::Exec => self.exec(c, actions)?,
            SysOp::Read {
                file,
                offset,
                len,
                buffer,
            } => {
                let transfer = Transfer {
                    file,
                    offset,
                    len,
                    buffer,
                    to_user: true,
                    load: Load::Caching,
                };
                self.charge(Path::File, core, Some(task), actions);
                return self.transfer(c, transfer, actions);
            }
            SysOp::Write {
                file,
                offset,
                len,
                buffer,
            } => {
                let transfer = Transfer {
                    file,
                    offset,
                    len,
                    buffer,
                    to_user: false,
                    load: Load::Caching,
                };
                self.charge(Path::File, core, Some(task), actions);
                return self.transfer(c, transfer, actions);
            }
            SysOp::Other { .. } => {}
            SysOp::Map { .. }
            | SysOp::Unmap { .. }
            | SysOp::Remap { .. }
            | SysOp::Discard { .. } => {
                self.charge(Path::Mapping, core, Some(task), actions);
                self.mapping(c, op, actions)?;
            }
        }
        Ok(SysWork::Done)
    }

    /// Performs a part of a read call, as [`syscall`](Self::syscall) does the whole of
    /// one. A task may be on another core for each part; only the first one is counted as a
    /// call and charged for entering the kernel.
    ///
    /// # Errors
    /// As for [`syscall`](Self::syscall).
    pub fn read_part(
        &mut self,
        task: TaskId,
        core: CoreId,
        part: &ReadPart,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        let process = self.process_of(task)?;
        let c = Caller {
            task,
            core,
            process,
        };
        if part.first {
            self.counters.syscalls += 1;
            self.charge(Path::Syscall, core, Some(task), actions);
            self.charge(Path::File, core, Some(task), actions);
        }
        let transfer = Transfer {
            file: part.file,
            offset: part.offset,
            len: part.len,
            buffer: part.buffer,
            to_user: true,
            load: part.load,
        };
        self.transfer(c, transfer, actions)
    }

    fn mapping(&mut self, c: Caller, op: &SysOp, actions: &mut Actions) -> Result<(), KernelError> {
        match *op {
            SysOp::Map {
                addr,
                len,
                backing,
                shared,
                ..
            } => {
                let r = range(c.task, "map", addr, len)?;
                self.map_area(c, r, backing, shared, actions)
            }
            SysOp::Unmap { addr, len } => {
                let r = range(c.task, "unmap", addr, len)?;
                self.unmap_range(c, r, actions)
            }
            SysOp::Discard { addr, len } => {
                let r = range(c.task, "discard", addr, len)?;
                self.drop_pages(c, r, actions)
            }
            SysOp::Remap {
                from,
                old_len,
                to,
                new_len,
            } => {
                let old = range(c.task, "remap (from)", from, old_len)?;
                let new = range(c.task, "remap (to)", to, new_len)?;
                if old.first != new.first && old.overlaps(new) {
                    return Err(KernelError::Argument {
                        task: c.task,
                        call: "remap",
                        field: "to",
                        value: to.0,
                        allowed: "the old address, or outside the old range",
                    });
                }
                self.remap(c, old, new, actions)
            }
            _ => Ok(()),
        }
    }

    fn transfer(
        &mut self,
        c: Caller,
        t: Transfer,
        actions: &mut Actions,
    ) -> Result<SysWork, KernelError> {
        let allowed = "a transfer that ends below 2^63";
        if t.offset
            .checked_add(t.len)
            .is_none_or(|end| end > i64::MAX as u64)
        {
            return Err(KernelError::Argument {
                task: c.task,
                call: if t.to_user { "read" } else { "write" },
                field: "len",
                value: t.len,
                allowed,
            });
        }
        if self.is_paged() {
            return self.begin_transfer(c, t, actions);
        }
        let mut done = 0;
        while done < t.len {
            let at = t.offset + done;
            let page = ObjectPage {
                object: Object::File(t.file),
                index: at >> 12,
            };
            let len = (4096 - (at & 4095)).min(t.len - done);
            let (frame, new) = self.object_frame(c.task, c.core, page, actions)?;
            if !t.to_user {
                self.objects.set_written(page.object);
            }
            // What is overwritten as a whole need not be read before.
            if new && (t.to_user || len < 4096) {
                actions.push(device_fill(frame));
            }
            actions.touch(
                self.boot.struct_page(frame),
                RefKind::Update,
                STRUCT_PAGE_SITE,
            );
            actions.instrs(self.config.costs.per_page_instrs);
            if t.buffer.0 != 0 {
                let part = Transfer {
                    offset: at & 4095,
                    len,
                    buffer: VirtAddr(t.buffer.0.wrapping_add(done)),
                    ..t
                };
                // A fault of the buffer may not drop what is being copied.
                self.meta.get(frame);
                let copied = self.copy_user(c, part, frame, actions);
                self.put_frame(frame, c.core);
                copied?;
            }
            done += len;
        }
        Ok(SysWork::Done)
    }

    /// Copies within one file page; `offset` is that in the page.
    fn copy_user(
        &mut self,
        c: Caller,
        t: Transfer,
        frame: u32,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let mut done = 0;
        while done < t.len {
            let addr = VirtAddr(t.buffer.0.wrapping_add(done));
            let len = (4096 - addr.page_offset()).min(t.len - done);
            let user = self.user_page(c, addr, t.to_user, actions)?;
            let file = Pfn(u64::from(frame));
            let (file_offset, user_offset) = ((t.offset + done) as u16, addr.page_offset() as u16);
            let (from, from_offset, to, to_offset) = if t.to_user {
                (file, file_offset, user, user_offset)
            } else {
                (user, user_offset, file, file_offset)
            };
            actions.push(Action::CopyUser {
                from,
                from_offset,
                to,
                to_offset,
                len: len as u16,
                load: t.load,
            });
            done += len;
        }
        Ok(())
    }

    /// The frame of a user page that the kernel reads or writes, faulted in if
    /// need be, with its access bits set.
    fn user_page(
        &mut self,
        c: Caller,
        addr: VirtAddr,
        write: bool,
        actions: &mut Actions,
    ) -> Result<Pfn, KernelError> {
        let vpn = Vpn(addr.0 >> 12 & VPN_MASK);
        let bits = Entry::ACCESSED | if write { Entry::DIRTY } else { 0 };
        let space = &mut self.process_mut(c.process).space;
        if let Some((e, level)) = space.tables.lookup(vpn)
            && !e.has(Entry::HINT)
            && (!write || e.has(Entry::WRITE))
        {
            space.tables.update(vpn, e.with(bits));
            return Ok(Pfn(u64::from(crate::space::frame_in(e, level, vpn))));
        }
        self.counters.faults += 1;
        self.charge(Path::Fault, c.core, Some(c.task), actions);
        let site = Site {
            task: c.task,
            core: c.core,
            process: c.process,
            vpn,
            write,
        };
        Ok(self.resolve(site, actions)?.frame)
    }
}
