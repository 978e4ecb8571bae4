//! What to run in a guest: a TOML file, checked.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use piebald_hw::{
    nearest::{did_you_mean, hint_of},
    presets,
    spec::MachineSpec,
};
use piebald_qemu::system::MAX_MEMORY;
use piebald_report::Role;
use piebald_units::Bytes;
use serde::Deserialize;

/// Version of the layout.
const SCHEMA: u32 = 1;
/// Most virtual processors.
const MAX_VCPUS: u16 = 16;
/// Most repetitions.
const MAX_REPETITIONS: u32 = 100;
/// Least memory of a guest.
const MIN_MEMORY: u64 = 256 << 20;
/// Largest threshold of SRM-buffer in pages.
const MAX_THRESHOLD: u32 = 1 << 16;
/// Most bytes of all files.
const MAX_FILES: u64 = 1 << 30;
/// Least bytes of the disk that programs write to.
const MIN_SCRATCH: u64 = 16 << 20;
/// Where the guest has that disk.
pub(crate) const SCRATCH: &str = "/scratch/";
/// Where else a directory can be, in the guest's memory: where nothing else is put.
const TREES: [&str; 3] = ["/usr/share/", "/opt/", "/srv/"];

/// A file that cannot be run, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct ScenarioError {
    file: String,
    problem: String,
}

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its text.
    pub text: String,
    /// Title of the report.
    pub title: String,
    /// Boots of each policy and phase, with different free memory.
    pub repetitions: u32,
    /// The target is run alone as well.
    pub alone: bool,
    /// Seed of what differs between repetitions.
    pub seed: u64,
    /// The modelled machine.
    pub machine: MachineSpec,
    /// What names it to the plugin: a preset, or the path of a file.
    pub machine_name: String,
    /// The guest.
    pub guest: Guest,
    /// Files that programs find in `/data`.
    pub files: Vec<Input>,
    /// Directories of this computer that the guest has as well.
    pub trees: Vec<Tree>,
    /// Programs; the first target is the one that is measured.
    pub programs: Vec<Program>,
    /// Policies, in the order of the report.
    pub policies: Vec<Policy>,
}

/// The virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guest {
    /// Its memory in bytes.
    pub memory: u64,
    /// Its virtual processors.
    pub vcpus: u16,
    /// Seconds after which a boot is given up.
    pub timeout: u32,
    /// More of the kernel's command line.
    pub append: String,
    /// Bytes of an empty disk at `/scratch`, made anew for each boot; 0 = none.
    pub scratch: u64,
}

/// A file of random words, whose last line alone has the word `marmalade`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// Its name in `/data`.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Seed of its words.
    pub seed: u64,
}

/// A directory of this computer that the guest has as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// Here.
    pub from: PathBuf,
    /// In the guest: `/scratch/NAME`, on that disk and with its owners, or a path of the
    /// initial file system, where all is root's.
    pub to: String,
}

impl Tree {
    /// Its name on the disk that programs write to, if it is there.
    pub fn on_disk(&self) -> Option<&str> {
        self.to.strip_prefix(SCRATCH)
    }
}

/// What of a target counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The second of two runs, from its start to its end.
    #[default]
    SecondRun,
    /// What the program marks as region 1 itself.
    Marks,
}

/// One program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Name in the report.
    pub name: String,
    /// Program and arguments: a program of `programs/`, or one of this computer.
    pub command: Vec<String>,
    /// The virtual processor that it runs on.
    pub vcpu: u16,
    /// Why it is there.
    pub role: Role,
    /// What of it counts; of a target.
    pub measure: Measure,
    /// Programs of this computer that it starts, by absolute paths.
    pub needs: Vec<String>,
}

/// One way to run the programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Name in the report.
    pub name: String,
    /// The module to load; `None` = the stock kernel alone.
    pub module: Option<PathBuf>,
    /// The module's map: one line per colour bit.
    pub map: Vec<String>,
    /// Colours of programs by name, as the module reads them: `0-3`, `25%`, `3 hard`.
    pub colors: BTreeMap<String, String>,
    /// With SRM-buffer: files go through its coloured zone.
    pub srm: bool,
    /// Its T_l in pages, 1 to 65536; `None` = the module's own choice.
    pub threshold: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    title: Option<String>,
    #[serde(default = "one")]
    repetitions: u32,
    #[serde(default = "yes")]
    alone: bool,
    #[serde(default)]
    seed: u64,
    machine: MachineTable,
    #[serde(default)]
    guest: GuestTable,
    #[serde(default)]
    file: Vec<InputTable>,
    #[serde(default)]
    tree: Vec<TreeTable>,
    #[serde(default)]
    program: Vec<ProgramTable>,
    #[serde(default)]
    policy: Vec<PolicyTable>,
}

