//! What the plugin is told when it is loaded.

use std::path::PathBuf;

use piebald_hw::{Features, spec::MachineSpec};

/// Most memory that a guest may have: beyond it the machine `q35` leaves a hole in the
/// physical addresses, which those reported here do not have.
pub const MAX_MEMORY: u64 = 0xb000_0000 - 1;
/// Instructions of a quantum unless told otherwise.
pub const QUANTUM: u64 = 1000;
/// Instructions of a turn unless told otherwise.
pub const TURN: u64 = 50_000;
/// Longest quantum, and longest turn.
const MAX_QUANTUM: u64 = 10_000_000;
/// Features of the model that can be on: the others need virtual addresses or dependences,
/// which are not reported here.
const ALLOWED_FEATURES: [&str; 2] = ["coherence", "prefetch"];

/// The arguments `machine=NAME-OR-FILE`, `output=FILE`, `memory=BYTES`, and if wanted
/// `quantum=INSTRUCTIONS`, `turn=INSTRUCTIONS` (0: as QEMU likes), `features=NAME+NAME` and
/// `counters=FILE`.
#[derive(Clone, Debug)]
pub struct Args {
    /// The machine to model.
    pub machine: MachineSpec,
    /// Where the results go.
    pub output: PathBuf,
    /// Bytes of the guest's memory.
    pub memory: u64,
    /// Instructions of a quantum.
    pub quantum: u64,
    /// Most instructions of a turn; `None` = QEMU decides alone.
    pub turn: Option<u64>,
    /// Parts of the model that are on.
    pub features: Features,
    /// The file behind the memory in which the guest reads its counters.
    pub counters: Option<PathBuf>,
}

/// Reads the arguments.
///
/// # Errors
/// The first argument that is missing or not what it has to be, and what is allowed.
pub fn read(args: &[String]) -> Result<Args, String> {
    let (mut machine, mut output, mut memory) = (None, None, None);
    let (mut quantum, mut turn, mut counters) = (QUANTUM, TURN, None);
    let mut features = Features::NONE;
    features.coherence = true;
    for arg in args {
        match arg.split_once('=') {
            Some(("machine", name)) => machine = Some(read_machine(name)?),
            Some(("output", path)) => output = Some(PathBuf::from(path)),
            Some(("memory", bytes)) => memory = Some(number(arg, bytes, 1 << 20, MAX_MEMORY)?),
            Some(("quantum", n)) => quantum = number(arg, n, 1, MAX_QUANTUM)?,
            Some(("turn", n)) => turn = number(arg, n, 0, MAX_QUANTUM)?,
            Some(("features", names)) => features = read_features(names)?,
            Some(("counters", path)) => counters = Some(PathBuf::from(path)),
            _ => {
                return Err(format!(
                    "argument {arg:?}; allowed: machine=, output=, memory=, quantum=, turn=, features=, counters="
                ));
            }
        }
    }
    let missing = |name: &str| format!("argument {name}= is missing");
    let machine = machine.ok_or_else(|| missing("machine"))?;
    let memory = memory.ok_or_else(|| missing("memory"))?;
    if memory > machine.memory.size.0 {
        return Err(format!(
            "argument memory={memory}: the machine {} has {}",
            machine.name, machine.memory.size
        ));
    }
    Ok(Args {
        output: output.ok_or_else(|| missing("output"))?,
        machine,
        memory,
        quantum,
        turn: (turn > 0).then_some(turn),
        features,
        counters,
    })
}

/// A preset, or a file if there is a slash in it or it ends in `.toml`.
fn read_machine(name: &str) -> Result<MachineSpec, String> {
    if !name.contains('/') && !name.ends_with(".toml") {
        return piebald_hw::presets::load(name).map_err(|e| format!("argument machine=: {e}"));
    }
    let text = std::fs::read_to_string(name).map_err(|e| format!("{name}: {e}"))?;
    piebald_hw::presets::parse(&text, name).map_err(|e| e.to_string())
}

fn number(arg: &str, text: &str, least: u64, most: u64) -> Result<u64, String> {
    match text.parse() {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        _ => Err(format!("argument {arg}; allowed: {least} to {most}")),
    }
}

fn read_features(names: &str) -> Result<Features, String> {
    let mut features = Features::NONE;
    for name in names.split('+').filter(|n| *n != "none") {
        if !ALLOWED_FEATURES.contains(&name) {
            let allowed = ALLOWED_FEATURES.join(", ");
            return Err(format!(
                "argument features={names}: \"{name}\"; allowed: none, {allowed}"
            ));
        }
        features.set(name, true).map_err(|e| e.to_string())?;
    }
    Ok(features)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(args: &[&str]) -> Result<Args, String> {
        read(&args.iter().map(|a| (*a).to_owned()).collect::<Vec<_>>())
    }

    const GOOD: [&str; 3] = ["machine=w3540", "output=o.json", "memory=1073741824"];

    #[test]
    fn what_is_not_said_has_a_default() {
        let args = read_all(&GOOD).expect("good arguments");
        assert_eq!((args.quantum, args.memory), (QUANTUM, 1 << 30));
        assert_eq!((args.turn, args.counters), (Some(TURN), None));
        assert_eq!(args.features.on(), ["coherence"]);
        assert_eq!(args.machine.name, "w3540");
    }

    #[test]
    fn what_is_said_counts() {
        let more = [
            &GOOD[..],
            &[
                "quantum=20",
                "turn=0",
                "features=coherence+prefetch",
                "counters=c",
            ],
        ]
        .concat();
        let args = read_all(&more).expect("good arguments");
        assert_eq!((args.quantum, args.turn), (20, None));
        assert_eq!(args.counters, Some("c".into()));
        assert_eq!(args.features.on(), ["coherence", "prefetch"]);
        let none = [&GOOD[..], &["features=none"]].concat();
        let args = read_all(&none).expect("good arguments");
        assert!(args.features.on().is_empty());
    }

    #[test]
    fn bad_arguments_are_named() {
        for (bad, said) in [
            ("machine=pdp11", "w3540"),
            ("machine=./no-such.toml", "no-such.toml"),
            ("memory=lots", "allowed: 1048576 to"),
            ("memory=3221225472", "allowed: 1048576 to"),
            ("quantum=0", "allowed: 1 to"),
            ("turn=-1", "allowed: 0 to"),
            ("features=tlb", "allowed: none, coherence, prefetch"),
            ("colour=3", "allowed: machine="),
        ] {
            let error = read_all(&[&GOOD[..], &[bad]].concat()).expect_err(bad);
            assert!(error.contains(said), "{bad}: {error}");
        }
        for (i, name) in ["machine", "output", "memory"].iter().enumerate() {
            let mut fewer = GOOD.to_vec();
            fewer.remove(i);
            let error = read_all(&fewer).expect_err(name);
            assert_eq!(error, format!("argument {name}= is missing"));
        }
    }
}
