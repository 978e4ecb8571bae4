//! Misses of programs alone with shares of the last level, from the curves of studies.

use piebald_report::{MissCurve, Study};

use super::{
    cells::only_or,
    eval::{Fault, Value, Valued, wrong},
    grid::PROGRAM,
    hosts::Hosted,
};

/// Misses per 1000 instructions with a share of the last level, as in `mpki_with("1/8")`.
pub(super) const MPKI_WITH: &str = "mpki_with";

/// The number of a program's curve at a share.
pub(super) fn counted(
    study: &Study,
    share: &str,
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<Value> {
    let names = study.curves.iter().map(|curve| curve.program.as_str());
    let name = only_or(PROGRAM, chosen(PROGRAM), names)?;
    let curve = study.curves.iter().find(|curve| curve.program == name);
    let curve = curve.ok_or_else(|| Fault::Missing(format!("{name}: it has no miss curve")))?;
    let sizes: Vec<u64> = curve.points.iter().map(|(size, _)| *size).collect();
    let at = place(&sizes, share)?;
    number(curve, at).ok_or_else(|| Fault::Missing(format!("{name}: no misses at {share}")))
}

fn number(curve: &MissCurve, at: usize) -> Option<Value> {
    let (_, mpki) = curve.points.get(at)?;
    (!mpki.is_nan()).then_some(Value::Number(*mpki))
}

/// Whether a study has such a number.
pub(super) fn check(
    study: &dyn Hosted,
    share: &str,
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<()> {
    let sizes = study.curve_sizes();
    if sizes.is_empty() {
        return wrong(format!(
            "{MPKI_WITH}: no curves are asked for: allowed: with output.miss_curve"
        ));
    }
    place(&sizes, share)?;
    let names = study.programs();
    let alone = (0..).zip(&names).filter(|(at, _)| study.runs_of(*at).0);
    only_or(PROGRAM, chosen(PROGRAM), alone.map(|(_, name)| &**name)).map(|_| ())
}

/// The place of a share among the sizes of a curve, of which the last is the whole.
fn place(sizes: &[u64], share: &str) -> Valued<usize> {
    let whole = sizes.last().copied().unwrap_or(0);
    let asked = share.split_once('/').and_then(|(part, of)| {
        let (part, of): (u64, u64) = (part.parse().ok()?, of.parse().ok()?);
        whole.checked_mul(part)?.checked_div(of)
    });
    let found = asked.and_then(|asked| sizes.iter().position(|size| *size == asked));
    found.ok_or_else(|| {
        let shares: Vec<String> = sizes.iter().map(|size| reduced(*size, whole)).collect();
        Fault::Wrong(format!(
            "{MPKI_WITH}(\"{share}\"): allowed: {}",
            shares.join(", ")
        ))
    })
}

/// A share in its lowest terms.
fn reduced(part: u64, whole: u64) -> String {
    let (mut a, mut b) = (part, whole);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let divisor = a.max(1);
    format!("{}/{}", part / divisor, whole / divisor)
}
