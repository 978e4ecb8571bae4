//! Keys of HVR: `frames = "hvr"` and the table `hvr` of a policy, `class`, `arrives_us` and
//! `leaves_us` of programs, and the table `[course]`.

use piebald_sim::{
    Course, Stay,
    rooms::{
        hw::spec::MachineSpec,
        os_model::kernel::SysMonConfig,
        policy::{
            contract::Mode,
            hvr::{
                BankGroups, Class, Config, Framework, Interleave, LowLocality, Manager, Mixed,
                OtherRegions, Policy as Scheme, Program, Spare,
            },
        },
    },
};
use piebald_units::Picos;
use toml::Spanned;

use super::{Frames, Policy, ProgramEntry, ScenarioError, Source, file};
use crate::colors;

/// Longest run, in microseconds: a minute.
const LONGEST_US: f64 = 6e7;

/// How HVR manages the programs of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HvrPolicy {
    /// Its choices.
    pub config: Config,
    /// How programs are watched whose class is not given; `None` = not at all.
    pub sysmon: Option<SysMonConfig>,
    /// A program that ends and is started again is no new one to it.
    pub remember: bool,
}

/// Frameworks and single policies by name.
const FRAMEWORKS: [(&str, Framework); 13] = [
    ("hvr", Framework::Hvr),
    ("coalescing", Framework::Coalescing),
    ("static", Framework::Static),
    ("curve", Framework::Curve),
    ("shared", Framework::Fixed(Scheme::Shared)),
    ("cache-only", Framework::Fixed(Scheme::CacheOnly)),
    ("bank-only-4", Framework::Fixed(Scheme::BankOnly4)),
    ("bank-only-8", Framework::Fixed(Scheme::BankOnly8)),
    ("a-vp", Framework::Fixed(Scheme::AVp)),
    ("b-vp", Framework::Fixed(Scheme::BVp)),
    ("c-vp", Framework::Fixed(Scheme::CVp)),
    ("curve-vp", Framework::Fixed(Scheme::CurveVp)),
    ("random", Framework::Fixed(Scheme::Random)),
];

/// The table `hvr` of policy `i`.
pub(super) fn policy(
    table: &file::PolicyTable,
    source: &Source<'_>,
    i: usize,
    frames: Frames,
) -> Result<Option<HvrPolicy>, ScenarioError> {
    let at = Keys { source, i };
    match (&table.hvr, frames) {
        (Some(hvr), Frames::Hvr) => at.read(hvr.get_ref()).map(Some),
        (None, Frames::Hvr) => at.read(&file::HvrTable::default()).map(Some),
        (Some(hvr), _) => {
            let problem = format!("policy[{i}].hvr: allowed only with frames = \"hvr\"");
            Err(source.error(hvr.span().start, problem))
        }
        (None, _) => Ok(None),
    }
}

struct Keys<'a> {
    source: &'a Source<'a>,
    i: usize,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("policy[{}].hvr.{name}", self.i)
    }

    fn read(&self, table: &file::HvrTable) -> Result<HvrPolicy, ScenarioError> {
        let mut config = Config::PAPER;
        let monitor = &mut config.monitor;
        let low = [("llct", LowLocality::Llct), ("ccf", LowLocality::Ccf)];
        monitor.thresholds.low_locality = self.word(&table.low_locality, "low_locality", &low)?;
        let numbers = [
            (
                &table.reuse_passes,
                "reuse_passes",
                &mut monitor.thresholds.reuse_passes,
            ),
            (
                &table.ccf_pages,
                "ccf_pages",
                &mut monitor.thresholds.ccf_pages,
            ),
            (
                &table.llch_pages,
                "llch_pages",
                &mut monitor.thresholds.llch_pages,
            ),
            (
                &table.hot_freq_bp,
                "hot_freq_bp",
                &mut monitor.thresholds.hot_freq_bp,
            ),
            (&table.few, "few", &mut config.few),
            (
                &table.segregate_from,
                "segregate_from",
                &mut config.segregate_from,
            ),
        ];
        for (given, name, value) in numbers {
            if let Some(given) = given {
                *value = self.number(given, name)?;
            }
        }
        config.framework = self.word(&table.framework, "framework", &FRAMEWORKS)?;
        let groups = [("8", BankGroups::ByPrograms), ("4", BankGroups::Four)];
        config.bank_groups = self.word(&table.bank_groups, "bank_groups", &groups)?;
        let mixed = [("everyone", Mixed::Everyone), ("alone", Mixed::Alone)];
        config.mixed = self.word(&table.mixed, "mixed", &mixed)?;
        let other = [("used", OtherRegions::Used), ("left", OtherRegions::Left)];
        config.other_regions = self.word(&table.other_regions, "other_regions", &other)?;
        let spare = [("lent", Spare::Lent), ("kept", Spare::Kept)];
        config.spare = self.word(&table.spare, "spare", &spare)?;
        let order = [
            ("random", Interleave::Random),
            ("round-robin", Interleave::RoundRobin),
            ("by-core", Interleave::ByCore),
        ];
        config.interleave = self.word(&table.interleave, "interleave", &order)?;
        let mode = [("hint", Mode::Hint), ("hard", Mode::Hard)];
        config.mode = self.word(&table.mode, "mode", &mode)?;
        let watch = table.watch.unwrap_or(true);
        let remember = table
            .remember
            .as_ref()
            .is_some_and(|given| *given.get_ref());
        if let Some(given) = table.remember.as_ref().filter(|_| remember && !watch) {
            let allowed = "false where watch = false: nothing is found then";
            return Err(self
                .source
                .refuse(given, &self.key("remember"), true, allowed));
        }
        let time_scale = match &table.time_scale {
            Some(given) => self.number(given, "time_scale")?,
            None => SysMonConfig::default().time_scale,
        };
        Ok(HvrPolicy {
            config,
            sysmon: watch.then_some(SysMonConfig {
                time_scale,
                ..SysMonConfig::default()
            }),
            remember,
        })
    }

    fn word<T: Copy>(
        &self,
        given: &Option<Spanned<String>>,
        name: &str,
        words: &[(&str, T)],
    ) -> Result<T, ScenarioError> {
        self.source.choose(given, &self.key(name), words)
    }

    fn number(&self, given: &Spanned<i64>, name: &str) -> Result<u32, ScenarioError> {
        let number = *given.get_ref();
        let fits = u32::try_from(number).ok().filter(|n| *n > 0);
        fits.ok_or_else(|| {
            let allowed = format!("1 to {}", u32::MAX);
            self.source.refuse(given, &self.key(name), number, allowed)
        })
    }
}

