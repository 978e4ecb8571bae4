//! Replays as experiments: a file whose program is block or file requests.

use piebald_experiment::{
    self as experiment, DiskStart, Document, Experiment, HostName, KeyPath, LayoutRule, MemorySize,
    Point, Problem, Program, Refused, Text, Words,
};
use piebald_hw::nearest::did_you_mean;
use piebald_os_model::{file::CpuCost, replace::PolicySpec};
use piebald_sim::replay::{Align, Excerpt, InputSetup, Pace};
use piebald_trace::block::{Columns, Format, Options, PageShift, Stage};
use piebald_units::{Bytes, Picos};
use piebald_workload::{Builtin, Touches};

use crate::scenario::swap;

use super::{
    ClientsAsked, CurveRequest, DeviceChoice, LayoutChoice, Load, Paging, Part, ReplayRequest,
};

/// Policies that are replayed unless others are named.
pub const POLICIES: [&str; 5] = ["clock", "dulo", "arc", "s3-fifo", "lirs"];
/// Policies for objects of different sizes, likewise.
pub const USUAL_FOR_OBJECTS: [&str; 5] = ["lru", "fifo", "clock", "s3-fifo", "sieve"];
/// Sizes that are replayed unless others are given.
pub const SIZES: [&str; 5] = ["1%", "2%", "5%", "10%", "25%"];
/// The axis that a replay has.
const SIZE: &str = "memory.size";
/// No device.
const NONE: &str = "none";

/// Is this the file of a replay?
pub fn is_replay(experiment: &Experiment) -> bool {
    experiment.program.iter().any(|p| p.replayed().is_some())
}

/// The replay that a file asks for.
///
/// # Errors
/// All that a replay has not, with file, line and key.
pub fn asked(document: &Document) -> Result<ReplayRequest, Refused> {
    let document = document.clone().on(HostName::Model);
    let points = document.points()?;
    let mut sizes = Vec::new();
    for Point { document, axes } in &points {
        if let Some((axis, _)) = axes.iter().find(|(axis, _)| axis != SIZE) {
            let path = KeyPath::of("sweep").key(axis);
            let says = format!("allowed: the axis {SIZE} alone for requests");
            return Err(document.refuse(vec![Problem::at(path, says)]));
        }
        let experiment = document.experiment()?;
        sizes.extend(experiment.memory.size.map(|Text(size)| size));
    }
    if sizes.is_empty() {
        sizes = SIZES.iter().filter_map(|size| size.parse().ok()).collect();
    }
    let document = points.first().map_or(&document, |point| &point.document);
    let experiment = document.experiment()?;
    request(document, &experiment, sizes).map_err(|problems| document.refuse(problems))
}

/// Keys that say something of all that is replayed.
const KEYS: [&str; 11] = [
    "schema",
    "title",
    "seed",
    "memory.size",
    "files.device",
    "files.readahead",
    "files.scheduler",
    "files.start",
    "policy[].name",
    "policy[].replace",
    "program[].name",
];
/// Those of requests.
const OF_REQUESTS: [&str; 14] = [
    "warmup_refs",
    "files.layout",
    "output.miss_ratio",
    "program[].requests",
    "program[].excerpt",
    "program[].format",
    "program[].columns",
    "program[].lenient",
    "program[].stage",
    "program[].align",
    "program[].objects",
    "program[].pace",
    "program[].page",
    "program[].ignore_sizes",
];
/// Those of clients and of page touches.
const OF_CLIENTS: [&str; 2] = ["files.layout", "program[].clients"];
const OF_TOUCHES: [&str; 2] = ["files.swap", "program[].touches"];

const NOT_OF_REQUESTS: &str =
    "says nothing of requests, which are replayed without a machine; allowed: leave it out";
const NOT_OF_LOOPS: &str =
    "says nothing of what is replayed here, without a machine; allowed: leave it out";

