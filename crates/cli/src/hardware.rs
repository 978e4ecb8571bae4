//! `piebald hardware-report`: what one computer does with the module, in one file.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::atomic::AtomicBool,
    thread::sleep,
    time::Duration,
};

use piebald_linux::{
    CompareError, Comparison, MapBits, Module, ModuleError, Share, Trial, Wanted, Work, bytes_of,
    compare, last_level, unload,
};
use piebald_policy::contract::Mode;
use piebald_units::Bytes;
use serde_json::{Value, json};

use crate::{
    compare as comparisons, failure::Failure, json::Json, live, load, numbers, probe, running,
    status,
};

/// Bits that make colours where nothing shows which ones isolate: what the module costs does not depend on them.
const ANY_BITS: &str = "12-15";
/// Parts of the last level that victims walk through.
const PARTS: [u64; 3] = [8, 4, 2];
/// Last level where the kernel describes none, in bytes.
const NO_LEVEL: u64 = 8 << 20;
/// Steps of a victim, and programs that are started for each MiB of `--size`.
const STEPS_PER_MIB: u64 = 1 << 18;
const PROGRAMS_PER_MIB: u64 = 4;
/// Memory and files of work, in bytes.
const SIZES: RangeInclusive<u64> = 64..=1 << 40;
/// How long a neighbour may take to have its colours, and to give them back, on a computer that is busy after all.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Arguments of `piebald hardware-report`.
#[derive(clap::Args)]
#[command(
    after_help = "Loads the module and takes it out again; coloring is switched for the whole computer meanwhile. Needs \
    root, and a computer that does nothing else. Nothing in the file names the computer or its users."
)]
pub(crate) struct Args {
    /// The module, as for `load`
    module: Option<PathBuf>,
    /// The address bits that make colors [default: those that the probe finds, else 12-15, for costs alone]
    #[arg(long, value_name = "BITS")]
    map: Option<MapBits>,
    #[command(flatten)]
    json: Json,
    /// Pairs of runs of each comparison
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = numbers::whole::<u32>(3..=1000))]
    pairs: u32,
    /// Rounds of the probe
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = numbers::whole::<u32>(3..=1000))]
    rounds: u32,
    /// Memory and file of a run that costs are measured by, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = numbers::whole::<u64>(1..=65_536))]
    size: u64,
    /// Say nothing meanwhile
    #[arg(short, long)]
    quiet: bool,
}

/// Arguments of the work that is measured: a process of its own.
#[derive(clap::Args)]
pub(crate) struct WorkArgs {
    #[command(subcommand)]
    work: Kind,
}

#[derive(clap::Subcommand)]
enum Kind {
    Faults {
        #[arg(value_parser = numbers::whole::<u64>(SIZES))]
        bytes: u64,
    },
    File {
        path: PathBuf,
        #[arg(value_parser = numbers::whole::<u64>(SIZES))]
        bytes: u64,
    },
    Programs {
        #[arg(value_parser = numbers::whole::<u32>(1..=1_000_000))]
        count: u32,
    },
    Walk {
        #[arg(value_parser = numbers::whole::<u64>(SIZES))]
        bytes: u64,
        #[arg(value_parser = numbers::whole::<u64>(1..=1_000_000_000_000))]
        steps: u64,
    },
    Sweep {
        #[arg(value_parser = numbers::whole::<u64>(SIZES))]
        bytes: u64,
    },
    Wait,
}

/// Does one piece of work.
pub(crate) fn work(args: &WorkArgs) -> Result<ExitCode, Failure> {
    let work = match &args.work {
        Kind::Faults { bytes } => Work::Faults(*bytes),
        Kind::File { path, bytes } => Work::File(path.clone(), *bytes),
        Kind::Programs { count } => Work::Programs(*count),
        Kind::Walk { bytes, steps } => Work::Walk {
            bytes: *bytes,
            steps: *steps,
        },
        Kind::Sweep { bytes } => Work::Sweep(*bytes),
        Kind::Wait => Work::Wait,
    };
    work.run().map_err(Failure::failed)?;
    Ok(ExitCode::SUCCESS)
}

/// What is loaded goes, however the report ends.
struct Loaded;

impl Drop for Loaded {
    fn drop(&mut self) {
        if let Ok(module) = live::module() {
            // Nobody is left to tell of an error.
            let _ = module.end_sets();
            let _ = unload();
        }
    }
}