/// When program `i` is there, and what it is.
pub(super) fn stay(
    table: &file::ProgramTable,
    source: &Source<'_>,
    i: usize,
) -> Result<Stay, ScenarioError> {
    let key = |name: &str| format!("program[{i}].{name}");
    let words: [(&str, Option<Class>); 4] = [
        ("ccf", Some(Class::Ccf)),
        ("llcm", Some(Class::Llcm)),
        ("llch", Some(Class::Llch)),
        ("llct", Some(Class::Llct)),
    ];
    let class = match &table.class {
        None => None,
        given => source.choose(given, &key("class"), &words)?,
    };
    let arrives = time(&table.arrives_us, source, &key("arrives_us"))?;
    let leaves = time(&table.leaves_us, source, &key("leaves_us"))?;
    if let (Some(given), Some(to)) = (&table.leaves_us, leaves)
        && to <= arrives.unwrap_or(Picos(0))
    {
        let allowed = "later than it arrives";
        return Err(source.refuse(given, &key("leaves_us"), given.get_ref(), allowed));
    }
    Ok(Stay {
        arrives,
        leaves,
        class,
        remembered: false,
    })
}

fn time(
    given: &Option<Spanned<f64>>,
    source: &Source<'_>,
    key: &str,
) -> Result<Option<Picos>, ScenarioError> {
    let Some(given) = given else { return Ok(None) };
    let us = *given.get_ref();
    if !(1.0..=LONGEST_US).contains(&us) {
        let allowed = format!("1 to {LONGEST_US} us");
        return Err(source.refuse(given, key, us, allowed));
    }
    Ok(Some(Picos((us * 1e6).round() as u64)))
}

/// The table `[course]`.
pub(super) fn course(
    file: &file::File,
    source: &Source<'_>,
    programs: &[ProgramEntry],
) -> Result<Option<Course>, ScenarioError> {
    let Some(table) = &file.course else {
        let timed = |p: &ProgramEntry| p.stay.arrives.is_some() || p.stay.leaves.is_some();
        return match programs.iter().position(timed) {
            None => Ok(None),
            Some(i) => {
                let problem = format!(
                    "program[{i}]: arrives_us and leaves_us: allowed only with a table [course], \
                     which says how long runs last"
                );
                Err(source.error(file.program[i].span().start, problem))
            }
        };
    };
    let course = table.get_ref();
    let until = time(&Some(course.until_us.clone()), source, "course.until_us")?;
    let until = until.unwrap_or(Picos(0));
    let every = match time(&course.every_us, source, "course.every_us")? {
        Some(every) => every,
        None => Picos((until.0 / 50).max(1_000_000)),
    };
    if every > until {
        let problem = "course.every_us: allowed: up to until_us";
        return Err(source.error(table.span().start, problem));
    }
    let warmup = time(&course.warmup_us, source, "course.warmup_us")?;
    if let Some(given) = course.warmup_us.as_ref().filter(|_| warmup >= Some(until)) {
        let allowed = "less than until_us";
        return Err(source.refuse(given, "course.warmup_us", given.get_ref(), allowed));
    }
    Ok(Some(Course {
        until,
        every,
        after_setup: course.after_setup,
        warmup,
    }))
}

/// Checks a policy's HVR against the machine's colours.
pub(super) fn check(
    table: &Spanned<file::PolicyTable>,
    source: &Source<'_>,
    machine: &MachineSpec,
    policy: &Policy,
    i: usize,
) -> Result<(), ScenarioError> {
    let Some(hvr) = &policy.hvr else {
        return Ok(());
    };
    let span = table
        .get_ref()
        .hvr
        .as_ref()
        .map_or(table.span(), Spanned::span);
    let refuse = |why: String| source.error(span.start, format!("policy[{i}].hvr: {why}"));
    let map = colors::map_of(machine, policy).map_err(refuse)?;
    let made = Manager::new(map, vec![Program::EMPTY; 1], hvr.config);
    made.map(|_| ()).map_err(|e| refuse(e.to_string()))
}
