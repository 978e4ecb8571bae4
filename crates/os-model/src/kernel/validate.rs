//! Recounts the kernel's books from page tables, objects and blocks.

use std::collections::HashMap;

use super::{Kernel, KernelBroken, TASK_FRAMES};
use crate::space::{Entry, HUGE_PAGES, Resident};

pub(super) fn broken(
    rule: &'static str,
    what: String,
    recorded: u64,
    recounted: u64,
) -> KernelBroken {
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
        self.check_partitions()?;
        self.check_swap()?;
        self.check_programs()?;
        let mut users: HashMap<u32, u32> = HashMap::new();
        for f in self.objects.frames() {
            *users.entry(f).or_default() += 1;
        }
        let mut nodes = 0;
        for number in 0..self.processes.len() {
            nodes += self.recount_process(number, &mut users)?;
        }
        self.check_pool(&mut users)?;
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
        for vpn in p.space.swapped.keys() {
            if areas.find(*vpn).is_none() || tables.lookup(*vpn).is_some() {
                return Err(broken("a page lies in memory or in swap", what(), 0, vpn.0));
            }
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

    /// Every task of a process in a partition is counted there.
    fn check_partitions(&self) -> Result<(), KernelBroken> {
        let Some(colors) = &self.colors else {
            return Ok(());
        };
        colors.registry.validate()?;
        let live = || self.processes.iter().flatten();
        for (id, partition) in colors.registry.iter() {
            let mine = live().filter(|p| p.partition == Some(id));
            let tasks: u32 = mine.map(|p| p.tasks).sum();
            if tasks != partition.tasks() {
                let (a, b) = (u64::from(partition.tasks()), u64::from(tasks));
                return Err(broken("tasks of a partition", id.to_string(), a, b));
            }
        }
        let gone = live().find_map(|p| p.partition.filter(|id| colors.registry.get(*id).is_err()));
        gone.map_or(Ok(()), |id| {
            Err(broken("a process's partition exists", id.to_string(), 1, 0))
        })
    }

    /// Every slot of swap space has the users that are counted.
    fn check_swap(&self) -> Result<(), KernelBroken> {
        let mut users = vec![0; self.swap.users().len()];
        for p in self.processes.iter().flatten() {
            for slot in p.space.swapped.values() {
                users[*slot as usize] += 1;
            }
        }
        self.count_ids(&mut users);
        for (slot, (a, b)) in self.swap.users().iter().zip(&users).enumerate() {
            if a != b {
                let what = format!("slot {slot}");
                return Err(broken(
                    "users of a swap slot",
                    what,
                    (*a).into(),
                    (*b).into(),
                ));
            }
        }
        let used = users.iter().filter(|n| **n > 0).count() as u64;
        match self.swap.used() == used {
            true => Ok(()),
            false => {
                let what = "all slots".to_owned();
                Err(broken("swap slots in use", what, self.swap.used(), used))
            }
        }
    }

    /// Every program has the pages that its processes have.
    fn check_programs(&self) -> Result<(), KernelBroken> {
        for (program, usage) in self.programs.iter().enumerate() {
            let found = self.pages_of(program);
            if usage.pages != found || usage.peak_pages < found {
                let what = format!("program {program}");
                return Err(broken("pages of a program", what, usage.pages, found));
            }
        }
        Ok(())
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
        let idle = self.idle_frames();
        let held = boot + tasks + aged + nodes + user + idle + self.meta.stranded();
        let granted = self.total_frames() - self.free_frames();
        if held != granted {
            let what =
                format!("{user} user, {nodes} tables, {tasks} tasks, {aged} aged, {boot} boot");
            return Err(broken("granted frames", what, granted, held));
        }
        Ok(())
    }
}
