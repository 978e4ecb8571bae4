//! Axes whose ticks are chosen here: linear or by the binary logarithm.

use plotters::coord::{
    ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter},
    types::RangedCoordf64,
};

use piebald_units::Bytes;

use super::tick;

/// Largest / smallest from which an axis of sizes is logarithmic: four doublings. Below,
/// the papers' linear axis keeps the curves' slopes comparable with theirs.
pub(crate) const LOG_FROM: f64 = 16.0;
/// Room beyond the first and the last point, as a share of the axis.
const MARGIN: f64 = 0.03;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scale {
    Linear,
    /// By the binary logarithm; all values are above zero.
    Binary,
}

/// One axis of a chart, in the units of its data.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What it shows, with the unit.
    pub title: String,
    scale: Scale,
    low: f64,
    high: f64,
    /// Where a number stands, and the number.
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// From `low` to `high`, with at most `count` numbers.
    pub fn linear(title: &str, [low, high]: [f64; 2], count: usize) -> Self {
        let span = high - low;
        let ticks = steps(low, high, count).into_iter();
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            low,
            high,
            ticks: ticks.map(|v| (v, tick(v, span))).collect(),
        }
    }

    /// The places 1, 2 and so on, with names.
    pub fn named(title: &str, names: &[String]) -> Self {
        let places = (1..).map(f64::from);
        Self {
            title: title.to_owned(),
            scale: Scale::Linear,
            low: 0.5,
            high: names.len() as f64 + 0.5,
            ticks: places.zip(names.iter().cloned()).collect(),
        }
    }

    /// By the binary logarithm from `low` to `high`, both above zero: a number at the
    /// powers of two, at every second one if they are more than `count`, and so on.
    fn binary(title: &str, [low, high]: [f64; 2], count: usize, text: fn(f64) -> String) -> Self {
        let powers = low.log2().ceil() as i32..=high.log2().floor() as i32;
        let step = powers.clone().count().div_ceil(count.max(1)).max(1);
        let ticks = powers.step_by(step).map(|p| f64::from(p).exp2());
        Self {
            title: title.to_owned(),
            scale: Scale::Binary,
            low,
            high,
            ticks: ticks.map(|v| (v, text(v))).collect(),
        }
    }

    /// Sizes of memory in bytes: logarithmic where they span [`LOG_FROM`] or more.
    pub fn memory(sizes: impl Iterator<Item = f64>, count: usize) -> Self {
        let [low, high] = ends(sizes.filter(|v| *v > 0.0));
        if high / low >= LOG_FROM {
            let text = |v: f64| Bytes(v as u64).to_string();
            let margin = (high / low).powf(MARGIN);
            return Self::binary("memory", [low / margin, high * margin], count, text);
        }
        let (name, unit) = memory_unit(high);
        let margin = (high - low) * MARGIN;
        let inner = [(low - margin) / unit, (high + margin) / unit];
        let mut axis = Self::linear(&format!("memory [{name}]"), inner, count);
        axis.low *= unit;
        axis.high *= unit;
        axis.ticks.iter_mut().for_each(|(v, _)| *v *= unit);
        axis
    }

    /// Lengths in pages up to `longest`: logarithmic from 1 beyond `linear_to`.
    pub fn lengths(title: &str, longest: f64, linear_to: f64, count: usize) -> Self {
        let high = longest.max(2.0);
        match high > linear_to {
            true => {
                let limits = [1.0, high.powf(1.0 + MARGIN)];
                Self::binary(title, limits, count, |v| format!("{v:.0}"))
            }
            false => Self::linear(title, [0.0, high * (1.0 + MARGIN)], count),
        }
    }

    /// The numbers beside it.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.ticks.iter().map(|(_, text)| text.as_str())
    }

    /// Both ends.
    pub fn limits(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Where `value` stands between the ends, 0 to 1 within them.
    pub fn share(&self, value: f64) -> f64 {
        let at = |v: f64| match self.scale {
            Scale::Linear => v,
            Scale::Binary => v.max(f64::MIN_POSITIVE).log2(),
        };
        (at(value) - at(self.low)) / (at(self.high) - at(self.low))
    }
}

