//! Which processors a machine is made of: of one kind, on cores of as many threads, in
//! sockets of as many cores.

use std::collections::{BTreeMap, BTreeSet};

use piebald_units::MAX_CORES;

use super::{cpus::CpuList, error::DeriveError, source::Source, told::Told};

/// The processors that shall be described: those that are chosen, or all that are online.
pub(super) fn chosen(
    source: &Source<'_>,
    wanted: Option<&CpuList>,
) -> Result<CpuList, DeriveError> {
    let online = source.cpus("online")?;
    let Some(wanted) = wanted else {
        return Ok(online);
    };
    let away = wanted.without(&online);
    if away.is_empty() {
        return Ok(wanted.clone());
    }
    let problem = format!("{away} not online; online are {online}");
    Err(source.error(&format!("--cpus {wanted}"), problem))
}

/// Processors with equal caches and about equal speed, and on Arm of the same part.
struct Kind {
    caches: Vec<Told>,
    /// The part's number on Arm, MIDR_EL1.
    part: Option<String>,
    /// What Linux takes them to be able to do, 1024 for the fastest.
    capacity: Option<u64>,
    cpus: Vec<u32>,
}

/// Favoured cores of one kind differ by a few percent, cores of two kinds by more than a fifth.
fn is_as_fast(one: Option<u64>, other: Option<u64>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.abs_diff(other) * 5 <= one.max(other),
        _ => true,
    }
}

impl Kind {
    fn list(&self) -> CpuList {
        self.cpus.iter().copied().collect()
    }

    fn in_words(&self, cache: impl Fn(&Told) -> String) -> String {
        let mut words: Vec<String> = self.caches.iter().map(cache).collect();
        if words.is_empty() {
            words.push("no caches described".into());
        }
        words.extend(self.part.as_ref().map(|midr| format!("MIDR {midr}")));
        words.extend(self.capacity.map(|n| format!("capacity {n}")));
        words.join(", ")
    }
}

/// The caches of each of these processors, which must be of one kind.
pub(super) fn of_one_kind(source: &Source<'_>, cpus: &CpuList) -> Result<Vec<Told>, DeriveError> {
    let mut kinds: Vec<Kind> = Vec::new();
    for cpu in cpus.iter() {
        let caches = Told::all(source, cpu)?;
        let part = source.optional(&format!("cpu{cpu}/regs/identification/midr_el1"))?;
        let capacity = source.known(&format!("cpu{cpu}/cpu_capacity"), 1 << 20)?;
        let like = |k: &&mut Kind| {
            k.caches == caches && k.part == part && is_as_fast(k.capacity, capacity)
        };
        match kinds.iter_mut().find(like) {
            Some(kind) => kind.cpus.push(cpu),
            None => kinds.push(Kind {
                caches,
                part,
                capacity,
                cpus: vec![cpu],
            }),
        }
    }
    match &mut kinds[..] {
        [one] => Ok(std::mem::take(&mut one.caches)),
        _ => Err(source.error("online", unlike(&kinds))),
    }
}

/// What to say of several kinds.
fn unlike(kinds: &[Kind]) -> String {
    let brief: BTreeSet<String> = kinds.iter().map(|k| k.in_words(Told::in_words)).collect();
    // Equal sizes may be made of other ways and sets.
    let in_words = match brief.len() == kinds.len() {
        true => Told::in_words,
        false => Told::in_full,
    };
    let each: Vec<String> = kinds
        .iter()
        .map(|kind| format!("{} ({})", kind.list(), kind.in_words(in_words)))
        .collect();
    let choices: Vec<String> = kinds
        .iter()
        .filter(|kind| !kind.caches.is_empty())
        .map(|kind| format!("--cpus {}", kind.list()))
        .collect();
    format!(
        "unlike processors: {}; a machine has one kind: choose {}",
        each.join("; "),
        choices.join(" or ")
    )
}

