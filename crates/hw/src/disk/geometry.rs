//! Where blocks lie: from a block's number to cylinder, head, sector and angle.
//!
//! A disk is a row of *areas*: a stretch of a zone whose blocks follow one
//! another, broken only by slipped sectors. A zone is one area if its spares lie
//! at its end, and one area per range of cylinders if they lie there. Sectors
//! are counted physically from the start of their zone, slips and spares
//! included.

use super::spec::{DiskSpec, Mapping, SparesAt, ZoneSpec, ZonedSpec};
use crate::SpecError;

/// A track and a sector on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Zone, an index.
    pub zone: u32,
    /// Cylinder of the disk.
    pub cylinder: u32,
    /// Head.
    pub head: u32,
    /// Sector of the track, from its first.
    pub sector: u32,
    /// Sectors by which the track's first is turned against the index mark.
    pub skew: u32,
    /// Sectors of the track.
    pub track_sectors: u32,
}

/// The part of a run of blocks that lies on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its first sector.
    pub place: Place,
    /// Blocks of it.
    pub blocks: u32,
    /// Sectors that pass under the head, slipped ones included.
    pub sectors: u32,
}

/// A block and what follows it on its track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The block.
    pub lba: u64,
    /// The first block behind the track, or behind the track's part of an area.
    pub end: u64,
    /// Place of the block.
    pub place: Place,
    /// No sector from here to the end of the stretch is slipped.
    pub whole: bool,
}

#[derive(Clone, Debug)]
struct Zone {
    first_cylinder: u32,
    track_sectors: u32,
    track_skew: u64,
    /// Skew from a cylinder's first track to the next cylinder's.
    cylinder_step: u64,
    /// Physical number of its first sector, a dummy at every track's end
    /// included.
    physical: u64,
}

#[derive(Clone, Debug)]
struct Area {
    /// First block.
    first: u64,
    /// Blocks.
    blocks: u64,
    /// Sector of the zone that holds the first block if it is not slipped.
    start: u64,
    zone: u32,
    /// Its part of `slips` and `slip_keys`.
    slips: (u32, u32),
}

/// The map of a disk.
#[derive(Clone, Debug)]
pub struct Geometry {
    capacity: u64,
    surfaces: u64,
    mapping: Mapping,
    zones: Vec<Zone>,
    areas: Vec<Area>,
    /// Slipped sectors by area, rising, counted from their zone's start.
    slips: Vec<u64>,
    /// For each slip, the smallest block (counted from the area's first) that
    /// it moves on.
    slip_keys: Vec<u64>,
    last_cylinder: u32,
}

impl Geometry {
    /// Lays out a disk whose description has been checked.
    ///
    /// # Errors
    /// More slips than spares in an area, or fewer sectors than the capacity.
    pub fn new(spec: &DiskSpec, zoned: &ZonedSpec) -> Result<Self, SpecError> {
        let mut geometry = Self {
            capacity: spec.capacity,
            surfaces: u64::from(zoned.surfaces),
            mapping: zoned.mapping,
            zones: Vec::new(),
            areas: Vec::new(),
            slips: Vec::new(),
            slip_keys: Vec::new(),
            last_cylinder: 0,
        };
        let mut physical = 0;
        for (at, zone) in zoned.zones.iter().enumerate() {
            geometry.add_zone(zone, physical);
            geometry.add_areas(zoned, zone, at)?;
            let tracks = geometry.tracks(zone);
            physical += tracks * (u64::from(zone.sectors) + 1);
        }
        let room = geometry.room();
        if room < spec.capacity {
            let allowed = format!("at most the {room} blocks of the zones");
            return Err(SpecError::new("capacity", spec.capacity, allowed));
        }
        geometry.last_cylinder = geometry.place(spec.capacity - 1).cylinder;
        Ok(geometry)
    }

    fn tracks(&self, zone: &ZoneSpec) -> u64 {
        u64::from(zone.last - zone.first + 1) * self.surfaces
    }

    fn room(&self) -> u64 {
        self.areas.last().map_or(0, |a| a.first + a.blocks)
    }

    fn add_zone(&mut self, zone: &ZoneSpec, physical: u64) {
        let track_skew = u64::from(zone.track_skew);
        self.zones.push(Zone {
            first_cylinder: zone.first,
            track_sectors: zone.sectors,
            track_skew,
            cylinder_step: u64::from(zone.cylinder_skew) + (self.surfaces - 1) * track_skew,
            physical,
        });
    }

