//! Reading ahead: how far it may go, and how far it has come.

use piebald_units::Picos;

use super::{Ahead, Zoned};
use crate::disk::buffer::SegmentId;
use crate::disk::geometry::Stretch;
use crate::disk::mechanics::Access;
use crate::disk::spec::ReadAhead;

impl Zoned {
    pub(super) fn start_ahead(&mut self, segment: SegmentId, lba: u64, end: u64, access: &Access) {
        if !self.dirty.is_empty() {
            return;
        }
        let stop = self.ahead_stop(lba, end, access.rest.as_ref());
        self.ahead = Some(Ahead {
            segment,
            next: end,
            stop,
            at: access.end,
            place: access.rest,
            front: match self.rules.read_ahead {
                ReadAhead::WholeTrack => Some(self.map.track_start(end - 1)),
                _ => None,
            },
        });
    }

    /// Where reading ahead ends after a request for `lba..end`; `rest` is what
    /// follows the request on its track, if known.
    pub(super) fn ahead_stop(&self, lba: u64, end: u64, rest: Option<&Stretch>) -> u64 {
        let track_end = || rest.map_or_else(|| self.map.track_end(end - 1), |r| r.end);
        let track = match self.rules.read_ahead {
            ReadAhead::Off => end,
            ReadAhead::TrackEnd | ReadAhead::WholeTrack => track_end(),
            ReadAhead::NextTrackEnd => {
                let next = track_end().min(self.map.capacity() - 1);
                self.map.track_end(next)
            }
            ReadAhead::SegmentFull => u64::MAX,
        };
        let limit = end + u64::from(self.rules.read_ahead_limit);
        let full = match self.rules.keep_requested {
            true => lba + self.buffer.segment_size(),
            false => end + self.buffer.segment_size(),
        };
        let stop = track.min(limit).min(full).min(self.map.capacity());
        stop.max(end)
    }

    pub(super) fn set_stop(&mut self, stop: u64) {
        if let Some(ahead) = &mut self.ahead {
            ahead.stop = stop;
        }
    }

    /// A hit lets reading ahead that still runs go on behind it; what has come
    /// to its end stays there.
    pub(super) fn move_stop(&mut self, id: SegmentId, lba: u64, end: u64) {
        let Some(ahead) = self.ahead.filter(|a| a.segment == id) else {
            return;
        };
        if ahead.next < ahead.stop {
            let stop = self.ahead_stop(lba, end, None);
            self.set_stop(stop.max(ahead.stop));
        }
    }

    /// Where the next block to read ahead lies.
    pub(super) fn ahead_place(&self, ahead: &Ahead) -> Stretch {
        ahead.place.unwrap_or_else(|| self.map.stretch(ahead.next))
    }

    /// Reads ahead as far as it gets by `time`, in whole sectors. Says whether a
    /// sector is under the head then.
    pub(super) fn read_ahead_until(&mut self, time: Picos) -> bool {
        while let Some(ahead) = self.ahead.filter(|a| a.next < a.stop && a.at < time) {
            let stretch = self.ahead_place(&ahead);
            let piece = self.map.cut(&stretch, ahead.stop - ahead.next);
            let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
            if access.end <= time {
                self.note_ahead(&stretch, u64::from(piece.blocks), &access, access.end);
                continue;
            }
            let passed = time.since(access.begin);
            let sectors = self.mechanics.sectors_in(piece.place, passed);
            let end = access.begin + self.mechanics.pass(piece.place, sectors);
            let blocks = self.map.blocks_within(&stretch, sectors);
            if blocks > 0 {
                self.note_ahead(&stretch, blocks, &access, end);
            }
            return time > access.begin;
        }
        self.read_front_until(time);
        false
    }

    /// Reads the front of the track once its end is read, all of it or none.
    pub(super) fn read_front_until(&mut self, time: Picos) {
        let Some(ahead) = self.ahead.filter(|a| a.next == a.stop && a.at < time) else {
            return;
        };
        let (start, _) = self.buffer.span(ahead.segment);
        let Some(front) = ahead.front.filter(|front| *front < start) else {
            return;
        };
        let piece = self.map.piece(front, start - front);
        let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
        // A request over several tracks starts before the last one's front.
        if access.end <= time && u64::from(piece.blocks) == start - front {
            self.buffer.prepend(ahead.segment, front);
            self.counters.read_ahead += start - front;
            self.free = self.free.max(access.end);
            self.ahead = None;
        }
    }

    /// Reads ahead until `end` is read, and says when that is.
    pub(super) fn read_ahead_to(&mut self, end: u64) -> Picos {
        while let Some(ahead) = self.ahead.filter(|a| a.next < end) {
            let stretch = self.ahead_place(&ahead);
            let piece = self.map.cut(&stretch, end - ahead.next);
            let access = self.mechanics.piece(self.spot, ahead.at, &piece, false);
            self.note_ahead(&stretch, u64::from(piece.blocks), &access, access.end);
        }
        self.ahead.map_or(Picos(0), |a| a.at)
    }

    pub(super) fn note_ahead(&mut self, from: &Stretch, blocks: u64, access: &Access, at: Picos) {
        let Some(ahead) = &mut self.ahead else { return };
        ahead.next += blocks;
        ahead.at = at;
        ahead.place = self.map.rest(from, blocks);
        self.buffer.extend(ahead.segment, ahead.next);
        self.counters.read_ahead += blocks;
        self.spot = access.spot;
        self.free = self.free.max(at);
    }

    /// Ends reading ahead at `time`: the arm is wanted elsewhere.
    pub(super) fn stop_ahead(&mut self, time: Picos) {
        if self.read_ahead_until(time)
            && let Some(ahead) = self.ahead
        {
            // The sector under the head is read to its end.
            self.read_ahead_to(ahead.next + 1);
        }
        self.ahead = None;
    }
}
