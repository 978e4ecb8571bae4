//! Misses of programs alone with shares of the last level, from the curves of studies.

use piebald_lab::host::Hosted;
use piebald_report::{MissCurve, Study};

use super::{
    cells::only_or,
    eval::{Fault, Value, Valued, wrong},
    grid::PROGRAM,
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
        (of > 0).then(|| (u128::from(whole) * u128::from(part), u128::from(of)))
    });
    // Exactly: a share in between is none.
    let found = asked.and_then(|(asked, of)| {
        let mut sizes = sizes.iter();
        sizes.position(|size| u128::from(*size) * of == asked)
    });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_one_of_the_sizes_exactly() {
        let sizes = [100, 200, 300, 400];
        for (share, at) in [
            ("1/4", 0),
            ("2/8", 0),
            ("1/2", 1),
            ("3/4", 2),
            ("1/1", 3),
            ("7/7", 3),
        ] {
            assert_eq!(place(&sizes, share), Ok(at), "{share}");
        }
        // Of these the first two would be a size if they were rounded down.
        for share in [
            "1001/4000",
            "18446744073709551615/18446744073709551614",
            "0/4",
            "0/0",
            "1/0",
            "5/4",
            "-1/4",
            "0.25",
            "",
        ] {
            let refused = place(&sizes, share).expect_err(share);
            let allowed = format!("mpki_with(\"{share}\"): allowed: 1/4, 1/2, 3/4, 1/1");
            assert_eq!(refused, Fault::Wrong(allowed));
        }
    }
}