/// Sockets, cores and threads.
pub(super) struct Shape {
    pub(super) sockets: usize,
    pub(super) per_socket: usize,
    pub(super) smt: usize,
    /// Whether Linux tells sockets at all; where it does not, there is one.
    pub(super) tells_sockets: bool,
    pub(super) cpus: CpuList,
    /// Socket and core of each processor.
    places: BTreeMap<u32, (i64, String)>,
}

impl Shape {
    pub(super) fn new(source: &Source<'_>, cpus: &CpuList) -> Result<Self, DeriveError> {
        let mut places = BTreeMap::new();
        for cpu in cpus.iter() {
            let socket = socket_of(source, cpu)?;
            let core = core_of(source, cpu)?;
            places.insert(cpu, (socket, format!("{socket} {core}")));
        }
        let mut threads: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        let mut cores: BTreeMap<i64, BTreeSet<&str>> = BTreeMap::new();
        for (cpu, (socket, core)) in &places {
            threads.entry(core).or_default().push(*cpu);
            cores.entry(*socket).or_default().insert(core);
        }
        let smt = threads.values().map(Vec::len).max().unwrap_or(1);
        let even = threads.values().all(|t| t.len() == smt) && smt <= 2;
        let per_socket = cores.values().map(BTreeSet::len).max().unwrap_or(1);
        let level = cores.values().all(|c| c.len() == per_socket);
        let first = threads.values().filter_map(|t| t.first().copied());
        let problem = |also: String| {
            format!(
                "{} threads on {} cores of {} sockets; {also}",
                cpus.len(),
                threads.len(),
                cores.len()
            )
        };
        if !even {
            let first: CpuList = first.collect();
            let problem = problem(format!(
                "each core must have 1 or 2 of them, all as many: --cpus {first} takes one of each"
            ));
            return Err(source.error("online", problem));
        }
        if !level {
            let fullest = cores.iter().max_by_key(|(_, cores)| cores.len());
            let socket = fullest.map_or(0, |(socket, _)| *socket);
            let of_it = places.iter().filter(|(_, (of, _))| *of == socket);
            let of_it: CpuList = of_it.map(|(cpu, _)| *cpu).collect();
            let problem = problem(format!(
                "each socket must have as many cores: --cpus {of_it} takes those of one"
            ));
            return Err(source.error("online", problem));
        }
        if cpus.len() > MAX_CORES {
            let some: CpuList = cpus.iter().take(MAX_CORES).collect();
            let problem = format!(
                "{} processors; a machine has {MAX_CORES} at most: choose some, such as --cpus \
                 {some}",
                cpus.len()
            );
            return Err(source.error("online", problem));
        }
        Ok(Self {
            sockets: cores.len(),
            per_socket,
            smt,
            tells_sockets: cores.keys().any(|socket| *socket >= 0),
            cpus: cpus.clone(),
            places,
        })
    }

    /// Cores that share the cache whose files these paths name; the same for every
    /// processor.
    pub(super) fn sharing(
        &self,
        source: &Source<'_>,
        path: impl Fn(u32, &str) -> String,
    ) -> Result<usize, DeriveError> {
        let mut known: Option<(u32, usize)> = None;
        let mut lists: BTreeMap<u32, CpuList> = BTreeMap::new();
        for cpu in self.cpus.iter() {
            let path = path(cpu, "shared_cpu_list");
            let cores = self.cores_of(source, cpu, &path)?;
            if !self.per_socket.is_multiple_of(cores) {
                let problem = format!(
                    "{cores} cores share it, which does not divide the {} of a socket: --cpus {} \
                     takes those of one",
                    self.per_socket,
                    source.cpus(&path)?.within(&self.cpus)
                );
                return Err(source.error(&path, problem));
            }
            let list = source.cpus(&path)?;
            // The lists of all processors that share a cache name the same ones.
            let mut others = list.iter().filter_map(|cpu| Some((cpu, lists.get(&cpu)?)));
            let differs = others.find(|(_, its)| **its != list);
            if let Some((other, its)) = differs {
                let problem = format!("{list} share it, but {its} by what cpu{other} says");
                return Err(source.error(&path, problem));
            }
            drop(others);
            lists.insert(cpu, list);
            let (first, of_first) = *known.get_or_insert((cpu, cores));
            if cores != of_first {
                let one = lists
                    .values()
                    .max_by_key(|list| list.within(&self.cpus).len());
                let one = one.map_or(CpuList::default(), |list| list.within(&self.cpus));
                let problem = format!(
                    "{cores} cores share it, but {of_first} that of cpu{first}; choose processors \
                     that share alike: --cpus {one} takes those of one"
                );
                return Err(source.error(&path, problem));
            }
        }
        Ok(known.map_or(1, |(_, cores)| cores))
    }

