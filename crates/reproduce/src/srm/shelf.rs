//! Programs that are ready to run, each made once.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use piebald_trace::recording::{Recording, ReplayOptions};
use piebald_workload::{Builtin, Library, Program, Recorded};

use super::{
    brief::Kept,
    inputs::List,
    sources::{Own, Places, Reader, Source, Transactions, places},
};
use crate::{Hooks, Options, StandIn, Wanted};

/// References after its set-up that hold any program which says itself where it ends.
const WHOLE: u64 = 1 << 40;

/// A program, and where things happen in it.
#[derive(Clone)]
pub(super) struct Ready {
    pub program: Arc<dyn Program>,
    pub places: Arc<Places>,
    /// First references, which bring in what it had when it was recorded.
    pub prime: u64,
}

type Slot = Arc<OnceLock<Result<Ready, String>>>;

/// Makes programs and keeps them.
pub(super) struct Shelf<'a> {
    list: &'a List,
    options: &'a Options,
    hooks: Hooks<'a>,
    slots: Mutex<HashMap<(Source, u64, u64), Slot>>,
}

impl<'a> Shelf<'a> {
    pub(super) fn new(list: &'a List, options: &'a Options, hooks: Hooks<'a>) -> Self {
        Self {
            list,
            options,
            hooks,
            slots: Mutex::default(),
        }
    }

    /// A program with the draws of `seed`; a built-in one with `refs` references after its
    /// set-up. Blocks while another thread makes it.
    ///
    /// # Errors
    /// Why there is none, in words.
    pub(super) fn take(&self, source: &Source, seed: u64, refs: u64) -> Result<Ready, String> {
        let slot = {
            let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
            let (seed, refs) = drawn(source, (seed, refs));
            let key = (source.clone(), seed, refs);
            slots.entry(key).or_default().clone()
        };
        slot.get_or_init(|| self.make(source, seed, refs)).clone()
    }

    /// The references of one iteration of a built-in program, after its first.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub(super) fn iteration(&self, text: &str, seed: u64) -> Result<u64, String> {
        let two = super::inputs::with(text, "iterations=2");
        let ready = self.take(&Source::Builtin(two), seed, WHOLE)?;
        match ready.places.iterations[..] {
            [first, second, ..] => Ok(second.data - first.data),
            _ => Err(format!("{text}: it does not mark its iterations")),
        }
    }

    fn make(&self, source: &Source, seed: u64, refs: u64) -> Result<Ready, String> {
        let stop = self.hooks.stop;
        let program: Arc<dyn Program> = match source {
            Source::Builtin(text) => Arc::new(builtin(text, seed, refs)?),
            Source::Transactions(text) => {
                let program = Arc::new(builtin(text, seed, refs)?);
                // Kept, as each run would read through the set-up.
                Arc::new(Kept::whole(&Transactions(program), stop)?)
            }
            Source::Recorded(name, tree) => Arc::new(self.recorded(name, *tree)?),
            Source::Backend(name) => return self.backend(name),
            Source::Reader(inner) => {
                let files = self.take(inner, seed, refs)?.program.files();
                Arc::new(Reader(files))
            }
            Source::Free(inner) => {
                let inner = self.take(inner, seed, refs)?;
                return Ok(Ready {
                    program: Arc::new(Kept::free(&*inner.program, stop)?),
                    ..inner
                });
            }
            Source::Own(inner, number) => {
                let inner = self.take(inner, seed, refs)?;
                return Ok(Ready {
                    program: Arc::new(Own(inner.program, *number)),
                    ..inner
                });
            }
        };
        let places = Arc::new(places(&*program, stop)?);
        Ok(Ready {
            program,
            places,
            prime: 0,
        })
    }

    /// Where the recording of a query is.
    pub(super) fn query(&self, name: &str) -> PathBuf {
        self.options.inputs.join(format!("{name}.pbr"))
    }

    fn backend(&self, name: &str) -> Result<Ready, String> {
        let recording = Recording::open(&self.query(name)).map_err(|e| e.to_string())?;
        let (program, prime) = piebald_lab::opened(name, recording, replay())?;
        let places = Arc::new(places(&*program, self.hooks.stop)?);
        Ok(Ready {
            program,
            places,
            prime,
        })
    }

    fn recorded(&self, name: &str, tree: u64) -> Result<Recorded, String> {
        let entry = self.list.file(name)?;
        let [skip, limit] = entry.kept()?;
        let megabytes = match self.options.quick {
            true => self.list.tree.quick_megabytes,
            false => self.list.tree.megabytes,
        };
        // What the list calls by its place among the directories has the sum of its tree.
        let drawn = format!("tree{megabytes}-{tree}");
        let word = |word: &String| match word.as_str() {
            "tree" => drawn.clone(),
            "tree2" => format!("copy{megabytes}"),
            "tree.tar" => format!("tree{megabytes}.tar"),
            "out.tar" => format!("out{megabytes}.tar"),
            other => other.to_owned(),
        };
        let program = StandIn {
            name: format!("srm-{name}-{megabytes}-{tree}"),
            stands_for: name.to_owned(),
            class: String::new(),
            command: entry.command.iter().map(word).collect(),
            packages: Vec::new(),
            skip,
            limit,
            why: entry.why.clone(),
            inputs: vec![format!("{drawn}.sum")],
        };
        let wanted = Wanted {
            program: &program,
            refs: limit,
        };
        let path = (self.hooks.record)(&wanted, &self.options.inputs);
        let path = path
            .map_err(|e| format!("{name}: {e} (scripts/stand-ins.sh srm makes what it needs)"))?;
        let recording = Recording::open(&path).map_err(|e| e.to_string())?;
        Recorded::new(name, recording, replay()).map_err(|e| e.to_string())
    }
}

/// Recordings depend neither on the seed nor on the references that are asked for.
fn drawn(source: &Source, asked: (u64, u64)) -> (u64, u64) {
    match source {
        Source::Recorded(..) | Source::Backend(_) => (0, 0),
        Source::Own(inner, _) | Source::Reader(inner) | Source::Free(inner) => drawn(inner, asked),
        Source::Builtin(_) | Source::Transactions(_) => asked,
    }
}

fn replay() -> ReplayOptions {
    ReplayOptions {
        fetches: true,
        dependences: true,
        ..ReplayOptions::default()
    }
}

fn builtin(text: &str, seed: u64, refs: u64) -> Result<Recorded, String> {
    let builtin = Builtin::parse(text).map_err(|e| e.to_string())?;
    // A library of its own: the recording goes when nobody needs it any more.
    let program = Library::new().program(&builtin, seed, refs, replay());
    program.map_err(|e| e.to_string())
}
