//! What the measurement means for somebody who wants to isolate programs. Pure.

use piebald_report::Sample;

use super::{BitRounds, Candidate, Crowding, Facts, Hypervisor, Measured, Resctrl};

/// Isolation from which a bit is worth a colour: the least that it can be, by the 95 % intervals of
/// the damage and of what is kept off, is at least this.
const ENOUGH: f64 = 0.5;
/// What the control has to cost the victim for anything to be told: its walk takes longer by
/// this share, at 95 %.
const VISIBLE: f64 = 0.2;

/// What a bit does in the last level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It keeps off at least half of what the control does.
    Isolates,
    /// It keeps some of it off, surely, and less than half, perhaps.
    Partly,
    /// It keeps nothing off that could be told from nothing, and surely not half.
    Nothing,
    /// The control does the victim no harm, so nothing can be told.
    Hidden,
    /// The times vary too much to tell.
    Unclear,
}

/// A bit and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BitVerdict {
    /// The bit.
    pub candidate: Candidate,
    /// What it does.
    pub effect: Effect,
    /// Share of the control's damage that it keeps off: 0 to 1, but for noise.
    pub isolation: Sample,
    /// Nanoseconds per line without a polluter, beside one of the other colour, and beside one
    /// of random pages.
    pub times_ns: [Sample; 3],
}

/// Will colouring isolate here?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Yes, by bits that leave the second level whole.
    Isolates,
    /// Only by bits that split the second level as well.
    SplitsLevelTwo,
    /// No.
    DoesNot,
    /// It was not or cannot be measured.
    Unknown,
}

/// The verdict, in one word and in sentences.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// In one word.
    pub outlook: Outlook,
    /// Bits to make colours of; for `piebald load --map`.
    pub map_bits: Vec<u32>,
    /// What was found bit by bit.
    pub bits: Vec<BitVerdict>,
    /// Times of one claimed colour and of as many random pages, and their ratio.
    pub crowding: Option<(Crowding, Sample)>,
    /// For people: the answer first.
    pub sentences: Vec<String>,
}

/// What is kept off of a damage, by their intervals: the least and the most that the share can be.
fn worth(damage: (f64, f64), kept: (f64, f64)) -> Effect {
    let least = kept.0 / if kept.0 > 0.0 { damage.1 } else { damage.0 };
    let most = kept.1 / if kept.1 > 0.0 { damage.0 } else { damage.1 };
    match (least >= ENOUGH, most < ENOUGH) {
        (true, _) => Effect::Isolates,
        (_, true) if least > 0.0 => Effect::Partly,
        (_, true) => Effect::Nothing,
        _ => Effect::Unclear,
    }
}

/// What one bit does.
pub fn effect_of(rounds: &BitRounds) -> BitVerdict {
    let [clean, colored, control] =
        [&rounds.clean, &rounds.colored, &rounds.control].map(|v| Sample::new(v.clone()));
    let damage = control.difference(&clean);
    let kept_off = control.difference(&colored);
    // The damage of single rounds may be near nothing; its mean is what counts.
    let isolation = kept_off.map(|kept| kept / damage.mean);
    let seen = clean.slowdown(&control).and_then(|s| s.interval());
    let effect = match (seen, damage.interval(), kept_off.interval()) {
        (Some((_, high)), ..) if high < VISIBLE => Effect::Hidden,
        (Some((low, _)), Some(damage), Some(kept)) if low >= VISIBLE && damage.0 > 0.0 => {
            worth(damage, kept)
        }
        _ => Effect::Unclear,
    };
    BitVerdict {
        candidate: rounds.candidate,
        effect,
        isolation,
        times_ns: [clean, colored, control],
    }
}