/// A new folder for the file of work, which may still be there if that was interrupted.
struct Temporary(PathBuf);

impl Temporary {
    fn new() -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("piebald-report-{}", std::process::id()));
        // One that is there is somebody else's.
        fs::create_dir(&folder)
            .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
        Ok(Self(folder))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nobody is left to tell of an error.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A neighbour, which ends with this.
struct Neighbour(Child);

impl Drop for Neighbour {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let root = live::root();
    match Module::attach(&root) {
        Err(ModuleError::NotLoaded { .. }) => {}
        Ok(_) => {
            return Err(Failure::failed(
                "the module is loaded, and somebody may use it; `piebald unload` takes it out, and the report loads it itself",
            ));
        }
        Err(error) => return Err(live::failure(error)),
    }
    let stop = running::stop_flag()?;
    let tell = |what: &str| {
        if !args.quiet {
            crate::failure::say!("piebald: {what}");
        }
    };
    tell("probing");
    let probed = probe::look_in(args.rounds, args.quiet)?;
    let map = map_of(args, &probed)?;
    load::fits(&map, &root)?;
    if map.colors() < LEAST_COLORS {
        return Err(Failure::usage(format!(
            "--map {map}: {} colors; allowed: {LEAST_COLORS} or more, so two bits at least",
            map.colors()
        )));
    }
    let loaded = Loaded;
    load::first(&root, args.module.as_deref(), Some(&map))?;
    let report = Report {
        args,
        root: &root,
        module: live::module()?,
        colors: map.colors(),
        stop: &stop,
        tell: &tell,
    };
    // With a map, it is switched on as it is loaded, which its self-test comes before.
    if !report.module.is_on().map_err(live::failure)? {
        return Err(Failure::failed(
            "coloring is off although the module was loaded with a map",
        ));
    }
    let costs = report.costs()?;
    let level = probed.facts.caches.as_deref().ok().and_then(last_level);
    let pairs = report.pairs(level.map_or(NO_LEVEL, bytes_of))?;
    let wrong = report.module.check().map_err(live::failure)?;
    let after = report.module.status().map_err(live::failure)?;
    drop(loaded);
    let value = json!({
        "schema": 1,
        "piebald": env!("PIEBALD_VERSION"),
        "computer": computer(&root),
        "probe": probed.json(),
        "module": {
            "map": map.to_string(),
            "map_is_probed": args.map.is_none() && !probed.verdict.map_bits.is_empty(),
            "self_test": "passed",
            "books": wrong.as_deref().unwrap_or("right"),
            "status": status::as_json(&after),
        },
        "pairs_of_runs": args.pairs,
        "costs": costs.iter().map(Measured::json).collect::<Vec<Value>>(),
        "neighbours": pairs.iter().map(Measured::json).collect::<Vec<Value>>(),
    });
    let mut out = probed.text();
    let _ = writeln!(
        out,
        "\nmodule     loaded with {map}: its self-test passed; books: {}",
        wrong.as_deref().unwrap_or("right")
    );
    out += "\nwhat coloring changes\n";
    for measured in costs.iter().chain(&pairs) {
        out += &measured.text();
    }
    args.json.show(&out, &value)?;
    Ok(ExitCode::SUCCESS)
}

/// What was asked for, what was measured, or any.
fn map_of(args: &Args, probed: &probe::Found) -> Result<MapBits, Failure> {
    if let Some(map) = &args.map {
        return Ok(map.clone());
    }
    let bits = &probed.verdict.map_bits;
    let map = if bits.is_empty() {
        ANY_BITS.parse()
    } else {
        MapBits::plain(bits.iter().copied())
    };
    map.map_err(Failure::failed)
}

/// Something that was compared.
struct Measured {
    what: String,
    state: String,
    found: Comparison,
}

impl Measured {
    fn json(&self) -> Value {
        json!({ "what": self.what, "state": self.state, "comparison": comparisons::as_json(&self.found) })
    }

    /// A line for each quantity that people look at.
    fn text(&self) -> String {
        let mut out = format!("{}, {}\n", self.what, self.state);
        for (quantity, finding) in self.found.quantities.iter().zip(self.found.findings()) {
            if ["wall time", "CPU time", "instructions", "cycles"].contains(&quantity.name) {
                let _ = writeln!(
                    out,
                    "  {:<14}{}",
                    quantity.name,
                    comparisons::change(quantity, finding)
                );
            }
        }
        out
    }
}

