//! What only the events of all threads together tell: which threads there are,
//! who started whom, who waited for whom, how a process's memory came to be.
//!
//! Computed once, on first need, from the event sections alone.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use piebald_units::{
    FileId,
    op::{SpawnKind, SysOp},
};

use super::{
    error::ReadError,
    model::{Event, EventKind, FileIdent},
    reader::Recording,
    translate::{self, Call, nr},
    waits,
};

/// A thread of the program: it goes on through every `exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramThread {
    /// Its number: that of the first recorded thread it consists of.
    pub thread: u32,
    /// The recorded threads it consists of; more than one after an `exec`.
    pub segments: Vec<u32>,
    /// Linux process id at its start.
    pub pid: u32,
    /// Linux thread id at its start.
    pub tid: u32,
    /// The thread that started it; `None` for the first.
    pub parent: Option<u32>,
    /// Arguments of its last image that has any.
    pub argv: Vec<String>,
    /// Instructions of all segments.
    pub instrs: u64,
    /// References of all segments.
    pub refs: u64,
}

/// A file that the program read, wrote or mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    /// Its number in the replay.
    pub file: FileId,
    /// Its identity; the size is the largest seen.
    pub ident: FileIdent,
    /// A path by which it was named, if one was recorded.
    pub path: Option<String>,
}

/// An event with where it happened.
#[derive(Debug)]
pub(crate) struct Happened {
    pub(crate) thread: u32,
    pub(crate) process: u32,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) event: Event,
}

/// Which file a process names by its children's ids.
type Spawns = HashMap<u64, (u32, SpawnKind)>;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Analysis {
    pub(crate) threads: Vec<ProgramThread>,
    /// By the starting call's `seq`: the child.
    pub(crate) spawns: Spawns,
    /// By the `seq` of a `brk`: the break before it.
    pub(crate) breaks: HashMap<u64, u64>,
    /// By the waiting event's `seq`: the releasing event's.
    pub(crate) awaits: HashMap<u64, u64>,
    /// The releasing events.
    pub(crate) posts: HashSet<u64>,
    files: BTreeMap<u64, FileInfo>,
    /// Calls that change an address space, by rising `seq`: process, operation.
    spaces: Vec<(u64, u32, SysOp)>,
    /// By forked process: its parent, and when it was forked.
    forks: HashMap<u32, (u32, u64)>,
}

impl Recording {
    /// The program's threads, in order of number.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn threads(&self) -> Result<Vec<ProgramThread>, ReadError> {
        Ok(self.analysis()?.threads.clone())
    }

    /// The files that the program read, wrote or mapped, in order of number.
    ///
    /// # Errors
    /// The recording is damaged.
    pub fn files(&self) -> Result<Vec<FileInfo>, ReadError> {
        Ok(self.analysis()?.files.values().cloned().collect())
    }

    pub(crate) fn analysis(&self) -> Result<Arc<Analysis>, ReadError> {
        if let Some(found) = self.0.analysis.get() {
            return Ok(found.clone());
        }
        let computed = Arc::new(Analysis::new(self, &self.happened()?));
        Ok(self.0.analysis.get_or_init(|| computed).clone())
    }

    /// The events of all threads in their total order.
    fn happened(&self) -> Result<Vec<Happened>, ReadError> {
        let threads = &self.index().threads;
        let mut all = Vec::new();
        for entry in self.index().chunks.iter().filter(|c| c.events > 0) {
            let ids = threads.binary_search_by_key(&entry.thread, |t| t.thread);
            let (pid, tid) = ids.map_or((0, 0), |i| (threads[i].pid, threads[i].tid));
            let layout = self.chunk_layout(entry)?;
            let placed = self.placed_events(entry, &layout)?;
            all.extend(placed.into_iter().map(|p| Happened {
                thread: entry.thread,
                process: entry.process,
                pid,
                tid,
                event: p.event,
            }));
        }
        all.sort_by_key(|h| h.event.seq);
        Ok(all)
    }
}