/// The verdict over facts and what was measured; `Err` is why nothing was.
pub fn judge(facts: &Facts, measured: Result<&Measured, String>) -> Verdict {
    let mut sentences = Vec::new();
    let bits: Vec<BitVerdict> = match measured {
        Ok(measured) => measured.bits.iter().map(effect_of).collect(),
        Err(_) => Vec::new(),
    };
    let (outlook, map_bits) = outlook(&bits);
    let unclear: Vec<u32> = bits
        .iter()
        .filter(|b| b.effect == Effect::Unclear)
        .map(|b| b.candidate.bit)
        .collect();
    sentences.push(match (outlook, &measured) {
        (Outlook::Isolates, _) => format!(
            "Coloring will isolate programs here: {} colors from address bits {}, which leave \
             the second level whole (piebald load --map {}).",
            1u64 << map_bits.len(),
            list(&map_bits),
            list(&map_bits)
        ),
        (Outlook::SplitsLevelTwo, _) => format!(
            "Coloring will isolate here only by address bits {}, which index the second level \
             as well: a program with a share of the colors has that share of its own second \
             level.",
            list(&map_bits)
        ),
        (Outlook::DoesNot, _) => "Coloring will not isolate programs here: no address bit keeps \
             a polluter out, against as many random pages."
            .to_owned(),
        (Outlook::Unknown, Err(why)) => {
            format!("Whether coloring isolates here is not known: {why}.")
        }
        (Outlook::Unknown, Ok(_)) if bits.is_empty() => "Coloring cannot isolate here: the last \
             level has no index bit above the page."
            .to_owned(),
        (Outlook::Unknown, Ok(_)) if !unclear.is_empty() => format!(
            "Whether coloring isolates here is not known: what address bits {} do varies too \
             much from round to round. More --rounds, or less other work, may tell.",
            list(&unclear)
        ),
        (Outlook::Unknown, Ok(_)) => "Whether coloring isolates here is not known: reading twice \
             the last level does not slow a victim down, so the last level is not what the \
             kernel describes, or others keep it full."
            .to_owned(),
    });
    let crowding = measured
        .ok()
        .and_then(|m| m.crowding.as_ref())
        .map(|found| {
            let [colored, control] =
                [&found.colored, &found.control].map(|v| Sample::new(v.clone()));
            (
                found.clone(),
                control.slowdown(&colored).unwrap_or_default(),
            )
        });
    sentences.extend(
        crowding
            .as_ref()
            .and_then(|(_, slower)| crowded(outlook, slower)),
    );
    sentences.extend(reasons(facts, outlook));
    Verdict {
        outlook,
        map_bits,
        bits,
        crowding,
        sentences,
    }
}

fn outlook(bits: &[BitVerdict]) -> (Outlook, Vec<u32>) {
    let isolating = |in_level_two: bool| -> Vec<u32> {
        let of = |b: &&BitVerdict| {
            b.effect == Effect::Isolates && b.candidate.in_level_two == in_level_two
        };
        bits.iter().filter(of).map(|b| b.candidate.bit).collect()
    };
    let (free, shared) = (isolating(false), isolating(true));
    let told = |b: &BitVerdict| matches!(b.effect, Effect::Nothing | Effect::Partly);
    let open = bits.is_empty() || !bits.iter().all(told);
    match (free.is_empty(), shared.is_empty(), open) {
        (false, _, _) => (Outlook::Isolates, free),
        (true, false, _) => (Outlook::SplitsLevelTwo, shared),
        (true, true, false) => (Outlook::DoesNot, Vec::new()),
        (true, true, true) => (Outlook::Unknown, Vec::new()),
    }
}

fn list(bits: &[u32]) -> String {
    let words: Vec<String> = bits.iter().map(u32::to_string).collect();
    words.join(",")
}

/// A colour that is slow and isolates nothing is what misleads.
fn crowded(outlook: Outlook, slower: &Sample) -> Option<String> {
    let (low, _) = slower.interval()?;
    (outlook == Outlook::DoesNot && low > 0.05).then(|| {
        format!(
            "Pages of one claimed color are {:.0} % slower than as many random ones all the \
             same: what looks like a color costs, and isolates nothing.",
            100.0 * slower.mean
        )
    })
}

