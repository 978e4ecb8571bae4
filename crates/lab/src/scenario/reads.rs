//! Keys of a policy that say how threads move: `reads`, `mfc`, `balance`, `migration_us`.

use piebald_sim::{
    NR_HOPS, Reads, Threads,
    rooms::{
        hw::spec::MachineSpec,
        policy::mfc::{Competitive, Config, MinRead, Second},
    },
};
use piebald_units::{Bytes, Picos};
use toml::Spanned;

use super::{ScenarioError, Source, file};

/// Longest time that a key may give, in microseconds.
const LONGEST_US: f64 = 1e6;
/// Longest period of the uses, in milliseconds.
const LONGEST_MS: f64 = 1e6;
/// Most files that MFC may be told to know.
const MOST_FILES: u32 = 1 << 20;

/// The keys of policy `i`.
pub(super) fn threads(
    table: &file::PolicyTable,
    source: &Source<'_>,
    machine: &MachineSpec,
    i: usize,
) -> Result<Threads, ScenarioError> {
    let key = |name: &str| format!("policy[{i}].{name}");
    let words = [("none", false), ("mfc", true)];
    let is_mfc = source.choose(&table.reads, &key("reads"), &words)?;
    let balance = table.balance.unwrap_or(false);
    let migration = match &table.migration_us {
        Some(times) => migration(times, source, &key("migration_us"))?,
        None if is_mfc || balance => Config::PAPER.migration,
        None => [Picos(0); NR_HOPS],
    };
    let reads = match (&table.mfc, is_mfc) {
        (mfc, true) => {
            let at = Keys { source, i };
            let reads = at.reads(mfc.as_ref().map(Spanned::get_ref), migration)?;
            reads.check(machine).map_err(|e| {
                let span = mfc.as_ref().map(Spanned::span);
                let span = span.or(table.reads.as_ref().map(Spanned::span));
                source.error(span.map_or(0, |s| s.start), format!("{}: {e}", key("mfc")))
            })?;
            Some(reads)
        }
        (Some(mfc), false) => {
            let problem = format!("{}: allowed only with reads = \"mfc\"", key("mfc"));
            return Err(source.error(mfc.span().start, problem));
        }
        (None, false) => None,
    };
    Ok(Threads {
        balance,
        migration,
        reads,
        first: None,
    })
}

fn migration(
    times: &Spanned<Vec<f64>>,
    source: &Source<'_>,
    key: &str,
) -> Result<[Picos; NR_HOPS], ScenarioError> {
    let given = times.get_ref();
    let fits = |us: &f64| (0.0..=LONGEST_US).contains(us);
    if given.is_empty() || given.len() > NR_HOPS || !given.iter().all(fits) {
        let allowed = format!(
            "1 to {NR_HOPS} times of 0 to {LONGEST_US} us, for 0 hops, 1 hop and so on; the last one \
             holds for more hops"
        );
        return Err(source.refuse(times, key, format!("{given:?}"), allowed));
    }
    let at = |hops: usize| given[hops.min(given.len() - 1)];
    Ok(std::array::from_fn(|hops| picos(at(hops))))
}

/// Microseconds that were checked.
fn picos(us: f64) -> Picos {
    Picos((us * 1e6).round() as u64)
}

/// The keys of the table `mfc`.
struct Keys<'a> {
    source: &'a Source<'a>,
    i: usize,
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("policy[{}].mfc.{name}", self.i)
    }

    fn reads(
        &self,
        table: Option<&file::MfcTable>,
        migration: [Picos; NR_HOPS],
    ) -> Result<Reads, ScenarioError> {
        let mut reads = Reads::default();
        let config = &mut reads.config;
        config.migration = migration;
        let Some(table) = table else {
            return Ok(reads);
        };
        if let Some(least) = &table.min_read {
            config.min_read = self.min_read(least)?;
        }
        let numbers = [
            (&table.busy, "busy", 0, &mut config.busy),
            (&table.idle, "idle", 0, &mut config.idle),
            (&table.lfu_factor, "lfu_factor", 1, &mut config.lfu_factor),
            (
                &table.off_chip_bytes_per_us,
                "off_chip_bytes_per_us",
                1,
                &mut config.off_chip_bytes_per_us,
            ),
            (
                &table.on_chip_bytes_per_us,
                "on_chip_bytes_per_us",
                1,
                &mut config.on_chip_bytes_per_us,
            ),
            (&table.files, "files", 1, &mut reads.files),
        ];
        for (given, name, least, number) in numbers {
            if let Some(given) = given {
                *number = self.number(given, name, least)?;
            }
        }
        if let Some(ms) = self.time(&table.decay_ms, "decay_ms", [1e-3, LONGEST_MS], "ms")? {
            config.period = picos(ms * 1e3);
        }
        if let Some(chunk) = &table.chunk {
            let bytes = chunk.get_ref().0;
            if !(4096..=1 << 30).contains(&bytes.0) {
                let key = self.key("chunk");
                return Err(self.source.refuse(chunk, &key, bytes, "4KiB to 1GiB"));
            }
            config.chunk = bytes;
        }
        let whose = [
            ("file", Competitive::PerFile),
            ("core", Competitive::PerCore),
            ("off", Competitive::Off),
        ];
        config.competitive =
            (self.source).choose(&table.competitive, &self.key("competitive"), &whose)?;
        reads.switches.copies = table.copies.unwrap_or(true);
        let second = [("place", Second::Place), ("ignore", Second::Ignore)];
        reads.switches.second = self
            .source
            .choose(&table.second, &self.key("second"), &second)?;
        let most = [0.0, LONGEST_US];
        if let Some(us) = self.time(&table.access_us, "access_us", most, "us")? {
            reads.access = picos(us);
        }
        if let Some(us) = self.time(&table.assignment_us, "assignment_us", most, "us")? {
            reads.assignment = picos(us);
        }
        Ok(reads)
    }

    fn min_read(&self, given: &Spanned<String>) -> Result<MinRead, ScenarioError> {
        let text = given.get_ref();
        if text == "break-even" {
            return Ok(MinRead::BreakEven);
        }
        let bytes = text.parse::<Bytes>().map_err(|_| {
            let allowed = "a size such as \"45KiB\", or \"break-even\"";
            (self.source).refuse(given, &self.key("min_read"), format!("\"{text}\""), allowed)
        })?;
        Ok(MinRead::Fixed(bytes))
    }

    fn number(&self, given: &Spanned<i64>, name: &str, least: u32) -> Result<u32, ScenarioError> {
        let number = *given.get_ref();
        let fits = u32::try_from(number)
            .ok()
            .filter(|n| (least..=MOST_FILES).contains(n));
        fits.ok_or_else(|| {
            let allowed = format!("{least} to {MOST_FILES}");
            self.source.refuse(given, &self.key(name), number, allowed)
        })
    }

    fn time(
        &self,
        given: &Option<Spanned<f64>>,
        name: &str,
        [least, most]: [f64; 2],
        unit: &str,
    ) -> Result<Option<f64>, ScenarioError> {
        let Some(given) = given else {
            return Ok(None);
        };
        let time = *given.get_ref();
        if !(least..=most).contains(&time) {
            let allowed = format!("{least} to {most} {unit}");
            return Err(self.source.refuse(given, &self.key(name), time, allowed));
        }
        Ok(Some(time))
    }
}
