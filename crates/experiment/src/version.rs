//! Files of earlier versions: what their keys are now.
//!
//! A file of guests, schema 1, had keys of its own. It is changed in memory before it is read,
//! by the same [`edits`] that `piebald scenario upgrade` makes in the file.

use piebald_hw::nearest::did_you_mean;
use piebald_units::ColorAsk;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use crate::{
    HostName, KeyPath, Part, Problem,
    merge::{find, lay, shown},
};

/// Keys of earlier versions, what they are now, and as in which example.
const MOVED: [(&str, &str, &str); 5] = [
    ("program[].vcpu", "program[].cores", "cores = \"0\""),
    (
        "guest.memory",
        "memory.size",
        "memory = { size = \"1GiB\" }",
    ),
    (
        "policy[].map",
        "policy[].color_map",
        "color_map = [\"15\", \"16\"]",
    ),
    ("policy[].srm", "policy[].files", "files = \"srm\""),
    (
        "policy[].threshold",
        "policy[].files",
        "files = \"srm:threshold=256\"",
    ),
];

/// Virtual processors of a guest whose file of schema 1 did not say how many.
const VCPUS: u32 = 2;
/// Largest threshold of SRM-buffer in pages.
const MAX_THRESHOLD: u32 = 1 << 16;

/// What a key of an earlier version is now, in words.
pub(crate) fn is_now(path: &KeyPath) -> Option<String> {
    let pattern = path.pattern();
    let (_, now, example) = MOVED.iter().find(|(old, ..)| *old == pattern)?;
    Some(format!(
        "is now {now}, as in {example}; `piebald scenario upgrade FILE` rewrites a file of schema 1"
    ))
}

/// An earlier key that an unknown one is like, to end a message with.
pub(crate) fn near(path: &KeyPath) -> Option<String> {
    let pattern = path.pattern();
    let (above, name) = pattern.rsplit_once('.')?;
    let old = MOVED.iter().filter_map(|(old, ..)| old.rsplit_once('.'));
    let here = old.filter(|(of, _)| *of == above).map(|(_, old)| old);
    Some(did_you_mean(name, here)).filter(|near| !near.is_empty())
}

/// Words of `alone`, and what an older file says instead.
const ALONE: [(&str, &str); 2] = [("\"none\"", "false"), ("\"all\" or \"targets\"", "true")];

/// A problem in the words of an older file: its key, and a value that was another one there.
pub(crate) fn write(problem: &mut Problem) {
    if problem.path == KeyPath::of("alone") {
        for (now, was) in ALONE {
            problem.says = problem.says.replace(now, was);
            problem.value = problem.value.take().map(|value| value.replace(now, was));
        }
    }
    problem.path = written(&problem.path);
}

/// The key that an older file has for this one.
fn written(path: &KeyPath) -> KeyPath {
    let pattern = path.pattern();
    let moved = MOVED.iter().find(|(_, now, _)| {
        let rest = pattern.strip_prefix(now);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['[', '.']))
    });
    let Some((old, now, _)) = moved else {
        return path.clone();
    };
    // Places in lists stand in the same order in both.
    let mut items = path.parts().iter().filter(|p| matches!(p, Part::Item(_)));
    let mut was = KeyPath::default();
    for key in old.split('.') {
        was = was.key(key.trim_end_matches("[]"));
        if key.ends_with("[]")
            && let Some(Part::Item(at)) = items.next()
        {
            was = was.item(*at);
        }
    }
    let nr_parts = now.split('.').count() + now.matches("[]").count();
    let rest = path.parts().iter().skip(nr_parts);
    rest.fold(was, |path, part| match part {
        Part::Key(key) => path.key(key),
        Part::Item(at) => path.item(*at),
    })
}

/// Is this a file of schema 1?
pub(crate) fn is_first(root: &DeTable<'_>) -> bool {
    let schema = root.get("schema").map(|schema| schema.get_ref());
    let number = schema.and_then(DeValue::as_integer);
    number.is_some_and(|number| number.as_str() == "1")
}

/// Is this a file of guests of schema 1? Such a file gives programs a `vcpu`, one of studies gives
/// them `cores`.
pub(crate) fn is_of_guests(root: &DeTable<'_>, host: Option<HostName>) -> bool {
    let programs = tables(root, "program");
    let has = |key: &str| {
        programs
            .iter()
            .any(|(_, program)| program.contains_key(key))
    };
    is_first(root) && (has("vcpu") || host == Some(HostName::Guest) && !has("cores"))
}

/// A change of a file: a value is taken from somewhere, or comes anew, and goes somewhere, or
/// nowhere.
pub(crate) struct Edit {
    pub from: Option<KeyPath>,
    pub to: Option<KeyPath>,
    /// Instead of what was there.
    pub value: Option<New>,
}

/// A value that an edit writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum New {
    Text(String),
    /// Up to 2.
    Number(u8),
}

impl Edit {
    fn new(from: Option<KeyPath>, to: Option<KeyPath>, value: Option<New>) -> Self {
        Self { from, to, value }
    }