    fn add_areas(&mut self, spec: &ZonedSpec, zone: &ZoneSpec, at: usize) -> Result<(), SpecError> {
        let cylinders = u64::from(zone.last - zone.first + 1);
        let step = match spec.spares_at {
            SparesAt::RangeEnd => u64::from(spec.range_cylinders),
            SparesAt::ZoneEnd | SparesAt::DiskEnd => cylinders,
        };
        let per_cylinder = self.surfaces * u64::from(zone.sectors);
        let mut from = 0;
        while from < cylinders {
            let to = (from + step).min(cylinders);
            let start = (from * per_cylinder).max(u64::from(zone.reserved));
            let range = (start.min(to * per_cylinder), to * per_cylinder);
            self.add_area(spec.spares_at, zone, at, range)?;
            from = to;
        }
        Ok(())
    }

    fn add_area(
        &mut self,
        spares_at: SparesAt,
        zone: &ZoneSpec,
        at: usize,
        (start, end): (u64, u64),
    ) -> Result<(), SpecError> {
        let low = self.slips.len();
        let inside = zone.slips.iter().map(|s| u64::from(*s));
        self.slips
            .extend(inside.filter(|s| (start..end).contains(s)));
        let count = (self.slips.len() - low) as u64;
        let keys = self.slips[low..].iter().enumerate();
        self.slip_keys
            .extend(keys.map(|(i, s)| s - start - i as u64));
        let spares = match spares_at {
            SparesAt::DiskEnd => count,
            SparesAt::ZoneEnd | SparesAt::RangeEnd => u64::from(zone.spares),
        };
        if count > spares || spares >= end - start {
            return Err(SpecError::new(
                format!("zoned.zones[{at}].spares"),
                spares,
                format!(
                    "at least the {count} slips, below the {} sectors",
                    end - start
                ),
            ));
        }
        self.areas.push(Area {
            first: self.room(),
            blocks: end - start - spares,
            start,
            zone: at as u32,
            slips: (low as u32, self.slips.len() as u32),
        });
        Ok(())
    }

    /// Blocks of the disk.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The last cylinder that holds a block.
    pub fn last_cylinder(&self) -> u32 {
        self.last_cylinder
    }

    fn area(&self, lba: u64) -> &Area {
        let after = self.areas.partition_point(|a| a.first <= lba);
        &self.areas[after.saturating_sub(1)]
    }

    /// Sector of the zone that holds a block of an area.
    fn sector_of(&self, area: &Area, lba: u64) -> u64 {
        let block = lba - area.first;
        let keys = &self.slip_keys[area.slips.0 as usize..area.slips.1 as usize];
        area.start + block + keys.partition_point(|k| *k <= block) as u64
    }

    /// Number of the first block of an area that lies at or behind a sector.
    fn block_at(&self, area: &Area, sector: u64) -> u64 {
        let slips = &self.slips[area.slips.0 as usize..area.slips.1 as usize];
        let slipped = slips.partition_point(|s| *s < sector) as u64;
        let block = area.first + (sector - area.start) - slipped;
        block.min(area.first + area.blocks)
    }

    fn place_of(&self, area: &Area, sector: u64) -> Place {
        let zone = &self.zones[area.zone as usize];
        // A zone has fewer than 2^32 sectors, and short divisions are quicker.
        let (sector, size) = (sector as u32, zone.track_sectors);
        let (track, sector) = (sector / size, sector % size);
        let surfaces = self.surfaces as u32;
        let (cylinder, order) = (track / surfaces, track % surfaces);
        let turned = self.mapping == Mapping::Turning && cylinder % 2 == 1;
        let head = match turned {
            true => surfaces - 1 - order,
            false => order,
        };
        let skew = u64::from(cylinder) * zone.cylinder_step + u64::from(order) * zone.track_skew;
        Place {
            zone: area.zone,
            cylinder: zone.first_cylinder + cylinder,
            head,
            sector,
            skew: (skew % u64::from(size)) as u32,
            track_sectors: size,
        }
    }

    /// Place of a block below the capacity.
    pub fn place(&self, lba: u64) -> Place {
        let area = self.area(lba);
        self.place_of(area, self.sector_of(area, lba))
    }