fn request(
    document: &Document,
    experiment: &Experiment,
    sizes: Vec<MemorySize>,
) -> Result<ReplayRequest, Vec<Problem>> {
    let at = KeyPath::of("program");
    let [program] = &experiment.program[..] else {
        let says = "allowed: a single program that has requests";
        return Err(vec![Problem::at(at, says)]);
    };
    let (own, says) = match (&program.clients, &program.touches) {
        (Some(_), _) => (&OF_CLIENTS[..], NOT_OF_LOOPS),
        (_, Some(_)) => (&OF_TOUCHES[..], NOT_OF_LOOPS),
        _ => (&OF_REQUESTS[..], NOT_OF_REQUESTS),
    };
    let beyond = document.beyond(&[&KEYS[..], own].concat()).into_iter();
    let mut problems: Vec<Problem> = beyond.map(|key| Problem::at(key, says)).collect();
    let at = at.item(0);
    needs(experiment, program, &at, &mut problems);
    let policies = policies(experiment, &mut problems);
    let load = load(document, experiment, &at, &mut problems);
    let input = match &load {
        Some(Load::Requests) => input(document, program, &at, &mut problems),
        _ => Some(InputSetup::default()),
    };
    let (Some(load), Some(input), true) = (load, input, problems.is_empty()) else {
        return Err(problems);
    };
    let usual = |names: &[&str]| names.iter().filter_map(|name| name.parse().ok()).collect();
    let files = experiment.files.as_ref();
    let folder = document.folder();
    Ok(ReplayRequest {
        load,
        input,
        part: program.excerpt.as_ref().map_or_else(Part::default, part),
        object_policies: policies
            .clone()
            .unwrap_or_else(|| usual(&USUAL_FOR_OBJECTS)),
        policies: policies.unwrap_or_else(|| usual(&POLICIES)),
        ignore_sizes: program.ignore_sizes,
        sizes,
        device: match files.map(|files| files.device.as_str()) {
            None | Some(NONE) => DeviceChoice::None,
            Some(file) if file.ends_with(".toml") => DeviceChoice::File(folder.join(file)),
            Some(name) => DeviceChoice::Preset(name.to_owned()),
        },
        readahead: files
            .map_or(NONE, |files| files.readahead.word())
            .to_owned(),
        scheduler: files
            .map_or("mq-deadline", |f| f.scheduler.word())
            .to_owned(),
        layout: match files.map(|files| &files.layout) {
            None | Some(LayoutRule::Auto) => LayoutChoice::Auto,
            Some(LayoutRule::Packed) => LayoutChoice::Packed,
            Some(LayoutRule::Slots) => LayoutChoice::Slots,
            Some(LayoutRule::Inodes) => LayoutChoice::Inodes,
            Some(LayoutRule::Scatter) => LayoutChoice::Scatter,
            Some(LayoutRule::FirstTouch) => LayoutChoice::FirstTouch,
            Some(LayoutRule::File(file)) => LayoutChoice::File(folder.join(file)),
        },
        pace: match program.pace.unwrap_or_default() {
            experiment::Pace::Serial => Pace::Serial,
            experiment::Pace::Ordered => Pace::Ordered,
            experiment::Pace::Tasks => Pace::Tasks,
            experiment::Pace::Timed => Pace::Timed,
        },
        warmup: experiment.warmup_refs.map_or(0, |refs| refs.get()),
        curves: experiment
            .output
            .miss_ratio
            .map(|ratio| CurveRequest { rate: ratio.rate() }),
        start: files.map_or(DiskStart::Zero, |files| files.start),
        seed: experiment.seed.get(),
        available: None,
    })
}

/// What a program needs of other keys.
fn needs(experiment: &Experiment, program: &Program, at: &KeyPath, problems: &mut Vec<Problem>) {
    let files = experiment.files.as_ref();
    let of_files = |key| KeyPath::of("files").key(key);
    let is_loop = program.clients.is_some() || program.touches.is_some();
    if is_loop && files.is_none_or(|files| files.device.as_str() == NONE) {
        let says = "speed decides what is asked next; allowed: a disk";
        problems.push(Problem::at(of_files("device"), says));
    }
    let layout = files.map(|files| &files.layout);
    if program.clients.is_some() && !matches!(layout, Some(LayoutRule::File(_))) {
        let says = "where the files of queries lie; allowed: { file = \"x.layout\" }";
        problems.push(Problem::at(of_files("layout"), says));
    }
    let drawn = program.excerpt.as_ref().map(part);
    let traces = program.requests.as_ref().map_or(0, Vec::len);
    if drawn.is_some_and(|part| part.is_drawn()) && traces > 1 {
        let says = format!(
            "skip and lead: processes of {traces} traces are not told apart; allowed: one trace"
        );
        problems.push(Problem::at(at.key("excerpt"), says));
    }
}

