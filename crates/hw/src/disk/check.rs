//! What a disk description must satisfy before a disk is built from it.

use super::spec::{
    BufferSpec, DiskSpec, FlashDirection, FlashSpec, QueueSpec, SeekSpec, SparesAt, ZoneSpec,
    ZonedSpec,
};
use crate::SpecError;

/// Longest time that a parameter may be: a minute, in picoseconds.
const MINUTE_PS: u64 = 60_000_000_000_000;

fn range(field: &str, value: u64, allowed: std::ops::RangeInclusive<u64>) -> Result<(), SpecError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let text = format!("{} to {}", allowed.start(), allowed.end());
    Err(SpecError::new(field, value, text))
}

/// Checks a whole disk.
///
/// # Errors
/// The first field that is not allowed.
pub(super) fn disk(spec: &DiskSpec) -> Result<(), SpecError> {
    // Far beyond any disk, and small enough that no sum of blocks overflows.
    range("capacity", spec.capacity, 1..=1 << 48)?;
    queue(&spec.queue)?;
    match (&spec.zoned, &spec.average, &spec.flash) {
        (Some(zoned), None, None) => self::zoned(zoned),
        (None, Some(a), None) => {
            range("average.access", a.access.0, 0..=MINUTE_PS)?;
            range("average.sector", a.sector.0, 0..=MINUTE_PS)
        }
        (None, None, Some(flash)) => self::flash(flash),
        (zoned, average, flash) => {
            let present = [
                ("zoned", zoned.is_some()),
                ("average", average.is_some()),
                ("flash", flash.is_some()),
            ];
            let names: Vec<&str> = present.iter().filter(|p| p.1).map(|p| p.0).collect();
            let value = match names.is_empty() {
                true => "none".to_owned(),
                false => names.join(", "),
            };
            let allowed = "exactly one of the tables zoned, average, flash";
            Err(SpecError::new("tables", value, allowed))
        }
    }
}

fn queue(spec: &QueueSpec) -> Result<(), SpecError> {
    range("queue.depth", u64::from(spec.depth), 1..=65_536)
}

fn zoned(spec: &ZonedSpec) -> Result<(), SpecError> {
    range("zoned.surfaces", u64::from(spec.surfaces), 1..=64)?;
    range("zoned.cylinders", u64::from(spec.cylinders), 1..=4_000_000)?;
    if spec.spares_at == SparesAt::RangeEnd {
        let cylinders = u64::from(spec.range_cylinders);
        range("zoned.range_cylinders", cylinders, 1..=4_000_000)?;
    }
    let m = &spec.mechanics;
    range("zoned.mechanics.rpm", u64::from(m.rpm), 60..=1_000_000)?;
    range(
        "zoned.mechanics.head_switch",
        m.head_switch.0,
        0..=MINUTE_PS,
    )?;
    range(
        "zoned.mechanics.write_settle",
        m.write_settle.0,
        0..=MINUTE_PS,
    )?;
    range(
        "zoned.mechanics.least_access",
        m.least_access.0,
        0..=MINUTE_PS,
    )?;
    seek(&m.seek)?;
    range("zoned.bus.sector", spec.bus.sector.0, 0..=MINUTE_PS / 1000)?;
    buffer(&spec.buffer)?;
    overheads(spec)?;
    zones(spec)
}

fn overheads(spec: &ZonedSpec) -> Result<(), SpecError> {
    let o = &spec.overheads;
    let all = [
        ("read_hit_after_read", o.read_hit_after_read),
        ("read_hit_after_write", o.read_hit_after_write),
        ("read_miss_after_read", o.read_miss_after_read),
        ("read_miss_after_write", o.read_miss_after_write),
        ("write_hit_after_read", o.write_hit_after_read),
        ("write_hit_after_write", o.write_hit_after_write),
        ("write_miss_after_read", o.write_miss_after_read),
        ("write_miss_after_write", o.write_miss_after_write),
    ];
    for (name, time) in all {
        range(&format!("zoned.overheads.{name}"), time.0, 0..=MINUTE_PS)?;
    }
    Ok(())
}

fn buffer(spec: &BufferSpec) -> Result<(), SpecError> {
    let at = |key: &str| format!("zoned.buffer.{key}");
    range(&at("segments"), u64::from(spec.segments), 0..=4096)?;
    if spec.segments == 0 {
        return Ok(());
    }
    let sectors = u64::from(spec.segment_sectors);
    range(&at("segment_sectors"), sectors, 1..=1 << 24)?;
    let limit = u64::from(spec.read_ahead_limit);
    range(&at("read_ahead_limit"), limit, 0..=sectors)?;
    let writes = u64::from(spec.write_segments);
    let least = u64::from(spec.write_back);
    range(
        &at("write_segments"),
        writes,
        least..=u64::from(spec.segments),
    )
}