/// Why it may be so, and what else there is.
fn reasons(facts: &Facts, outlook: Outlook) -> Vec<String> {
    let mut out = Vec::new();
    let works = matches!(outlook, Outlook::Isolates | Outlook::SplitsLevelTwo);
    match &facts.hypervisor {
        Hypervisor::Some(name) if works => out.push(format!(
            "This is a virtual machine{}: the bits hold as long as its host keeps this memory \
             where it is, in huge pages; measure again after a migration.",
            of(name)
        )),
        Hypervisor::Some(name) => out.push(format!(
            "This is a virtual machine{}: address bits above the page size of its host mean \
             nothing here.",
            of(name)
        )),
        Hypervisor::None if outlook == Outlook::DoesNot => out.push(
            "A last level in slices hashes its index over many address bits; maps of plain bits \
             do not fit it."
                .to_owned(),
        ),
        Hypervisor::None => {}
    }
    if !works {
        out.extend(match &facts.resctrl {
            Resctrl::Mounted(mask) => Some(format!(
                "The hardware's own partitioning can be used instead: resctrl is mounted, ways \
                 {mask} (/sys/fs/resctrl/schemata)."
            )),
            Resctrl::NotMounted => Some(
                "The hardware's own partitioning can be used instead: mount -t resctrl resctrl \
                 /sys/fs/resctrl."
                    .to_owned(),
            ),
            Resctrl::Absent => None,
        });
    }
    out.extend(
        facts
            .unsupported
            .iter()
            .map(|why| format!("The module will not load: {why}.")),
    );
    out
}