impl Analysis {
    fn new(recording: &Recording, events: &[Happened]) -> Self {
        let mut analysis = Self::default();
        let links = Links::find(events);
        analysis.chain(recording, events, &links);
        for (&seq, &start) in &links.children {
            let (child, parent) = (&events[start], &events[links.callers[&seq]]);
            let kind = translate::spawn_kind(parent.pid, child.pid);
            analysis.spawns.insert(seq, (child.thread, kind));
            if kind == SpawnKind::Fork {
                let fork = (parent.process, seq);
                analysis.forks.insert(child.process, fork);
            }
        }
        analysis.walk(events);
        let edges = waits::find(events);
        analysis.posts = edges.values().copied().collect();
        analysis.awaits = edges;
        analysis
    }

    /// Joins recorded threads over `exec` into threads of the program.
    fn chain(&mut self, recording: &Recording, events: &[Happened], links: &Links) {
        let mut parents = HashMap::new();
        for (seq, &start) in &links.children {
            let caller = &events[links.callers[seq]];
            parents.insert(events[start].thread, caller.thread);
        }
        let continued: HashSet<u32> = links.images.values().copied().collect();
        let mut heads = HashMap::new();
        for entry in &recording.index().threads {
            if continued.contains(&entry.thread) {
                continue;
            }
            let mut segments = vec![entry.thread];
            let mut at = entry.thread;
            while let Some(&next) = links.images.get(&at).filter(|n| !segments.contains(n)) {
                segments.push(next);
                at = next;
            }
            heads.extend(segments.iter().map(|&s| (s, entry.thread)));
            let lengths = recording.index().threads.iter();
            let own = lengths.filter(|t| segments.contains(&t.thread));
            let (instrs, refs) = own.fold((0u64, 0u64), |(i, r), t| {
                (i.saturating_add(t.instrs), r.saturating_add(t.refs))
            });
            let argv = segments.iter().rev().find_map(|s| links.argv.get(s));
            self.threads.push(ProgramThread {
                thread: entry.thread,
                segments,
                pid: entry.pid,
                tid: entry.tid,
                parent: parents.get(&entry.thread).copied(),
                argv: argv.cloned().unwrap_or_default(),
                instrs,
                refs,
            });
        }
        for thread in &mut self.threads {
            thread.parent = thread.parent.and_then(|p| heads.get(&p).copied());
        }
    }

    /// Follows breaks, mappings and files through time.
    fn walk(&mut self, events: &[Happened]) {
        let mut breaks: HashMap<u32, u64> = HashMap::new();
        let mut forks: Vec<(u64, u32, u32)> = self
            .forks
            .iter()
            .map(|(&child, &(parent, seq))| (seq, parent, child))
            .collect();
        forks.sort_unstable();
        let mut forks = forks.into_iter().peekable();
        for h in events {
            while let Some((_, parent, child)) = forks.next_if(|f| f.0 <= h.event.seq) {
                if let Some(&at) = breaks.get(&parent) {
                    breaks.insert(child, at);
                }
            }
            self.note_files(&h.event.kind);
            let seq = h.event.seq;
            let op = match Call::of(&h.event.kind) {
                None => translate::initial(&h.event.kind),
                Some(call) => {
                    let before = breaks.get(&h.process).copied();
                    if let (nr::BRK, Some(after)) = (call.number, call.success()) {
                        breaks.insert(h.process, after);
                        if let Some(before) = before {
                            self.breaks.insert(seq, before);
                        }
                    }
                    Some(translate::sys_op(&call, before))
                }
            };
            if let Some(op @ (SysOp::Map { .. } | SysOp::Unmap { .. } | SysOp::Remap { .. })) = op {
                self.spaces.push((seq, h.process, op));
            }
        }
    }