    /// A block below the capacity and what follows it on its track.
    pub fn stretch(&self, lba: u64) -> Stretch {
        let area = self.area(lba);
        let block = lba - area.first;
        let (low, high) = (area.slips.0 as usize, area.slips.1 as usize);
        let before = self.slip_keys[low..high].partition_point(|k| *k <= block);
        let sector = area.start + block + before as u64;
        let place = self.place_of(area, sector);
        let left = u64::from(place.track_sectors - place.sector);
        let next = self.slips[low..high].get(before);
        let whole = next.is_none_or(|slip| *slip >= sector + left);
        let end = match whole {
            true => (lba + left).min(area.first + area.blocks),
            false => self.block_at(area, sector + left),
        };
        Stretch {
            lba,
            end,
            place,
            whole,
        }
    }

    /// The first part of a run of `blocks` (at least 1) at a stretch's start.
    pub fn cut(&self, stretch: &Stretch, blocks: u64) -> Piece {
        let here = blocks.min(stretch.end - stretch.lba);
        let sectors = match stretch.whole {
            true => here,
            false => {
                let area = self.area(stretch.lba);
                let last = self.sector_of(area, stretch.lba + here - 1);
                last - self.sector_of(area, stretch.lba) + 1
            }
        };
        Piece {
            place: stretch.place,
            blocks: here as u32,
            sectors: sectors as u32,
        }
    }

    /// What is left of a stretch behind its first `blocks`; `None` if nothing.
    pub fn rest(&self, stretch: &Stretch, blocks: u64) -> Option<Stretch> {
        let lba = stretch.lba + blocks;
        if lba >= stretch.end {
            return None;
        }
        if !stretch.whole {
            return Some(self.stretch(lba));
        }
        let mut rest = *stretch;
        rest.lba = lba;
        rest.place.sector += blocks as u32;
        Some(rest)
    }

    /// The first part of the run of `blocks` (at least 1) from `lba` that lies on
    /// one track.
    pub fn piece(&self, lba: u64, blocks: u64) -> Piece {
        self.cut(&self.stretch(lba), blocks)
    }

    /// Blocks of a stretch within its first `sectors`.
    pub fn blocks_within(&self, stretch: &Stretch, sectors: u64) -> u64 {
        if stretch.whole {
            return sectors.min(stretch.end - stretch.lba);
        }
        let area = self.area(stretch.lba);
        self.block_at(area, self.sector_of(area, stretch.lba) + sectors) - stretch.lba
    }

    /// The first block behind the track that holds `lba`.
    pub fn track_end(&self, lba: u64) -> u64 {
        self.stretch(lba).end
    }

    /// The first block of the track that holds `lba`, or of its area on it.
    pub fn track_start(&self, lba: u64) -> u64 {
        let area = self.area(lba);
        let sector = self.sector_of(area, lba);
        let size = u64::from(self.zones[area.zone as usize].track_sectors);
        self.block_at(area, (sector - sector % size).max(area.start))
    }

    /// Place on a line through all sectors in the order of tracks, spare and
    /// slipped ones counted, with one dummy sector at the end of every track:
    /// blocks on both sides of a track's end are not neighbours. In sectors.
    pub fn line(&self, lba: u64) -> u64 {
        let area = self.area(lba);
        let sector = self.sector_of(area, lba);
        let zone = &self.zones[area.zone as usize];
        zone.physical + sector + sector / u64::from(zone.track_sectors)
    }

    /// For each zone: sectors of a track, skew at a track's end and at a
    /// cylinder's end in sectors, and blocks below the capacity.
    pub fn zones(&self) -> Vec<ZoneShape> {
        let mut shapes: Vec<ZoneShape> = self.zones.iter().map(|z| self.shape(z)).collect();
        for area in &self.areas {
            let end = (area.first + area.blocks).min(self.capacity);
            shapes[area.zone as usize].blocks += end.saturating_sub(area.first);
        }
        shapes
    }

    fn shape(&self, zone: &Zone) -> ZoneShape {
        ZoneShape {
            first_cylinder: zone.first_cylinder,
            track_sectors: zone.track_sectors,
            track_skew: zone.track_skew as u32,
            cylinder_skew: (zone.cylinder_step - (self.surfaces - 1) * zone.track_skew) as u32,
            surfaces: self.surfaces as u32,
            blocks: 0,
        }
    }
}

/// What a zone is to those who average over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneShape {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Sectors of a track.
    pub track_sectors: u32,
    /// Skew at a track's end, in sectors.
    pub track_skew: u32,
    /// Skew at a cylinder's end, in sectors.
    pub cylinder_skew: u32,
    /// Tracks of a cylinder.
    pub surfaces: u32,
    /// Blocks that the host sees.
    pub blocks: u64,
}