fn of(name: &Option<String>) -> String {
    name.as_ref()
        .map_or(String::new(), |name| format!(" ({name})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(bit: u32, in_level_two: bool, colored: f64, control: f64) -> BitRounds {
        let near = |ns: f64| vec![ns, ns * 1.01, ns * 0.99, ns, ns * 1.02];
        BitRounds {
            candidate: Candidate { bit, in_level_two },
            clean: near(10.0),
            colored: near(colored),
            control: near(control),
        }
    }

    fn facts(hypervisor: Hypervisor, resctrl: Resctrl) -> Facts {
        let mut facts = Facts::read("6.12.1", None, &|_| None);
        facts.hypervisor = hypervisor;
        facts.resctrl = resctrl;
        facts
    }

    fn verdict(bits: Vec<BitRounds>) -> Verdict {
        let measured = Measured {
            bits,
            crowding: None,
        };
        judge(&facts(Hypervisor::None, Resctrl::NotMounted), Ok(&measured))
    }

    #[test]
    fn effects_are_told_against_the_control() {
        for (colored, control, effect) in [
            (10.0, 80.0, Effect::Isolates),
            (40.0, 80.0, Effect::Isolates),
            (60.0, 80.0, Effect::Partly),
            (80.0, 80.0, Effect::Nothing),
            (120.0, 80.0, Effect::Nothing),
            (10.0, 10.5, Effect::Hidden),
        ] {
            let found = effect_of(&rounds(15, false, colored, control));
            assert_eq!(
                found.effect, effect,
                "{colored} {control}: {:?}",
                found.isolation
            );
        }
        let found = effect_of(&rounds(15, false, 24.0, 80.0));
        assert!(
            (found.isolation.mean - 0.8).abs() < 0.01,
            "{:?}",
            found.isolation
        );
    }

    #[test]
    fn shares_are_bounded_by_both_intervals() {
        for (damage, kept, effect) in [
            ((90.0, 110.0), (60.0, 100.0), Effect::Isolates),
            ((90.0, 110.0), (54.0, 100.0), Effect::Unclear),
            ((50.0, 150.0), (-10.0, 24.0), Effect::Nothing),
            ((50.0, 150.0), (-10.0, 26.0), Effect::Unclear),
            ((50.0, 150.0), (1.0, 24.0), Effect::Partly),
            ((50.0, 150.0), (-90.0, -10.0), Effect::Nothing),
        ] {
            assert_eq!(worth(damage, kept), effect, "{damage:?} {kept:?}");
        }
    }

    #[test]
    fn noise_is_no_isolation() {
        let mut noisy = rounds(15, false, 20.0, 80.0);
        noisy.colored = vec![10.0, 90.0, 20.0, 80.0, 15.0];
        assert_eq!(effect_of(&noisy).effect, Effect::Unclear);
        let mut noisy = rounds(15, false, 20.0, 80.0);
        noisy.clean = vec![10.0, 10.0, 300.0, 10.0, 10.0];
        assert_eq!(effect_of(&noisy).effect, Effect::Unclear);
        let found = verdict(vec![rounds(14, false, 80.0, 80.0), noisy]);
        assert_eq!(found.outlook, Outlook::Unknown);
        assert!(
            found.sentences[0].contains("bits 15 do"),
            "{:?}",
            found.sentences
        );
    }

    #[test]
    fn bits_that_leave_the_second_level_whole_come_first() {
        let found = verdict(vec![
            rounds(12, true, 10.0, 80.0),
            rounds(15, false, 12.0, 80.0),
            rounds(16, false, 11.0, 80.0),
            rounds(17, false, 79.0, 80.0),
        ]);
        assert_eq!(
            (found.outlook, &found.map_bits[..]),
            (Outlook::Isolates, &[15, 16][..])
        );
        assert!(
            found.sentences[0].contains("4 colors"),
            "{:?}",
            found.sentences
        );
        assert!(
            found.sentences[0].contains("--map 15,16"),
            "{:?}",
            found.sentences
        );

        let found = verdict(vec![
            rounds(12, true, 10.0, 80.0),
            rounds(15, false, 80.0, 80.0),
        ]);
        assert_eq!(
            (found.outlook, found.map_bits),
            (Outlook::SplitsLevelTwo, vec![12])
        );
    }

    #[test]
    fn no_bit_means_no_and_names_the_alternative() {
        let found = verdict(vec![rounds(15, false, 80.0, 80.0)]);
        assert_eq!((found.outlook, found.map_bits.len()), (Outlook::DoesNot, 0));
        let text = found.sentences.join(" ");
        assert!(
            text.contains("will not isolate") && text.contains("hashes"),
            "{text}"
        );
        assert!(text.contains("mount -t resctrl"), "{text}");
    }

    #[test]
    fn a_slow_color_that_isolates_nothing_is_called_so() {
        let measured = Measured {
            bits: vec![rounds(15, false, 80.0, 80.0)],
            crowding: Some(Crowding {
                colors: 8,
                pages: 100,
                colored: vec![20.0, 20.1, 19.9],
                control: vec![10.0, 10.1, 9.9],
            }),
        };
        let found = judge(&facts(Hypervisor::None, Resctrl::Absent), Ok(&measured));
        let text = found.sentences.join(" ");
        assert!(
            text.contains("100 % slower") && text.contains("isolates nothing"),
            "{text}"
        );
    }

    #[test]
    fn what_was_not_measured_is_not_known() {
        let facts = facts(Hypervisor::Some(Some("KVM".into())), Resctrl::Absent);
        let found = judge(&facts, Err("root is needed".into()));
        assert_eq!(found.outlook, Outlook::Unknown);
        let text = found.sentences.join(" ");
        assert!(text.contains("not known: root is needed."), "{text}");
        assert!(text.contains("virtual machine (KVM)"), "{text}");

        let hidden = verdict(vec![rounds(15, false, 10.0, 10.0)]);
        assert_eq!(hidden.outlook, Outlook::Unknown);
        assert!(
            hidden.sentences[0].contains("does not slow"),
            "{:?}",
            hidden.sentences
        );
        assert!(verdict(Vec::new()).sentences[0].contains("no index bit above the page"));
    }
}