fn seek(spec: &SeekSpec) -> Result<(), SpecError> {
    match spec {
        SeekSpec::Points(points) => {
            let field = "zoned.mechanics.seek.points";
            let first = points.first().map_or(0, |p| p.0);
            if first != 1 {
                let allowed = "points from distance 1, in rising order";
                return Err(SpecError::new(
                    field,
                    format!("first distance {first}"),
                    allowed,
                ));
            }
            let mut pairs = points.windows(2).enumerate();
            match pairs.find(|(_, w)| w[0].0 >= w[1].0) {
                None => Ok(()),
                Some((at, w)) => Err(SpecError::new(
                    format!("{field}[{}]", at + 1),
                    w[1].0,
                    format!("a distance above {}", w[0].0),
                )),
            }
        }
        SeekSpec::TwoPiece(p) => {
            milliseconds("two-piece", &[p.first_ms, p.a_ms, p.b_ms, p.c_ms, p.e_ms])
        }
        SeekSpec::Lee(p) => milliseconds("lee", &[p.a_ms, p.b_ms, p.c_ms]),
    }
}

fn milliseconds(form: &str, values: &[f64]) -> Result<(), SpecError> {
    match values.iter().find(|v| !(-1e4..=1e4).contains(*v)) {
        None => Ok(()),
        Some(value) => Err(SpecError::new(
            format!("zoned.mechanics.seek.{form}"),
            value,
            "coefficients from -10000 to 10000 ms",
        )),
    }
}

fn zones(spec: &ZonedSpec) -> Result<(), SpecError> {
    if spec.zones.is_empty() {
        return Err(SpecError::new("zoned.zones", "none", "at least one zone"));
    }
    let mut next = 0;
    for (at, zone) in spec.zones.iter().enumerate() {
        let field = |key: &str| format!("zoned.zones[{at}].{key}");
        let last = u64::from(spec.cylinders) - 1;
        range(&field("first"), u64::from(zone.first), next..=last)?;
        range(
            &field("last"),
            u64::from(zone.last),
            u64::from(zone.first)..=last,
        )?;
        range(&field("sectors"), u64::from(zone.sectors), 1..=65_535)?;
        range(
            &field("track_skew"),
            u64::from(zone.track_skew),
            0..=1 << 20,
        )?;
        range(
            &field("cylinder_skew"),
            u64::from(zone.cylinder_skew),
            0..=1 << 20,
        )?;
        let total = u64::from(zone.last - zone.first + 1)
            * u64::from(spec.surfaces)
            * u64::from(zone.sectors);
        // Slips are kept as 32-bit places of their zone.
        range(
            &field("sectors of the whole zone"),
            total,
            1..=u64::from(u32::MAX),
        )?;
        range(&field("reserved"), u64::from(zone.reserved), 0..=total - 1)?;
        slips(zone, total, &field("slips"))?;
        next = u64::from(zone.last) + 1;
    }
    Ok(())
}

fn slips(zone: &ZoneSpec, total: u64, field: &str) -> Result<(), SpecError> {
    let mut next = 0;
    for (at, slip) in zone.slips.iter().enumerate() {
        range(
            &format!("{field}[{at}]"),
            u64::from(*slip),
            next..=total - 1,
        )?;
        next = u64::from(*slip) + 1;
    }
    Ok(())
}

fn flash(spec: &FlashSpec) -> Result<(), SpecError> {
    range("flash.units", u64::from(spec.units), 1..=65_536)?;
    range(
        "flash.page_sectors",
        u64::from(spec.page_sectors),
        1..=65_536,
    )?;
    direction("flash.read", &spec.read)?;
    direction("flash.write", &spec.write)
}

fn direction(field: &str, spec: &FlashDirection) -> Result<(), SpecError> {
    range(&format!("{field}.command"), spec.command.0, 0..=MINUTE_PS)?;
    range(&format!("{field}.unit"), spec.unit.0, 0..=MINUTE_PS)?;
    range(&format!("{field}.fixed"), spec.fixed.0, 0..=MINUTE_PS)?;
    let rate = spec.bytes_per_second;
    range(&format!("{field}.bytes_per_second"), rate, 1000..=1 << 50)
}