    fn note_files(&mut self, kind: &EventKind) {
        let (ident, path) = match kind {
            EventKind::Initial {
                file: Some((f, _)),
                name,
                ..
            } => (f, Some(name)),
            EventKind::Call {
                file: Some(f),
                path,
                ..
            } => (f, path.as_ref()),
            _ => return,
        };
        if !translate::is_regular(ident) {
            return;
        }
        let file = translate::file_id(ident);
        let info = self.files.entry(file.0).or_insert_with(|| FileInfo {
            file,
            ident: ident.clone(),
            path: None,
        });
        info.ident.size = info.ident.size.max(ident.size);
        if info.path.is_none() {
            info.path = path.filter(|p| !p.is_empty()).cloned();
        }
    }

    /// What makes a process's address space as it was at a place in the total
    /// order, in an empty one.
    pub(crate) fn space_at(&self, process: u32, seq: u64) -> Vec<SysOp> {
        let mut lineage = vec![(process, seq)];
        let mut at = process;
        while let Some(&(parent, fork)) = self.forks.get(&at) {
            if lineage.iter().any(|l| l.0 == parent) {
                break;
            }
            lineage.push((parent, fork.min(seq)));
            at = parent;
        }
        let mut ops = Vec::new();
        for &(process, upto) in lineage.iter().rev() {
            let own = self.spaces.iter().filter(|s| s.1 == process && s.0 <= upto);
            ops.extend(own.map(|s| s.2));
        }
        ops
    }

    /// The threads' numbers, for messages.
    pub(crate) fn known_threads(&self) -> String {
        const SHOWN: usize = 16;
        let numbers: Vec<String> = self.threads.iter().map(|t| t.thread.to_string()).collect();
        match numbers.len() {
            0 => "none".into(),
            n if n <= SHOWN => numbers.join(", "),
            n => format!("{} and {} more", numbers[..SHOWN].join(", "), n - SHOWN),
        }
    }
}

/// Which recorded thread belongs to which call.
#[derive(Default)]
struct Links {
    /// By the starting call's `seq`: index of the child's start event.
    children: HashMap<u64, usize>,
    /// By the starting call's `seq`: index of that call.
    callers: HashMap<u64, usize>,
    /// By a recorded thread that ended in `exec`: the one that goes on.
    images: HashMap<u32, u32>,
    /// By recorded thread: arguments of its image.
    argv: HashMap<u32, Vec<String>>,
}

impl Links {
    fn find(events: &[Happened]) -> Self {
        let mut links = Self::default();
        // Starts that nobody has claimed yet, by id, in order of time.
        let mut starts: HashMap<u32, Vec<usize>> = HashMap::new();
        for (i, h) in events.iter().enumerate() {
            if let EventKind::Start { tid, argv, .. } = &h.event.kind {
                starts.entry(*tid).or_default().push(i);
                if !argv.is_empty() {
                    links.argv.insert(h.thread, argv.clone());
                }
            }
        }
        let mut claim = |id: u32, after: u64, except: u32| {
            let list = starts.get_mut(&id)?;
            let at = list.iter().position(|&i| {
                let h = &events[i];
                h.event.seq > after && h.thread != except
            })?;
            Some(list.remove(at))
        };
        for (i, h) in events.iter().enumerate() {
            let seq = h.event.seq;
            if let EventKind::Exec { .. } = h.event.kind {
                if let Some(start) = claim(h.pid, seq, h.thread) {
                    links.images.insert(h.thread, events[start].thread);
                }
            } else if let Some(child) = started_thread(&h.event.kind)
                && let Some(start) = claim(child, seq, h.thread)
            {
                links.children.insert(seq, start);
                links.callers.insert(seq, i);
            }
        }
        links
    }
}

/// The Linux thread id of the child that a call made.
fn started_thread(kind: &EventKind) -> Option<u32> {
    let call = Call::of(kind)?;
    if !matches!(call.number, nr::CLONE | nr::FORK | nr::VFORK | nr::CLONE3) {
        return None;
    }
    let child = call.success().filter(|&c| c > 0)?;
    u32::try_from(child).ok()
}