    fn put(to: KeyPath, value: New) -> Self {
        Self::new(None, Some(to), Some(value))
    }

    /// Makes the change, where values keep their places.
    pub fn apply(self, root: &mut DeTable<'_>) {
        let was = self.from.and_then(|from| take(root, from.parts()));
        let Some(to) = self.to else {
            return;
        };
        let span = was.as_ref().map_or(0..0, Spanned::span);
        let value = match (self.value, was) {
            (Some(New::Text(text)), _) => Spanned::new(span, DeValue::String(text.into())),
            (Some(New::Number(number)), _) => match integer(number) {
                Some(number) => Spanned::new(span, number),
                None => return,
            },
            (None, Some(was)) => was,
            (None, None) => return,
        };
        // The tables that it goes to were found in this file.
        let _ = lay(root, to.parts(), value);
    }
}

/// Numbers that edits write, as TOML.
const NUMBERS: [&str; 3] = ["v = 0", "v = 1", "v = 2"];

fn integer(number: u8) -> Option<DeValue<'static>> {
    let text = NUMBERS.get(usize::from(number))?;
    let mut table = DeTable::parse(text).ok()?.into_inner();
    table.remove("v").map(Spanned::into_inner)
}

fn take<'a>(root: &mut DeTable<'a>, path: &[Part]) -> Option<Spanned<DeValue<'a>>> {
    let (Part::Key(first), rest) = path.split_first()? else {
        return None;
    };
    if rest.is_empty() {
        return root.remove(first.as_str());
    }
    let mut at = root.get_mut(first.as_str())?.get_mut();
    let (last, between) = rest.split_last()?;
    for part in between {
        at = match (at, part) {
            (DeValue::Table(table), Part::Key(key)) => table.get_mut(key.as_str())?.get_mut(),
            (DeValue::Array(items), Part::Item(index)) => items.get_mut(*index)?.get_mut(),
            _ => return None,
        };
    }
    match (at, last) {
        (DeValue::Table(table), Part::Key(key)) => table.remove(key.as_str()),
        _ => None,
    }
}

/// The tables of a list, and their paths.
fn tables<'t, 'a>(root: &'t DeTable<'a>, key: &str) -> Vec<(KeyPath, &'t DeTable<'a>)> {
    let list = root.get(key).and_then(|list| list.get_ref().as_array());
    let items = list.map(|list| list.as_ref()).unwrap_or_default();
    let tables = items.iter().enumerate();
    tables
        .filter_map(|(i, item)| Some((KeyPath::of(key).item(i), item.get_ref().as_table()?)))
        .collect()
}

/// The change that every file of schema 1 needs.
pub(crate) fn to_schema_2() -> Edit {
    let at = KeyPath::of("schema");
    Edit::new(Some(at.clone()), Some(at), Some(New::Number(2)))
}

/// What makes a file of guests of schema 1 one of schema 2 that says the same.
///
/// # Errors
/// Keys of the old form whose values it did not allow.
pub(crate) fn edits(root: &DeTable<'_>) -> Result<Vec<Edit>, Vec<Problem>> {
    let mut edits = Vec::new();
    let mut problems = Vec::new();
    edits.push(to_schema_2());
    let usual = [
        ("title", New::Text("Programs in a guest".to_owned())),
        ("repetitions", New::Number(1)),
        ("seed", New::Number(0)),
        ("alone", New::Text("targets".to_owned())),
    ];
    for (key, value) in usual {
        if !root.contains_key(key) {
            edits.push(Edit::put(KeyPath::of(key), value));
        }
    }
    if let Some(alone) = root.get("alone") {
        let at = KeyPath::of("alone");
        match alone.get_ref().as_bool() {
            Some(is) => {
                let word = if is { "targets" } else { "none" };
                let word = Some(New::Text(word.to_owned()));
                edits.push(Edit::new(Some(at.clone()), Some(at), word));
            }
            None => problems.push(Problem::refuse(at, shown(alone), "true, false")),
        }
    }
    new_keys(
        root,
        &KeyPath::default(),
        &["memory", "sweep", "on"],
        &mut problems,
    );
    let memory = KeyPath::of("guest").key("memory");
    if find(root, &memory).is_some() {
        let to = KeyPath::of("memory").key("size");
        edits.push(Edit::new(Some(memory), Some(to), None));
    }
    let vcpus = find(root, &KeyPath::of("guest").key("vcpus"));
    let vcpus = vcpus.map_or(Some(VCPUS), |n| {
        number(n.get_ref(), 1..=u32::from(u16::MAX))
    });
    for (at, program) in tables(root, "program") {
        of_program(program, vcpus, &at, &mut edits, &mut problems);
    }
    if !root.contains_key("policy") {
        let says = "at least one [[policy]] table is needed";
        problems.push(Problem::at(KeyPath::of("policy"), says));
    }
    for (at, policy) in tables(root, "policy") {
        of_policy(policy, &at, &mut edits, &mut problems);
    }
    if problems.is_empty() {
        Ok(edits)
    } else {
        Err(problems)
    }
}

