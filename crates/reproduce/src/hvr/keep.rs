//! Runs of mixes that are kept from one command to the next ([`crate::kept`]): what a run is, in
//! all that its result depends on, and its result bit by bit.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use piebald_lab::rooms::policy::hvr::Class;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::mixes::{Bench, Did, Key, Known, Ran};
use crate::kept::{Kept, Tally, executable, sum_of_file, sum_of_text};

/// What is kept of a run: numbers as the bits that they are, since NaN is one of them.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Of each program: pace, instructions per cycle, row hits, faults, moving, lines, pages.
    did: Vec<[u64; 7]>,
    curve: Vec<u64>,
    parts: Vec<(Option<String>, String)>,
}

impl Stored {
    fn of(ran: &Ran) -> Self {
        let did = ran.did.iter();
        let did = did.map(|d| {
            let all = [
                d.pace, d.ipc, d.row_hits, d.faults, d.moving, d.lines, d.pages,
            ];
            all.map(f64::to_bits)
        });
        let parts = ran.parts.iter();
        let parts = parts.map(|(class, own)| (class.map(|c| c.name().to_owned()), own.to_string()));
        Self {
            did: did.collect(),
            curve: ran.curve.clone(),
            parts: parts.collect(),
        }
    }

    fn ran(self) -> Result<Ran, String> {
        let did = self.did.into_iter().map(|bits| {
            let [pace, ipc, row_hits, faults, moving, lines, pages] = bits.map(f64::from_bits);
            Did {
                pace,
                ipc,
                row_hits,
                faults,
                moving,
                lines,
                pages,
            }
        });
        let parts = self.parts.into_iter().map(|(class, own)| {
            let class = class.map(|name| {
                let known = Class::ALL.into_iter().find(|c| c.name() == name);
                known.ok_or_else(|| format!("--keep: \"{name}\" is no class"))
            });
            let own = own.parse().map_err(|e| format!("--keep: {own}: {e}"))?;
            Ok((class.transpose()?, own))
        });
        Ok(Ran {
            did: did.collect(),
            curve: self.curve,
            parts: parts.collect::<Result<_, String>>()?,
        })
    }
}

/// Runs that are kept, and the sums of recordings.
pub(super) struct Keeper {
    kept: Kept,
    sums: Mutex<HashMap<PathBuf, String>>,
}

impl Keeper {
    /// # Errors
    /// Those of [`Kept::open`] and [`executable`].
    pub(super) fn open(folder: &Path) -> Result<Self, String> {
        Self::of(folder, &executable()?)
    }

    fn of(folder: &Path, executable: &str) -> Result<Self, String> {
        Ok(Self {
            kept: Kept::open(folder, crate::System::Hvr.name(), executable)?,
            sums: Mutex::default(),
        })
    }

    pub(super) fn tally(&self) -> Tally {
        self.kept.tally()
    }

    /// A run that was kept, or else what `run` gives, which is kept if it is no error.
    pub(super) fn of_run(
        &self,
        bench: &Bench<'_>,
        key: &Key,
        run: impl FnOnce() -> Known,
    ) -> Known {
        // Without its inputs it says itself what it lacks.
        let Ok(inputs) = self.inputs(bench, key) else {
            return run();
        };
        let name = name(bench, key);
        if let Some(stored) = self.kept.get::<Stored>(&name, &inputs)? {
            return stored.ran();
        }
        let ran = run()?;
        self.kept.keep(name, inputs, &Stored::of(&ran))?;
        Ok(ran)
    }

    /// The sum of each program's recording; built-in programs are what the run says.
    fn inputs(&self, bench: &Bench<'_>, (_, mix, ..): &Key) -> Result<Value, String> {
        let each = mix.members.iter().map(|(at, _)| {
            let program = &bench.programs[*at];
            let Some(path) = program.recording(&bench.inputs) else {
                return Ok(format!("{:?}", program.source));
            };
            let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(sum) = sums.get(&path) {
                return Ok(sum.clone());
            }
            let sum = sum_of_file(&path)?;
            sums.insert(path, sum.clone());
            Ok(sum)
        });
        Ok(Value::from(each.collect::<Result<Vec<_>, String>>()?))
    }
}

