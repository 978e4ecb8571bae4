//! Recounts the kernel's books from page tables, objects and blocks.

use std::collections::HashMap;

use super::{Kernel, KernelBroken, TASK_FRAMES};
use crate::space::{Entry, HUGE_PAGES, Resident};

fn broken(rule: &'static str, what: String, recorded: u64, recounted: u64) -> KernelBroken {
    KernelBroken::Kernel {
        rule,
        what,
        recorded,
        recounted,
    }
}

impl Kernel {
    /// Recounts everything from scratch: the allocator's lists, the users of
    /// every frame, resident pages of every process, and that granted and free
    /// frames together are all frames. Takes time in proportion to memory.
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn validate(&mut self) -> Result<(), KernelBroken> {
        self.frames.validate()?;
        let mut users: HashMap<u32, u32> = HashMap::new();
        for f in self.objects.frames() {
            *users.entry(f).or_default() += 1;
        }
        let mut nodes = 0;
        for number in 0..self.processes.len() {
            nodes += self.recount_process(number, &mut users)?;
        }
        self.check_users(&users)?;
        self.check_total(users.len() as u64, nodes)
    }

    /// Adds a process's pages to `users`; returns its table frames.
    fn recount_process(
        &mut self,
        number: usize,
        users: &mut HashMap<u32, u32>,
    ) -> Result<u64, KernelBroken> {
        let Some(p) = self.processes[number].as_mut() else {
            return Ok(0);
        };
        let mut found = Resident::default();
        let (areas, tables) = (&p.space.areas, &mut p.space.tables);
        let mut outside = None;
        let all = piebald_units::Vpn(crate::space::VPN_MASK + 1);
        tables.visit(piebald_units::Vpn(0), all, &mut |vpn, e, level| {
            let pages = if level == 1 { HUGE_PAGES } else { 1 };
            found.add(e, pages);
            if !e.has(Entry::ZERO) {
                for f in (e.frame()..).take(pages as usize) {
                    *users.entry(f).or_default() += 1;
                }
            }
            if areas.find(vpn).is_none() {
                outside = Some(vpn);
            }
            e
        });
        let what = || format!("process {number}");
        if let Some(vpn) = outside {
            return Err(broken("page outside all areas", what(), 0, vpn.0));
        }
        if found != p.space.resident {
            let (a, b) = (p.space.resident.total(), found.total());
            return Err(broken("resident pages", what(), a, b));
        }
        let tasks = self
            .tasks
            .iter()
            .flatten()
            .filter(|t| t.process == number)
            .count();
        if tasks as u64 != u64::from(p.tasks) {
            return Err(broken("tasks", what(), u64::from(p.tasks), tasks as u64));
        }
        Ok(p.space.table_frames().len() as u64)
    }

    fn check_users(&self, users: &HashMap<u32, u32>) -> Result<(), KernelBroken> {
        let mut frames = 0;
        for (frame, refs) in self.meta.used() {
            frames += 1;
            let found = users.get(&frame).copied().unwrap_or(0);
            if found != refs {
                let what = format!("frame {frame:#x}");
                return Err(broken(
                    "users of a frame",
                    what,
                    u64::from(refs),
                    u64::from(found),
                ));
            }
        }
        if frames != users.len() as u64 {
            let what = "all frames".to_owned();
            return Err(broken(
                "frames with users",
                what,
                frames,
                users.len() as u64,
            ));
        }
        Ok(())
    }

    /// Frames granted for anything must be all that are not free.
    fn check_total(&self, user: u64, nodes: u64) -> Result<(), KernelBroken> {
        let boot: u64 = self.boot.blocks.iter().map(|(_, o)| 1u64 << o.0).sum();
        let tasks = self.tasks.iter().flatten().count() as u64 * TASK_FRAMES as u64;
        let aged = self.aged.frames();
        let held = boot + tasks + aged + nodes + user + self.meta.stranded();
        let granted = self.total_frames() - self.free_frames();
        if held != granted {
            let what =
                format!("{user} user, {nodes} tables, {tasks} tasks, {aged} aged, {boot} boot");
            return Err(broken("granted frames", what, granted, held));
        }
        Ok(())
    }
}
