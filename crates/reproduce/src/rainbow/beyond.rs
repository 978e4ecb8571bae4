//! Beyond the thesis: a last level that hashes its slices, and huge pages as the alternative
//! to colours (both named in section 7 as not studied).

use piebald_report::{Predicate, Target, TargetKind};

use super::{Form, OVERLAP_POINTS, Subject, blank, lengths, missing};
use crate::{
    experiment::{Bench, miss_rate, program, slowdown},
    row::shown,
    verdict,
};

/// Level of the data path, counted from the first.
const LLC: usize = 2;

/// Masks of the first two slice functions of Intel's hashed last levels, as the presets with
/// such a level have them.
const HASH: &str = "slice_hash = [\"0x1b5f575440\", \"0x2eb5faa880\"]\n";

/// A sort that fits six of eight MiB, beside a scan of three times the cache.
const PAIR: &str = "[[program]]\nname = \"mergesort\"\nbuiltin = \"mergesort:3MiB\"\n\
                    cores = \"0\"\ncolors = \"0-13\"\n\
                    [[program]]\nname = \"scan\"\nbuiltin = \"scan:24MiB\"\ncores = \"1\"\n\
                    role = \"polluter\"\ncolors = \"14-15\"\n";

/// References of the sort, and before: passes over its 6 MiB.
const PAIR_REFS: (u64, u64) = (1_000_000, 1_500_000);

/// So many that an interval resolves the bound on a miss rate.
const PAIR_REPETITIONS: u32 = 6;

/// The same machine with and without a hash: what colours are worth there.
pub(super) fn hashed(bench: &Bench<'_>, form: &Form) -> Target {
    let title = "beyond: colors on a last level that hashes its slices";
    let mut t = blank("R-B1", title, TargetKind::S);
    let naive = "color_map = [\"15\", \"16\", \"17\", \"18\"]\n";
    let policies = format!(
        "[[policy]]\nname = \"stock\"\nframes = \"stock\"\n\
         [[policy]]\nname = \"linear\"\nframes = \"rainbow\"\n{naive}\
         [[policy]]\nname = \"map\"\nframes = \"rainbow\"\n"
    );
    let (budget, warmup) = form.own(PAIR_REFS.0, PAIR_REFS.1);
    let text = |hash: &str| {
        format!(
            "schema = 2\nseed = {}\nrepetitions = {}\nbudget_refs = \"{budget}\"\n\
             warmup_refs = \"{warmup}\"\ntogether = \"each-target\"\n\
             alone = \"targets\"\n[machine]\npreset = \"w3540\"\nmemory = \"3GiB\"\nprefetch = false\n\
             {hash}[output]\nset_map = 0\n{PAIR}{policies}",
            form.seed,
            form.mix_repetitions.max(PAIR_REPETITIONS)
        )
    };
    let mut gaps = Vec::new();
    let machines = [("linear LLC", ""), ("hashed LLC", HASH)];
    let studies = machines.map(|(machine, hash)| bench.run(machine, &text(hash)));
    for ((machine, hash), study) in machines.into_iter().zip(studies) {
        let study = match study {
            Ok(study) => study,
            Err(why) => {
                t.why = Some(why);
                return t;
            }
        };
        for (policy, what) in [
            ("stock", "without colors"),
            ("linear", "colors of address bits 15 to 18"),
            ("map", "colors of the machine's map"),
        ] {
            let found = program(&study, policy, "mergesort");
            let gap = found.and_then(|p| {
                let together = miss_rate(p.together.as_ref()?, LLC)?;
                Some(together.difference(&miss_rate(&p.alone, LLC)?))
            });
            let Some(gap) = gap else { continue };
            t.values.push(shown(
                &format!("{machine}, {what}: miss rate, together less alone"),
                &gap,
                "points",
            ));
            gaps.push(((hash.is_empty(), policy), gap));
        }
    }
    let keeps = |key: (bool, &str)| {
        let found = gaps.iter().find(|(k, _)| *k == key);
        found.and_then(|(_, gap)| Some(gap.interval()?.1 <= OVERLAP_POINTS))
    };
    let statement = |text: &str, holds: Option<bool>| Predicate {
        text: format!("{text} (bound: {OVERLAP_POINTS} points)"),
        holds,
    };
    t.predicates = vec![
        statement("linear: both maps keep the scan out", {
            let (a, b) = (keeps((true, "linear")), keeps((true, "map")));
            a.zip(b).map(|(a, b)| a && b)
        }),
        statement(
            "hashed: the colors of address bits do not",
            keeps((false, "linear")).map(|k| !k),
        ),
        statement("hashed: those of the map do", keeps((false, "map"))),
    ];
    t.why = Some(lengths(budget, warmup));
    t.verdict = verdict::shape(&t.predicates);
    t
}

/// What giving up 2 MiB pages costs: colours need 4 KiB pages.
pub(super) fn huge_pages(bench: &Bench<'_>, form: &Form, subjects: &[Subject]) -> Target {
    let title = "beyond: what colors cost where 2 MiB pages would be had instead";
    let mut t = blank("R-B2", title, TargetKind::S);
    t.stand_in = true;
    t.why = missing(subjects);
    if t.why.is_some() {
        return t;
    }
    let mut text = format!(
        "schema = 2\nseed = {}\nrepetitions = 1\nbudget_refs = \"{}\"\nwarmup_refs = \"{}\"\n\
         together = \"each-target\"\n[machine]\npreset = \"w3540\"\nmemory = \"12GiB\"\n\
         prefetch = false\n[output]\nset_map = 0\n",
        form.seed, form.budget_refs, form.warmup_refs
    );
    text.extend(subjects.iter().filter_map(|s| s.table(0, "target")));
    // What a program of random references over 64 MiB would lose: the far end of the range.
    text += "[[program]]\nname = \"gups\"\nbuiltin = \"gups:64MiB\"\ncores = \"0\"\n\
             [[policy]]\nname = \"huge\"\nframes = \"stock\"\nmemory = \"fresh\"\nthp = true\n\
             [[policy]]\nname = \"colors\"\nframes = \"rainbow\"\nmemory = \"fresh\"\n";
    let study = match bench.run("huge pages", &text) {
        Ok(study) => study,
        Err(why) => {
            t.why = Some(why);
            return t;
        }
    };
    let mut costs = None;
    let names = subjects.iter().map(|s| s.program.name.as_str());
    for name in names.chain(["gups"]) {
        let both = ["colors", "huge"].map(|policy| program(&study, policy, name).map(|p| &p.alone));
        let [Some(colors), Some(huge)] = both else {
            continue;
        };
        let Some(slower) = slowdown(colors, huge) else {
            continue;
        };
        t.values.push(shown(
            &format!("{name}: slower with 4 KiB pages of all colors"),
            &slower,
            "%",
        ));
        for (metrics, what) in [(colors, "4 KiB"), (huge, "2 MiB")] {
            if let Some(walks) = &metrics.tlb_mpki {
                let name = format!("{name}: page walks, {what}");
                t.values.push(shown(&name, walks, "per 1000 instr."));
            }
        }
        if name == "gups" {
            costs = Some(slower.mean > 0.0);
        }
    }
    t.predicates = vec![Predicate {
        text: "a program of random references over 64 MiB is slower with 4 KiB pages".to_owned(),
        holds: costs,
    }];
    t.why = Some(
        "both start on fresh memory, where 2 MiB pages can be had: nothing is drawn, so one \
         repetition says all and there are no intervals"
            .to_owned(),
    );
    t.verdict = verdict::shape(&t.predicates);
    t
}