/// All that a run's result depends on, but its inputs.
fn name(bench: &Bench<'_>, (way, mix, repetition, bus): &Key) -> Value {
    let member = |(at, copy): &(usize, u32)| {
        json!({
            "program": bench.programs[*at].name,
            "copy": copy,
            "class": bench.classes[*at].map(Class::name),
            "share": bench.shares[*at].to_bits(),
        })
    };
    json!({
        "way": format!("{way:?}"),
        "mix": mix.name,
        "number": mix.number,
        "members": mix.members.iter().map(member).collect::<Vec<_>>(),
        "repetition": repetition,
        "seed": bench.seed,
        "bus": bus,
        "warmup": bench.warmup,
        "budget": bench.budget,
        "places": bench.places,
        "curves": bench.curves,
        "machine": sum_of_text(&format!("{:?}", bench.spec)),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use piebald_lab::rooms::hw::{presets, spec::MachineSpec};

    use super::*;
    use crate::{
        Hooks, Options,
        hvr::{
            form::Form,
            mixes::Mix,
            programs::{Program, parse},
            rows::Runs,
            ways::{BUS, Way},
        },
    };

    /// Two built-in programs, one that fits everywhere and a stream.
    pub(in super::super) fn programs() -> Vec<Program> {
        let entry = |name: &str, builtin: &str| {
            format!(
                "[[program]]\nname = \"{name}\"\nstands_for = \"\"\nclass = \"\"\n\
                 builtin = \"{builtin}\"\nwhy = \"small enough to be run in a test\"\n"
            )
        };
        let [a, b] = [entry("small", "gups:64KiB"), entry("stream", "triad:1MiB")];
        parse(&format!("schema = 1\n{a}{b}")).expect("a list")
    }

    /// All that the mix of both programs gives with these settings, and how the runs were come by.
    fn ran(keeper: &Keeper, spec: &MachineSpec, seed: u64) -> (Vec<Ran>, u64) {
        let programs = programs();
        let options = Options {
            quick: true,
            seed,
            budget_refs: Some(2000),
            ..Options::default()
        };
        let nobody = |_: &crate::Wanted<'_>, _: &Path| Err("nothing is recorded".to_owned());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &nobody,
        };
        let classes = [Some(Class::Ccf), Some(Class::Llct)];
        let list = (&programs[..], &classes[..], &[1.0, 0.5][..]);
        let form = Form::new(&options);
        let runs = Runs::new(spec, list, form, &options, (hooks, Some(keeper)));
        let mix = Mix {
            name: "t",
            number: 0,
            members: vec![(0, 0), (1, 0)],
        };
        let ways = [Way::Linux, Way::Hvr];
        runs.bench.prepare(std::slice::from_ref(&mix), &ways, BUS);
        let alone = mix.members.iter().map(|m| (Way::Linux, Mix::alone(*m)));
        let keys = ways.map(|way| (way, mix.clone())).into_iter().chain(alone);
        let done = runs.bench.done.lock().expect("no run failed");
        let of = |(way, mix)| done[&(way, mix, 0, BUS)].clone().expect("it ran");
        (keys.map(of).collect(), runs.refs())
    }

    fn bits(all: &[Ran]) -> Vec<String> {
        let one = |ran: &Ran| serde_json::to_string(&Stored::of(ran)).expect("a line");
        all.iter().map(one).collect()
    }

    #[test]
    fn what_was_kept_is_what_was_run_and_only_of_the_same_executable_and_settings() {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = presets::load("i7-860").expect("the machine");
        let open = |executable| Keeper::of(folder.path(), executable).expect("a file");
        let (first, refs) = ran(&open("one"), &spec, 1);
        assert!(refs > 0 && first[1].parts.len() == 2, "{first:?}");
        assert!(first[0].did.len() == 2 && first[2].curve.len() == 32);
        let keeper = open("one");
        let (again, refs) = ran(&keeper, &spec, 1);
        assert_eq!((bits(&again), refs), (bits(&first), 0));
        assert_eq!((keeper.tally().used, keeper.tally().added), (4, 0));
        let (_, refs) = ran(&keeper, &spec, 2);
        assert!(refs > 0, "another seed");
        let mut other = spec.clone();
        other.cache[1].ways *= 2;
        let (_, refs) = ran(&keeper, &other, 1);
        assert!(refs > 0, "another machine");
        assert_eq!((keeper.tally().used, keeper.tally().added), (4, 8));
        drop(keeper);
        let keeper = open("two");
        let (_, refs) = ran(&keeper, &spec, 1);
        assert!(refs > 0, "another executable");
        assert_eq!(
            (keeper.tally().used, keeper.tally().other_executable),
            (0, 12)
        );
    }

    #[test]
    fn every_number_comes_back_bit_by_bit() {
        let odd = [f64::NAN, -f64::NAN, f64::INFINITY, -0.0, 5e-324, 0.1 + 0.2];
        let did = odd.map(|v| Did {
            pace: v,
            ipc: -v,
            row_hits: v / 3.0,
            faults: v,
            moving: v,
            lines: -v,
            pages: v,
        });
        let ran = Ran {
            did: did.to_vec(),
            curve: vec![u64::MAX, 0],
            parts: vec![
                (None, "none".parse().expect("a set")),
                (Some(Class::Llcm), "0-3,8".parse().expect("a set")),
            ],
        };
        let line = serde_json::to_string(&Stored::of(&ran)).expect("a line");
        let back: Stored = serde_json::from_str(&line).expect("it is read");
        let back = back.ran().expect("a run");
        assert_eq!(
            bits(std::slice::from_ref(&back)),
            bits(std::slice::from_ref(&ran))
        );
        for (a, b) in ran.did.iter().zip(&back.did) {
            assert_eq!(a.pace.to_bits(), b.pace.to_bits());
            assert_eq!(a.row_hits.to_bits(), b.row_hits.to_bits());
        }
        assert_eq!(ran.parts, back.parts);
    }
}
