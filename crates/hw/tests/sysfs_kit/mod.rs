//! Trees such as `/sys/devices/system/cpu`, for the tests of what is derived from them.
#![allow(dead_code)]

use std::collections::BTreeMap;

use piebald_hw::{
    Machine, Options,
    presets::{
        self,
        derive::{DeriveError, Derived, from_sysfs},
    },
    spec::{Holds, MachineSpec},
};

/// A cache as files tell it: level, type, ways, sets and size.
pub type Shape = (u64, &'static str, u64, u64, &'static str);

pub const L1D: Shape = (1, "Data", 8, 64, "32K");
pub const L1I: Shape = (1, "Instruction", 8, 64, "32K");
pub const L2: Shape = (2, "Unified", 16, 1024, "1024K");

/// Files by their paths.
#[derive(Clone, Default)]
pub struct Tree(pub BTreeMap<String, String>);

impl Tree {
    pub fn put(&mut self, path: impl Into<String>, value: impl ToString) {
        self.0
            .insert(path.into(), format!("{}\n", value.to_string()));
    }

    pub fn take(&mut self, path: &str) {
        self.0.remove(path).expect("the tree has this file");
    }

    /// A processor with these caches, each of which the list beside it shares.
    pub fn cpu(&mut self, cpu: u32, socket: u32, core: u32, caches: &[(Shape, &str)]) {
        self.put(format!("cpu{cpu}/topology/physical_package_id"), socket);
        self.put(format!("cpu{cpu}/topology/core_id"), core);
        for (index, ((level, kind, ways, sets, size), shared)) in caches.iter().enumerate() {
            let mut put = |name: &str, value: &dyn ToString| {
                let path = format!("cpu{cpu}/cache/index{index}/{name}");
                self.put(path, value.to_string());
            };
            put("level", level);
            put("type", kind);
            put("ways_of_associativity", ways);
            put("number_of_sets", sets);
            put("size", size);
            put("coherency_line_size", &64);
            put("physical_line_partition", &1);
            put("shared_cpu_list", shared);
        }
    }

    /// Processors 0 to `cpus - 1`, a core each, with private L1 and L2 and one L3.
    pub fn of_cores(cpus: u32, third: Shape) -> Self {
        let mut tree = Self::default();
        tree.put("online", format!("0-{}", cpus - 1));
        for cpu in 0..cpus {
            let (own, all) = (cpu.to_string(), format!("0-{}", cpus - 1));
            let caches = [(L1D, &*own), (L1I, &own), (L2, &own), (third, &all)];
            tree.cpu(cpu, 0, cpu, &caches);
        }
        tree
    }

    pub fn read(&self) -> impl Fn(&str) -> Result<Option<String>, String> + '_ {
        |path| Ok(self.0.get(path).cloned())
    }

    pub fn derive(&self, cpus: Option<&str>) -> Result<Derived, DeriveError> {
        let cpus = cpus.map(|list| list.parse().expect("a list"));
        from_sysfs(&self.read(), cpus.as_ref())
    }

    /// The machine, which can be built.
    pub fn machine(&self, cpus: Option<&str>) -> MachineSpec {
        let derived = self.derive(cpus).unwrap_or_else(|e| panic!("{e}"));
        let spec = presets::parse(&derived.text, "derived").unwrap_or_else(|e| panic!("{e}"));
        Machine::new(&spec, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        spec
    }

    pub fn error(&self, cpus: Option<&str>) -> String {
        match self.derive(cpus) {
            Ok(derived) => panic!("{}", derived.text),
            Err(e) => e.to_string(),
        }
    }
}

/// Level, what it holds, size, ways and sharers of each cache.
pub fn caches_of(spec: &MachineSpec) -> Vec<(u8, Holds, String, u16, u16)> {
    let cache = spec.cache.iter();
    cache
        .map(|c| (c.level, c.holds, c.size.to_string(), c.ways, c.shared_by))
        .collect()
}

/// Sockets, cores of a socket, threads of a core.
pub fn cores_of(spec: &MachineSpec) -> (u16, u16, u16) {
    (spec.core.sockets, spec.core.per_socket, spec.core.smt)
}
