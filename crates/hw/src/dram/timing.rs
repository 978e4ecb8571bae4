//! Checked timing in picoseconds.

use super::spec::{DramSpec, TimingSpec};
use crate::SpecError;

/// Bytes of a cache line, which is what one burst moves.
pub(super) const LINE_BYTES: u64 = 1 << piebald_units::LINE_SHIFT;
/// Bus cycles between read data and write data: the standards ask for
/// `CL + BL/2 + 2 - CWL` cycles from read to write command (JESD79-3 4.13).
const TURNAROUND_CYCLES: u64 = 2;
/// Longest constraint in cycles; keeps every sum far from overflow.
const MAX_CYCLES: u32 = 1 << 16;

/// Durations in ps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub cl: u64,
    pub cwl: u64,
    pub burst: u64,
    pub rcd: u64,
    pub rp: u64,
    pub ras: u64,
    pub rc: u64,
    pub ccd: u64,
    pub rrd: u64,
    pub faw: u64,
    pub wr: u64,
    pub wtr: u64,
    pub rtp: u64,
    pub rtrs: u64,
    pub turnaround: u64,
    pub rfc: u64,
    /// None = never.
    pub refi: Option<u64>,
}

impl Timing {
    pub(super) fn new(spec: &DramSpec, prefix: &str) -> Result<Self, SpecError> {
        let t = &spec.timing;
        let field = |name: &str| format!("{prefix}.timing.{name}");
        if !(100..=100_000).contains(&t.tck.0) {
            return Err(SpecError::new(field("tck"), t.tck, "100ps to 100ns"));
        }
        check_ranges(t, &field)?;
        check_sums(t, &field)?;
        if u64::from(spec.bus_bytes) * u64::from(t.bl) != LINE_BYTES {
            let allowed = format!(
                "{} words, since bus_bytes is {} and a burst moves one line of {LINE_BYTES} B",
                LINE_BYTES / u64::from(spec.bus_bytes.max(1)),
                spec.bus_bytes
            );
            return Err(SpecError::new(field("bl"), t.bl, allowed));
        }
        let ps = |cycles: u32| u64::from(cycles) * t.tck.0;
        Ok(Self {
            cl: ps(t.cl),
            cwl: ps(t.cwl),
            burst: ps(t.bl) / 2,
            rcd: ps(t.rcd),
            rp: ps(t.rp),
            ras: ps(t.ras),
            rc: ps(t.rc),
            ccd: ps(t.ccd),
            rrd: ps(t.rrd),
            faw: ps(t.faw),
            wr: ps(t.wr),
            wtr: ps(t.wtr),
            rtp: ps(t.rtp),
            rtrs: ps(t.rtrs),
            turnaround: TURNAROUND_CYCLES * t.tck.0,
            rfc: ps(t.rfc),
            refi: spec.refresh.then(|| ps(t.refi)),
        })
    }
}

/// Every number on its own.
fn check_ranges(t: &TimingSpec, field: &dyn Fn(&str) -> String) -> Result<(), SpecError> {
    let positive = [
        ("cl", t.cl),
        ("cwl", t.cwl),
        ("bl", t.bl),
        ("rcd", t.rcd),
        ("rp", t.rp),
        ("ras", t.ras),
        ("rc", t.rc),
        ("ccd", t.ccd),
        ("rrd", t.rrd),
        ("faw", t.faw),
        ("wr", t.wr),
        ("wtr", t.wtr),
        ("rtp", t.rtp),
        ("rfc", t.rfc),
        ("refi", t.refi),
    ];
    for (name, cycles) in positive {
        if !(1..=MAX_CYCLES).contains(&cycles) {
            let allowed = format!("1 to {MAX_CYCLES} cycles");
            return Err(SpecError::new(field(name), cycles, allowed));
        }
    }
    if t.rtrs > MAX_CYCLES {
        let allowed = format!("0 to {MAX_CYCLES} cycles");
        return Err(SpecError::new(field("rtrs"), t.rtrs, allowed));
    }
    if !t.bl.is_multiple_of(2) {
        return Err(SpecError::new(field("bl"), t.bl, "an even number of words"));
    }
    Ok(())
}

/// Numbers that contradict one another.
fn check_sums(t: &TimingSpec, field: &dyn Fn(&str) -> String) -> Result<(), SpecError> {
    let at_least = |name, value: u32, least: u32, why: &str| {
        if value >= least {
            return Ok(());
        }
        let allowed = format!("at least {least} cycles, since {why}");
        Err(SpecError::new(field(name), value, allowed))
    };
    at_least(
        "ras",
        t.ras,
        t.rcd,
        "a row stays open until its columns answer (rcd)",
    )?;
    at_least("rc", t.rc, t.ras + t.rp, "a row cycle is ras + rp")?;
    at_least("ccd", t.ccd, t.bl / 2, "a burst takes bl / 2")?;
    at_least(
        "faw",
        t.faw,
        t.rrd,
        "a window of four activates holds one gap of rrd",
    )?;
    at_least(
        "refi",
        t.refi,
        t.rfc + t.rc,
        "a rank must serve between refreshes (rfc + rc)",
    )
}