    /// Whether the processors that share a cache share all those outside it, too. `levels` has the
    /// caches of the first processor, in Linux's order.
    pub(super) fn check_nesting(
        &self,
        source: &Source<'_>,
        levels: &[u64],
    ) -> Result<(), DeriveError> {
        for cpu in self.cpus.iter() {
            let path = |index| super::told::path(cpu, index, "shared_cpu_list");
            for (outer, level) in levels.iter().enumerate() {
                let reached = source.cpus(&path(outer))?;
                for inner in (0..levels.len()).filter(|inner| levels[*inner] < *level) {
                    let inside = source.cpus(&path(inner))?.within(&self.cpus);
                    let beyond = inside.without(&reached);
                    if beyond.is_empty() {
                        continue;
                    }
                    let problem = format!(
                        "{reached} share it, but {beyond} share level {} of cpu{cpu} and not this \
                         one, which lies outside it",
                        levels[inner]
                    );
                    return Err(source.error(&path(outer), problem));
                }
            }
        }
        Ok(())
    }

    /// Cores behind one instance of a cache.
    fn cores_of(&self, source: &Source<'_>, cpu: u32, path: &str) -> Result<usize, DeriveError> {
        let list = source.cpus(path)?;
        if !list.contains(cpu) {
            return Err(source.error(path, format!("{list} does not name cpu{cpu} itself")));
        }
        let list = list.within(&self.cpus);
        let members = || list.iter().filter_map(|cpu| self.places.get(&cpu));
        let sockets: BTreeSet<i64> = members().map(|(socket, _)| *socket).collect();
        if sockets.len() > 1 {
            let problem = format!(
                "{list} share it, but lie in {} sockets, and a cache belongs to one: choose the \
                 processors of one with --cpus LIST",
                sockets.len()
            );
            return Err(source.error(path, problem));
        }
        let cores: BTreeSet<&str> = members().map(|(_, core)| core.as_str()).collect();
        Ok(cores.len())
    }
}

/// Linux says -1 where firmware does not tell sockets.
fn socket_of(source: &Source<'_>, cpu: u32) -> Result<i64, DeriveError> {
    let path = format!("cpu{cpu}/topology/physical_package_id");
    match source.text(&path)?.as_str() {
        "-1" => Ok(-1),
        _ => Ok(source.number(&path, 0, 1 << 30)? as i64),
    }
}

/// What threads of one core, and of no other of their socket, have in common. The lists of
/// siblings say it; numbers of cores alone may count from 0 in every die and cluster.
fn core_of(source: &Source<'_>, cpu: u32) -> Result<String, DeriveError> {
    let path = |name: &str| format!("cpu{cpu}/topology/{name}");
    for name in ["core_cpus_list", "thread_siblings_list"] {
        if source.optional(&path(name))?.is_none() {
            continue;
        }
        let list = source.cpus(&path(name))?;
        if !list.contains(cpu) {
            let problem = format!("{list} does not name cpu{cpu} itself");
            return Err(source.error(&path(name), problem));
        }
        return Ok(list.to_string());
    }
    let upper = [
        source.optional(&path("die_id"))?,
        source.optional(&path("cluster_id"))?,
    ];
    let id = source.number(&path("core_id"), 0, 1 << 30)?;
    Ok(format!("{upper:?} {id}"))
}
