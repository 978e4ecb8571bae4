//! A set and a group that are there for as long as one program.

use std::path::Path;

use piebald_policy::contract::Mode;

use crate::{
    Module, ModuleError,
    ask::Wanted,
    group::{Group, Groups},
    sets::SetDir,
    sys,
};

/// What the names of such sets and groups begin with.
const PREFIX: &str = "piebald-run-";

/// A set of one process's own, in a group of its own, both of which end with the last process in
/// the group.
#[derive(Debug)]
pub(crate) struct Transient<'a> {
    set: SetDir<'a>,
}

impl<'a> Transient<'a> {
    /// Puts a process into a group with a new set, which has no colours yet if `wanted` is `None`.
    /// A process whose group has a set of its own keeps both, for all processes in the group.
    pub(crate) fn enter(
        module: &'a Module,
        pid: u32,
        wanted: Option<(&Wanted, Mode)>,
    ) -> Result<Self, ModuleError> {
        let groups = Groups::find(module.root())?;
        let own = groups.of(pid)?;
        end_deserted(module, pid)?;
        if let Some(set) = module.set_of_group(&own.path)? {
            let set = module.set(&set.name)?;
            let found = Self { set };
            found.color(wanted)?;
            return Ok(found);
        }
        let name = format!("{PREFIX}{pid}");
        let made = Self {
            set: module.make_set(&name)?,
        };
        // A group of that name is left of a set that has ended; whoever looks after it still does.
        let is_home = own
            .path
            .rsplit('/')
            .next()
            .is_some_and(|last| last.strip_suffix(".scope").unwrap_or(last) == name);
        let moved = made.color(wanted).and_then(|()| {
            if is_home {
                made.set.attach(&own.path)
            } else {
                made.settle(&groups, pid, &name)
            }
        });
        if moved.is_err() {
            // What is told is why it failed.
            let _ = made.set.end();
        }
        moved.map(|()| made)
    }

    /// Makes the group and moves the process there. The process that looks after both, which has to
    /// be outside of the group, is started first, and begins once somebody is in it.
    fn settle(&self, groups: &Groups, pid: u32, name: &str) -> Result<(), ModuleError> {
        let home = groups.of(std::process::id())?;
        let group = groups.make_for(pid, name)?;
        self.set.attach(&group.path)?;
        let (set, inside) = (self.set.path(), group.clone());
        let gate = sys::in_background(|own| look_after(set, &inside, &home, own));
        let gate = gate.map_err(|source| ModuleError::Io {
            path: group.dir.clone(),
            source,
        })?;
        let entered = group.enter(pid);
        drop(gate);
        entered
    }

    /// Gives the set colours; takes them away for `None`.
    pub(crate) fn color(&self, wanted: Option<(&Wanted, Mode)>) -> Result<(), ModuleError> {
        match wanted {
            Some((wanted, mode)) => self.set.color(wanted, mode),
            None => self.set.uncolor(),
        }
    }

    /// Ends the set; the group goes with its last process.
    pub(crate) fn end(self) -> Result<(), ModuleError> {
        self.set.end()
    }
}

impl Module {
    /// Gives a running process colours of its own, or other ones than it has: it moves to a group of
    /// its own, unless its group has a set already, which then changes. Its pages stay where they are.
    ///
    /// # Errors
    /// Refused if there is no such process, or the colours do not exist or are too many.
    pub fn give(&self, pid: u32, wanted: &Wanted, mode: Mode) -> Result<(), ModuleError> {
        Transient::enter(self, pid, Some((wanted, mode))).map(drop)
    }

    /// Takes the colours of a process's group away.
    ///
    /// # Errors
    /// If there is no such process, or its group has no set of its own.
    pub fn take_away(&self, pid: u32) -> Result<(), ModuleError> {
        let own = Groups::find(self.root())?.of(pid)?;
        match self.set_of_group(&own.path)? {
            Some(set) => self.set(&set.name)?.end(),
            None => Err(ModuleError::Uncolored {
                pid,
                group: own.path,
            }),
        }
    }
}

/// Ends the sets of groups that went while nobody looked after them. One without a group whose process lives is
/// about to get it, but for that of `pid`, whose set is still to be made.
fn end_deserted(module: &Module, pid: u32) -> Result<(), ModuleError> {
    let lives = |name: &str| {
        let number = name.parse::<u32>();
        number.is_ok_and(|n| n != pid && module.root().join(format!("proc/{n}")).is_dir())
    };
    for set in module.sets()? {
        let of = set.name.strip_prefix(PREFIX);
        if set.groups.is_empty() && of.is_some_and(|name| !lives(name)) {
            module.set(&set.name)?.end()?;
        }
    }
    Ok(())
}

/// Waits until nobody is in the group, and ends it and its set. `own`: this process, which systemd may
/// have put into the group's scope with the one that started it.
fn look_after(set: &Path, group: &Group, home: &Group, own: u32) {
    // Whatever fails here, nobody is left to be told; the next program ends what is left.
    let _ = home.enter(own);
    let _ = sys::wait_until_empty(&group.dir.join("cgroup.events"));
    let _ = std::fs::remove_dir(set);
    let _ = std::fs::remove_dir(&group.dir);
}