/// What all measurements have in common.
struct Report<'a> {
    args: &'a Args,
    root: &'a Path,
    module: Module,
    colors: u32,
    stop: &'a AtomicBool,
    tell: &'a dyn Fn(&str),
}

impl Report<'_> {
    /// What the kernel does for programs, by who has colours.
    fn costs(&self) -> Result<Vec<Measured>, Failure> {
        let bytes = (self.args.size << 20).to_string();
        let temporary = Temporary::new()?;
        let file = temporary.0.join("file").to_string_lossy().into_owned();
        let programs = (self.args.size * PROGRAMS_PER_MIB).to_string();
        let size = Bytes(self.args.size << 20);
        let works = [
            (format!("{size} of new memory"), vec!["faults", &bytes]),
            (format!("a new file of {size}"), vec!["file", &file, &bytes]),
            (
                format!("{programs} programs that begin and end"),
                vec!["programs", &programs],
            ),
        ];
        // One is for those who have none.
        let most = Wanted::colors(&range(0, self.colors - 2)).map_err(Failure::failed)?;
        let quarter: Share = "25%".parse().map_err(Failure::failed)?;
        let mut measured = Vec::new();
        for (what, words) in works {
            let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
            for (state, wanted, beside) in [
                ("nobody has colors", None, false),
                ("others have colors", None, true),
                ("with all colors but one", Some(most.clone()), false),
                (
                    "with a quarter of the colors",
                    Some(Wanted::Share(quarter)),
                    false,
                ),
            ] {
                let neighbour = if beside {
                    Some(self.neighbour("0", &["wait".to_owned()])?)
                } else {
                    None
                };
                measured.push(self.compared(&what, state, &words, wanted)?);
                neighbour.map_or(Ok(()), |neighbour| self.end(neighbour))?;
            }
        }
        Ok(measured)
    }

    /// Victims that own half of the colours, beside a neighbour in the other half.
    fn pairs(&self, level: u64) -> Result<Vec<Measured>, Failure> {
        let half = self.colors / 2;
        // One is for those who have none.
        let (mine, theirs) = (range(0, half - 1), range(half, self.colors - 2));
        let wanted = Wanted::colors(&mine).map_err(Failure::failed)?;
        let sweep = ["sweep".to_owned(), (2 * level).to_string()];
        let mut measured = Vec::new();
        for part in PARTS {
            let bytes = level / part;
            let steps = STEPS_PER_MIB * self.args.size;
            let words = ["walk".to_owned(), bytes.to_string(), steps.to_string()];
            let neighbour = self.neighbour(&theirs, &sweep)?;
            let what = format!(
                "a walk through {}, beside a sweep through {}",
                Bytes(bytes),
                Bytes(2 * level)
            );
            measured.push(self.compared(
                &what,
                "in half of the colors, the other in the rest but one",
                &words,
                Some(wanted.clone()),
            )?);
            self.end(neighbour)?;
        }
        Ok(measured)
    }

    /// This program, doing work.
    fn program() -> Result<PathBuf, Failure> {
        std::env::current_exe()
            .map_err(|e| Failure::failed(format!("this program's own file: {e}")))
    }

    fn neighbour(&self, colors: &str, words: &[String]) -> Result<Neighbour, Failure> {
        self.module.switch(true).map_err(live::failure)?;
        let program = Self::program()?;
        let mut command = Command::new(&program);
        command
            .args(["run", "--colors", colors, "--"])
            .arg(&program)
            .arg("hardware-work")
            .args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        let child = command.spawn();
        let mut neighbour =
            Neighbour(child.map_err(|e| Failure::failed(format!("{}: {e}", program.display())))?);
        let pid = neighbour.0.id();
        let mut waited = Duration::ZERO;
        while !self.has_colors(pid)? {
            if waited >= PATIENCE || neighbour.0.try_wait().map_err(Failure::failed)?.is_some() {
                return Err(Failure::failed(format!(
                    "a neighbour in colors {colors} did not begin"
                )));
            }
            sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        Ok(neighbour)
    }

    /// Has a process that `run` started a set with its group?
    fn has_colors(&self, pid: u32) -> Result<bool, Failure> {
        let sets = self.module.status().map_err(live::failure)?.sets;
        let group = format!("/piebald-run-{pid}");
        let is_its = |path: &String| {
            path.strip_suffix(".scope")
                .unwrap_or(path)
                .ends_with(&group)
        };
        Ok(sets.iter().any(|set| set.groups.iter().any(is_its)))
    }

    /// Ends a neighbour; its set goes a moment later, and others would not be alone before.
    fn end(&self, neighbour: Neighbour) -> Result<(), Failure> {
        let pid = neighbour.0.id();
        drop(neighbour);
        let mut waited = Duration::ZERO;
        while self.has_colors(pid)? {
            if waited >= PATIENCE {
                return Err(Failure::failed(
                    "the colors of a neighbour that has ended stay",
                ));
            }
            sleep(LOOK_EVERY);
            waited += LOOK_EVERY;
        }
        Ok(())
    }

    fn compared(
        &self,
        what: &str,
        state: &str,
        words: &[String],
        wanted: Option<Wanted>,
    ) -> Result<Measured, Failure> {
        (self.tell)(&format!("{what}, {state}"));
        let mut command = vec![Self::program()?.into_os_string(), "hardware-work".into()];
        command.extend(words.iter().map(Into::into));
        let trial = Trial {
            command,
            wanted: wanted.map(|wanted| (wanted, Mode::Hint)),
            pairs: self.args.pairs,
            cold: false,
            root: self.root.to_owned(),
        };
        let found =
            compare(&self.module, &trial, self.stop, &|_| {}).map_err(|error| match error {
                CompareError::Stopped => {
                    Failure::failed("interrupted; the module is taken out again")
                }
                error => Failure::failed(format!("{what}, {state}: {error}")),
            })?;
        Ok(Measured {
            what: what.to_owned(),
            state: state.to_owned(),
            found,
        })
    }
}