const fn one() -> u32 {
    1
}

const fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MachineTable {
    preset: Option<String>,
    file: Option<PathBuf>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct GuestTable {
    memory: String,
    vcpus: u16,
    timeout: u32,
    append: String,
    scratch: Option<String>,
}

impl Default for GuestTable {
    fn default() -> Self {
        Self {
            memory: "1GiB".into(),
            vcpus: 2,
            timeout: 600,
            append: String::new(),
            scratch: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputTable {
    name: String,
    size: String,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeTable {
    from: PathBuf,
    to: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProgramTable {
    name: String,
    command: Vec<String>,
    vcpu: u16,
    #[serde(default)]
    role: Role,
    #[serde(default)]
    measure: Measure,
    #[serde(default)]
    needs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyTable {
    name: String,
    module: Option<PathBuf>,
    #[serde(default)]
    map: Vec<String>,
    #[serde(default)]
    colors: BTreeMap<String, String>,
    #[serde(default)]
    srm: bool,
    threshold: Option<u32>,
}

impl Scenario {
    /// Reads and checks a scenario. Paths in it are relative to its folder.
    ///
    /// # Errors
    /// The first thing that cannot be run: file, key, value and what is allowed.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let failed = |problem: String| ScenarioError {
            file: path.display().to_string(),
            problem,
        };
        let text = std::fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        Self::parse(&text, folder).map_err(failed)
    }

    /// As [`read`](Self::read), of a text; `folder` is where its paths begin.
    ///
    /// # Errors
    /// The problem, without the file's name.
    pub fn parse(text: &str, folder: &Path) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| {
            let line = e
                .span()
                .map_or(1, |s| 1 + text[..s.start].matches('\n').count());
            let hint = hint_of(e.message());
            format!(
                "line {line}: {}{hint}",
                e.message().trim().replace('\n', ", ")
            )
        })?;
        check("schema", &file.schema, file.schema == SCHEMA, "1")?;
        let repetitions = file.repetitions;
        let good = (1..=MAX_REPETITIONS).contains(&repetitions);
        check("repetitions", &repetitions, good, "1 to 100")?;
        let (machine, machine_name) = machine(file.machine, folder)?;
        let guest = guest(file.guest, &machine)?;
        let scenario = Self {
            text: text.to_owned(),
            title: file.title.unwrap_or_else(|| "Programs in a guest".into()),
            repetitions,
            alone: file.alone,
            seed: file.seed,
            machine,
            machine_name,
            files: inputs(file.file)?,
            trees: trees(file.tree, folder, &guest)?,
            programs: programs(file.program, &guest)?,
            policies: policies(file.policy, folder)?,
            guest,
        };
        let good = scenario.alone || scenario.polluters().next().is_some();
        check("alone", &scenario.alone, good, "true without polluters")?;
        scenario.check_colors()?;
        Ok(scenario)
    }

    /// The program that is measured.
    pub fn target(&self) -> &Program {
        let target = self.programs.iter().find(|p| p.role == Role::Target);
        target.unwrap_or(&self.programs[0])
    }

    /// The programs beside it.
    pub fn polluters(&self) -> impl Iterator<Item = &Program> {
        self.programs.iter().filter(|p| p.role == Role::Polluter)
    }

    /// The phases of a repetition: is the target run together with others?
    pub fn phases(&self) -> &'static [bool] {
        match (self.alone, self.polluters().next()) {
            (false, _) => &[true],
            (true, None) => &[false],
            (true, Some(_)) => &[false, true],
        }
    }

    fn check_colors(&self) -> Result<(), String> {
        for (i, policy) in self.policies.iter().enumerate() {
            let names: Vec<&str> = self.programs.iter().map(|p| p.name.as_str()).collect();
            for program in policy.colors.keys() {
                let known = names.contains(&program.as_str());
                let field = format!("policy[{i}].colors");
                check(&field, program, known, &names.join(", "))?;
            }
        }
        Ok(())
    }
}

/// A value that must be good.
fn check(
    field: &str,
    value: &dyn std::fmt::Display,
    good: bool,
    allowed: &str,
) -> Result<(), String> {
    match good {
        true => Ok(()),
        false => Err(format!("{field} = {value}: allowed: {allowed}")),
    }
}

fn machine(table: MachineTable, folder: &Path) -> Result<(MachineSpec, String), String> {
    match (table.preset, table.file) {
        (Some(name), None) => {
            let spec = presets::get(&name).map(|text| presets::parse(text, &name));
            let known: Vec<&str> = presets::names().collect();
            let allowed = known.join(", ") + &did_you_mean(&name, presets::names());
            let spec = spec.ok_or(format!("machine.preset = {name}: allowed: {allowed}"))?;
            Ok((spec.map_err(|e| e.to_string())?, name))
        }
        (None, Some(file)) => {
            let path = folder.join(file);
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path);
            let text = text.map_err(|e| format!("machine.file = {name}: {e}"))?;
            let spec = presets::parse(&text, &name).map_err(|e| e.to_string())?;
            // The plugin tells a file from a preset by its slash.
            let path = std::path::absolute(&path).map_err(|e| format!("{name}: {e}"))?;
            Ok((spec, path.display().to_string()))
        }
        _ => Err("machine: allowed: one of the keys preset and file".into()),
    }
}

fn bytes(field: &str, text: &str) -> Result<u64, String> {
    let parsed = text.parse::<Bytes>();
    parsed
        .map(|b| b.0)
        .map_err(|e| format!("{field} = \"{text}\": {e}"))
}

fn guest(table: GuestTable, machine: &MachineSpec) -> Result<Guest, String> {
    let memory = bytes("guest.memory", &table.memory)?;
    let most = MAX_MEMORY.min(machine.memory.size.0);
    let good = (MIN_MEMORY..=most).contains(&memory) && memory.is_multiple_of(1 << 20);
    let allowed = format!("256MiB to {}MiB, in whole MiB", most >> 20);
    check("guest.memory", &table.memory, good, &allowed)?;
    let core = &machine.core;
    let cores = core.sockets.saturating_mul(core.per_socket);
    let most = cores.saturating_mul(core.smt).min(MAX_VCPUS);
    let good = (1..=most).contains(&table.vcpus);
    let allowed = format!("1 to {most} (hardware threads of the machine)");
    check("guest.vcpus", &table.vcpus, good, &allowed)?;
    let good = (10..=86400).contains(&table.timeout);
    check("guest.timeout", &table.timeout, good, "10 to 86400")?;
    let good = !table.append.contains(['\n', '"']);
    check(
        "guest.append",
        &table.append,
        good,
        "words without quotation marks",
    )?;
    let scratch = table.scratch.as_deref();
    let size = scratch.map_or(Ok(0), |text| bytes("guest.scratch", text))?;
    let good = scratch.is_none() || (MIN_SCRATCH..=MAX_FILES).contains(&size);
    let allowed = "16MiB to 1GiB";
    check("guest.scratch", &scratch.unwrap_or("0"), good, allowed)?;
    Ok(Guest {
        memory,
        vcpus: table.vcpus,
        timeout: table.timeout,
        append: table.append,
        scratch: size,
    })
}

/// Is it a name that needs no quoting anywhere?
fn is_plain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    !name.is_empty() && !name.starts_with(['.', '-']) && name.chars().all(plain)
}