/// What is replayed.
fn load(
    document: &Document,
    experiment: &Experiment,
    at: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Option<Load> {
    let program = experiment.program.first()?;
    let folder = document.folder();
    if let Some(clients) = &program.clients {
        let usual = CpuCost::P4_1700;
        return Some(Load::Clients(ClientsAsked {
            queries: folder.join(&clients.queries),
            sequences: folder.join(&clients.sequences),
            length: Picos(clients.seconds.get() * 1_000_000_000_000),
            processor: CpuCost {
                call: clients.call_us.map_or(usual.call, |us| us.picos()),
                page: clients.page_us.map_or(usual.page, |us| us.picos()),
            },
        }));
    }
    let Some(text) = &program.touches else {
        return Some(Load::Requests);
    };
    let text = text.to_string();
    let found = Builtin::parse(&text).and_then(|builtin| Touches::of(&builtin));
    let found = found.map_err(|e| Problem {
        path: at.key("touches"),
        value: Some(format!("\"{text}\"")),
        says: e.to_string(),
    });
    let files = experiment.files.as_ref();
    let swap = files.map_or(Ok(0), |files| swap(files.swap.0, &KeyPath::of("files")));
    let paging = found.and_then(|touches| {
        Ok(Load::Touches(Paging {
            name: program.name().into_owned(),
            touches,
            swap: swap?,
        }))
    });
    paging.map_err(|problem| problems.push(problem)).ok()
}

/// Which part of the requests is replayed.
fn part(excerpt: &experiment::Excerpt) -> Part {
    let share = |share: Option<Text<experiment::Percent>>| share.map_or(0.0, |Text(s)| s.ratio());
    Part {
        limit: excerpt.limit.map(|refs| refs.get()),
        skip: share(excerpt.skip),
        lead: share(excerpt.lead),
    }
}

fn policies(experiment: &Experiment, problems: &mut Vec<Problem>) -> Option<Vec<PolicySpec>> {
    let mut specs: Vec<PolicySpec> = Vec::new();
    for (i, policy) in experiment.policy.iter().enumerate() {
        let path = KeyPath::of("policy").item(i).key("replace");
        let Some(text) = &policy.replace else {
            problems.push(Problem::at(path, "is missing: which page leaves memory"));
            continue;
        };
        match text.parse::<PolicySpec>() {
            Ok(spec) if specs.contains(&spec) => {
                problems.push(Problem::refuse(
                    path,
                    format!("\"{text}\""),
                    "each policy once",
                ));
            }
            Ok(spec) => specs.push(spec),
            Err(e) => problems.push(Problem {
                path,
                value: Some(format!("\"{text}\"")),
                says: e.to_string(),
            }),
        }
    }
    (!specs.is_empty()).then_some(specs)
}

fn input(
    document: &Document,
    program: &Program,
    at: &KeyPath,
    problems: &mut Vec<Problem>,
) -> Option<InputSetup> {
    let Some(paths) = &program.requests else {
        problems.push(Problem::at(
            at.clone(),
            "has no requests; `piebald study` runs it",
        ));
        return None;
    };
    let refuse = |key: &str, text: &str, says: String| Problem {
        path: at.key(key),
        value: Some(format!("\"{text}\"")),
        says,
    };
    let format = program.format.as_deref().and_then(|name| {
        let near = did_you_mean(name, Format::ALL.into_iter().map(Format::name));
        let read = name.parse::<Format>();
        read.map_err(|e| problems.push(refuse("format", name, format!("{e}{near}"))))
            .ok()
    });
    let columns = program.columns.as_deref().and_then(|text| {
        let read = text.parse::<Columns>();
        read.map_err(|e| problems.push(refuse("columns", text, e.to_string())))
            .ok()
    });
    let page = program.page.map_or(Bytes(4096), |Text(page)| page);
    let page = PageShift::from_bytes(page).or_else(|| {
        let allowed = "a power of two from 512 B to 1 GiB";
        problems.push(Problem::refuse(at.key("page"), page, allowed));
        None
    })?;
    let folder = document.folder();
    Some(InputSetup {
        paths: paths.iter().map(|path| folder.join(path)).collect(),
        options: Options {
            format,
            columns,
            lenient: program.lenient,
            stage: match program.stage.unwrap_or_default() {
                experiment::Stage::Queue => Stage::Queue,
                experiment::Stage::Issue => Stage::Issue,
            },
            ..Options::default()
        },
        page,
        number_ids: false,
        excerpt: Excerpt::default(),
        align: match program.align.unwrap_or_default() {
            experiment::Align::Stamps => Align::Stamps,
            experiment::Align::Start => Align::Start,
            experiment::Align::Turn => Align::Turn,
        },
        same_objects: program
            .objects
            .map(|objects| objects == experiment::Objects::Same),
        sorted: Vec::new(),
    })
}