/// A colour for those who have none, one for a neighbour, and half of all for a victim.
const LEAST_COLORS: u32 = 4;

/// Colours behind one another, as they are asked for.
fn range(first: u32, last: u32) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// What kind of computer it is.
fn computer(root: &Path) -> Value {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let cpu = read("proc/cpuinfo");
    let of_cpu = |key: &str| {
        let line = cpu
            .lines()
            .find(|line| line.split(':').next().is_some_and(|k| k.trim() == key));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    let folder = root.join("sys/devices/system/cpu/vulnerabilities");
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mitigations: BTreeMap<String, String> = files
        .filter_map(|file| {
            Some((
                file.file_name().into_string().ok()?,
                fs::read_to_string(file.path()).ok()?.trim().to_owned(),
            ))
        })
        .collect();
    let nodes = fs::read_dir(root.join("sys/devices/system/node"))
        .into_iter()
        .flatten()
        .flatten();
    let nodes = nodes.filter(|file| {
        let name = file.file_name();
        let number = name.to_str().and_then(|n| n.strip_prefix("node"));
        number.is_some_and(|n| n.parse::<u32>().is_ok())
    });
    let memory = read("proc/meminfo");
    let memory = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"));
    let system = read("etc/os-release");
    let system = system
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    json!({
        "vendor": of_cpu("vendor_id"),
        "processor": of_cpu("model name"),
        "family": of_cpu("cpu family"),
        "model": of_cpu("model"),
        "stepping": of_cpu("stepping"),
        "microcode": of_cpu("microcode"),
        "processors": cpu.lines().filter(|line| line.starts_with("processor")).count(),
        "memory_nodes": nodes.count(),
        "memory": memory.map(str::trim),
        "system": system.map(|name| name.trim_matches('"')),
        "mitigations": mitigations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computer_is_described_by_what_its_kernel_says() {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        };
        write(
            "proc/cpuinfo",
            "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 26\nmodel name\t: A B @ 2 GHz\nprocessor\t: 1\n",
        );
        write("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 1 kB\n");
        write(
            "etc/os-release",
            "ID=x\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n",
        );
        write(
            "sys/devices/system/cpu/vulnerabilities/meltdown",
            "Not affected\n",
        );
        write("sys/devices/system/node/node0/x", "");
        write("sys/devices/system/node/node1/x", "");
        write("sys/devices/system/node/possible", "0-1");
        let found = computer(root.path());
        let expected = json!({
            "vendor": "GenuineIntel", "processor": "A B @ 2 GHz", "family": null, "model": "26", "stepping": null,
            "microcode": null, "processors": 2, "memory_nodes": 2, "memory": "1000 kB", "system": "Debian GNU/Linux 13",
            "mitigations": { "meltdown": "Not affected" },
        });
        assert_eq!(found, expected);
    }
}