fn inputs(tables: Vec<InputTable>) -> Result<Vec<Input>, String> {
    let mut seen = HashSet::new();
    let mut total = 0u64;
    let mut made = Vec::new();
    for (i, table) in tables.into_iter().enumerate() {
        let field = |key: &str| format!("file[{i}].{key}");
        let good = is_plain(&table.name) && seen.insert(table.name.clone());
        let allowed = "letters, digits, dots, dashes and underlines, each name once";
        check(&field("name"), &table.name, good, allowed)?;
        let size = bytes(&field("size"), &table.size)?;
        total = total.saturating_add(size);
        let good = size >= 4096 && total <= MAX_FILES;
        let allowed = "4KiB or more, 1GiB for all files together";
        check(&field("size"), &table.size, good, allowed)?;
        made.push(Input {
            name: table.name,
            size,
            seed: table.seed,
        });
    }
    Ok(made)
}

fn trees(tables: Vec<TreeTable>, folder: &Path, guest: &Guest) -> Result<Vec<Tree>, String> {
    let mut made: Vec<Tree> = Vec::new();
    for (i, table) in tables.into_iter().enumerate() {
        let field = format!("tree[{i}].to");
        let roots = [SCRATCH].into_iter().chain(TREES);
        let below = roots.filter_map(|root| table.to.strip_prefix(root)).next();
        let on_disk = table.to.starts_with(SCRATCH);
        let is_path =
            |below: &str| below.split('/').all(is_plain) && !(on_disk && below.contains('/'));
        let good = below.is_some_and(is_path) && (!on_disk || guest.scratch > 0);
        let allowed = "/scratch/NAME, with guest.scratch, or below /usr/share, /opt or /srv";
        check(&field, &table.to, good, allowed)?;
        let holds = |a: &str, b: &str| format!("{b}/").starts_with(&format!("{a}/"));
        let apart = |t: &Tree| !holds(&t.to, &table.to) && !holds(&table.to, &t.to);
        let allowed = "no directory inside another";
        check(&field, &table.to, made.iter().all(apart), allowed)?;
        made.push(Tree {
            from: folder.join(table.from),
            to: table.to,
        });
    }
    Ok(made)
}