/// Keys that files of guests have since schema 2: half an upgrade would mean something else.
fn new_keys(table: &DeTable<'_>, at: &KeyPath, keys: &[&str], problems: &mut Vec<Problem>) {
    for key in keys.iter().filter(|key| table.contains_key(**key)) {
        let says = "a file of guests has this key with schema = 2 only";
        problems.push(Problem::at(at.key(key), says));
    }
}

fn of_program(
    table: &DeTable<'_>,
    vcpus: Option<u32>,
    at: &KeyPath,
    edits: &mut Vec<Edit>,
    problems: &mut Vec<Problem>,
) {
    new_keys(table, at, &["cores"], problems);
    let mut need = |key: &str| {
        if !table.contains_key(key) {
            problems.push(Problem::at(at.clone(), format!("missing field `{key}`")));
        }
    };
    need("name");
    need("command");
    need("vcpu");
    let Some(vcpu) = table.get("vcpu") else {
        return;
    };
    let path = at.key("vcpu");
    match number(vcpu.get_ref(), 0..=u32::from(u16::MAX)) {
        Some(vcpu) if vcpus.is_some_and(|n| vcpu >= n) => {
            let allowed = format!("0 to {} (guest.vcpus - 1)", vcpus.unwrap_or(VCPUS) - 1);
            problems.push(Problem::refuse(path, vcpu, allowed));
        }
        Some(vcpu) => {
            let text = Some(New::Text(vcpu.to_string()));
            edits.push(Edit::new(Some(path), Some(at.key("cores")), text));
        }
        None => problems.push(Problem::refuse(path, shown(vcpu), "a whole number from 0")),
    }
}

fn of_policy(
    table: &DeTable<'_>,
    at: &KeyPath,
    edits: &mut Vec<Edit>,
    problems: &mut Vec<Problem>,
) {
    new_keys(table, at, &["frames", "color_map", "files"], problems);
    let has_module = table.contains_key("module");
    for key in ["map", "colors"]
        .into_iter()
        .filter(|key| table.contains_key(*key))
    {
        if !has_module {
            problems.push(Problem::at(at.key(key), "allowed with a module only"));
        }
    }
    if table.contains_key("map") {
        edits.push(Edit::new(
            Some(at.key("map")),
            Some(at.key("color_map")),
            None,
        ));
    }
    let is_srm = of_zone(table, at, edits, problems);
    let colors = table
        .get("colors")
        .and_then(|colors| colors.get_ref().as_table());
    for (name, text) in colors.into_iter().flatten() {
        // Without a word behind them colors were hints.
        let text = text.get_ref().as_str();
        if let Some(text) = text.filter(|text| text.parse::<ColorAsk>().is_ok()) {
            let path = at.key("colors").key(name.get_ref());
            let text = Some(New::Text(format!("{} hint", text.trim())));
            edits.push(Edit::new(Some(path.clone()), Some(path), text));
        }
    }
    let has_owners = colors.is_some_and(|colors| !colors.is_empty());
    if has_module && (has_owners || !is_srm) {
        let rainbow = New::Text("rainbow".to_owned());
        edits.push(Edit::put(at.key("frames"), rainbow));
    }
}

/// What `srm` and `threshold` say; is SRM-buffer on?
fn of_zone(
    table: &DeTable<'_>,
    at: &KeyPath,
    edits: &mut Vec<Edit>,
    problems: &mut Vec<Problem>,
) -> bool {
    let srm = table.get("srm");
    let is_srm = srm.and_then(|srm| srm.get_ref().as_bool());
    if let (Some(srm), None) = (srm, is_srm) {
        problems.push(Problem::refuse(at.key("srm"), shown(srm), "true, false"));
    }
    let is_srm = is_srm.unwrap_or(false);
    if is_srm && !table.contains_key("module") {
        problems.push(Problem::refuse(
            at.key("srm"),
            true,
            "false without a module",
        ));
    }
    let (from, text) = match table.get("threshold") {
        None => (at.key("srm"), "srm".to_owned()),
        Some(given) => {
            let pages = number(given.get_ref(), 1..=MAX_THRESHOLD).filter(|_| is_srm);
            if pages.is_none() {
                let allowed = format!("1 to {MAX_THRESHOLD} pages, with srm = true only");
                problems.push(Problem::refuse(at.key("threshold"), shown(given), allowed));
            }
            let text = format!("srm:threshold={}", pages.unwrap_or(1));
            (at.key("threshold"), text)
        }
    };
    if is_srm {
        edits.push(Edit::new(
            Some(from),
            Some(at.key("files")),
            Some(New::Text(text)),
        ));
    }
    let is_moved = is_srm && !table.contains_key("threshold");
    if table.contains_key("srm") && !is_moved {
        edits.push(Edit::new(Some(at.key("srm")), None, None));
    }
    is_srm
}

fn number(value: &DeValue<'_>, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let number = value.as_integer()?;
    let number = u32::from_str_radix(number.as_str(), number.radix()).ok()?;
    range.contains(&number).then_some(number)
}