/// Round numbers between two ends, at most `count`.
fn steps(low: f64, high: f64, count: usize) -> Vec<f64> {
    if !(high - low).is_finite() || high <= low {
        return Vec::new();
    }
    RangedCoordf64::from(low..high).key_points(count)
}

/// The largest unit in which `bytes` is at least one.
fn memory_unit(bytes: f64) -> (&'static str, f64) {
    let units = [
        ("TiB", 1u64 << 40),
        ("GiB", Bytes::GIB),
        ("MiB", Bytes::MIB),
        ("KiB", Bytes::KIB),
    ];
    let fits = units.into_iter().find(|(_, size)| bytes >= *size as f64);
    fits.map_or(("B", 1.0), |(name, size)| (name, size as f64))
}

/// The smallest and the largest value, apart from each other; 1 to 2 without any.
fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let all = |[low, high]: [f64; 2], v: f64| [low.min(v), high.max(v)];
    let [low, high] = values.fold([f64::INFINITY, f64::NEG_INFINITY], all);
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => [low, high],
        Some(std::cmp::Ordering::Equal) => [low * 0.5, high * 1.5],
        _ => [1.0, 2.0],
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        // Far outside is outside: a pixel has to fit its integer.
        let share = self.share(*value).clamp(-1.0, 2.0);
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, _: H) -> Vec<f64> {
        self.ticks.iter().map(|(v, _)| *v).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.ticks.iter().find(|(v, _)| v == value);
        found.map_or_else(String::new, |(_, text)| text.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = Bytes::MIB as f64;

    fn texts(axis: &Axis) -> Vec<&str> {
        axis.texts().collect()
    }

    #[test]
    fn memory_is_linear_in_its_own_unit_where_the_sizes_are_close() {
        let axis = Axis::memory([64.0, 128.0, 320.0].map(|m| m * MIB).into_iter(), 8);
        assert_eq!(axis.title, "memory [MiB]");
        assert!(texts(&axis).contains(&"100"), "{axis:?}");
        let place = axis.share(192.0 * MIB);
        assert!((place - 0.5).abs() < 1e-9, "{place}");
    }

    #[test]
    fn memory_is_logarithmic_where_the_sizes_span_four_doublings() {
        let axis = Axis::memory([1.0, 16.0].map(|m| m * MIB).into_iter(), 8);
        assert_eq!(texts(&axis), ["1MiB", "2MiB", "4MiB", "8MiB", "16MiB"]);
        assert!((axis.share(4.0 * MIB) - 0.5).abs() < 1e-9);
        let wide = Axis::memory([4096.0, 1e12].into_iter(), 8);
        assert!((4..=8).contains(&wide.ticks.len()), "{wide:?}");
    }

    #[test]
    fn an_axis_without_a_span_still_has_one() {
        for sizes in [vec![], vec![MIB], vec![0.0]] {
            let axis = Axis::memory(sizes.into_iter(), 8);
            assert!(axis.low < axis.high && axis.low > 0.0, "{axis:?}");
        }
    }

    #[test]
    fn long_sequences_stand_on_a_logarithmic_axis() {
        let short = Axis::lengths("", 128.0, 256.0, 9);
        assert_eq!(texts(&short).first(), Some(&"0"));
        assert!((short.share(64.0) * 2.0 - short.share(128.0)).abs() < 1e-9);
        assert!((0.9..1.0).contains(&short.share(128.0)));
        let long = Axis::lengths("", 4096.0, 256.0, 20);
        assert_eq!(texts(&long)[..4], ["1", "2", "4", "8"]);
        assert_eq!(texts(&long).last(), Some(&"4096"));
    }
}