fn programs(tables: Vec<ProgramTable>, guest: &Guest) -> Result<Vec<Program>, String> {
    let mut seen = HashSet::new();
    let targets = tables.iter().filter(|t| t.role == Role::Target).count();
    check("program: targets", &targets, targets == 1, "exactly one")?;
    let mut made = Vec::new();
    for (i, table) in tables.into_iter().enumerate() {
        let field = |key: &str| format!("program[{i}].{key}");
        let good = !table.name.trim().is_empty() && seen.insert(table.name.clone());
        check(&field("name"), &table.name, good, "each name once")?;
        let words = table.command.join(" ");
        let good = table.command.first().is_some_and(|w| is_command(w))
            && !table.command.iter().any(|w| w.contains(['\n', '\0']));
        let allowed = "a program's name or absolute path, and arguments of one line";
        check(&field("command"), &words, good, allowed)?;
        let good = table
            .needs
            .iter()
            .all(|w| w.starts_with('/') && is_command(w));
        let words = table.needs.join(" ");
        check(&field("needs"), &words, good, "absolute paths of programs")?;
        let good = table.vcpu < guest.vcpus;
        let allowed = format!("0 to {} (guest.vcpus - 1)", guest.vcpus - 1);
        check(&field("vcpu"), &table.vcpu, good, &allowed)?;
        let good = table.role == Role::Target || table.measure == Measure::SecondRun;
        check(&field("measure"), &"marks", good, "for the target only")?;
        made.push(Program {
            name: table.name,
            command: table.command,
            vcpu: table.vcpu,
            role: table.role,
            measure: table.measure,
            needs: table.needs,
        });
    }
    Ok(made)
}

fn is_command(word: &str) -> bool {
    is_plain(
        word.trim_start_matches('/')
            .rsplit('/')
            .next()
            .unwrap_or(""),
    ) && (!word.contains('/') || word.starts_with('/'))
}

fn policies(tables: Vec<PolicyTable>, folder: &Path) -> Result<Vec<Policy>, String> {
    let n = tables.len();
    check("policy", &n, n > 0, "at least one")?;
    let mut seen = HashSet::new();
    let mut made = Vec::new();
    for (i, table) in tables.into_iter().enumerate() {
        let field = |key: &str| format!("policy[{i}].{key}");
        let good = !table.name.trim().is_empty() && seen.insert(table.name.clone());
        check(&field("name"), &table.name, good, "each name once")?;
        let colors: Vec<&str> = table.colors.values().map(String::as_str).collect();
        let colors = colors.join("; ");
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '-' | ' ' | '%' | ';');
        let good = colors.chars().all(plain) && (colors.is_empty() || table.module.is_some());
        let allowed = "sets such as 0-3,8 or 25%, hard or hint behind them; with a module only";
        check(&field("colors"), &colors, good, allowed)?;
        let map = table.map.join("; ");
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | ';' | '^' | '+');
        let good = map.chars().all(plain) && (map.is_empty() == table.module.is_none());
        let allowed = "lines of address bits, for a module and only there";
        check(&field("map"), &map, good, allowed)?;
        let good = !table.srm || table.module.is_some();
        check(&field("srm"), &table.srm, good, "false without a module")?;
        let threshold = table.threshold;
        let good = threshold.is_none_or(|t| table.srm && (1..=MAX_THRESHOLD).contains(&t));
        let allowed = "1 to 65536 pages, with srm = true only";
        check(&field("threshold"), &threshold.unwrap_or(0), good, allowed)?;
        made.push(Policy {
            name: table.name,
            srm: table.srm,
            threshold,
            module: table.module.map(|m| folder.join(m)),
            map: table.map,
            colors: table.colors,
        });
    }
    Ok(made)
}

#[cfg(test)]
#[path = "scenario_tests.rs"]
mod tests;
