//! What a reader of a trace's numbers must know, in words.

use piebald_units::Picos;

use super::Format;
use super::reader::BlockTrace;
use super::sink::{Notes, Passed};

impl Passed {
    /// Each kind that there was, with its number.
    pub fn told(&self) -> Vec<String> {
        told(&[
            (self.comments, "comments"),
            (self.flushes, "flushes"),
            (self.discards, "discards"),
            (self.empty, "of no length"),
            (self.others, "others"),
            (self.elsewhere, "to what is no file on a disk"),
            (self.unresolved, "to files not named"),
        ])
    }
}

impl Notes {
    /// Each kind that there was, with its number.
    pub fn told(&self) -> Vec<String> {
        let step = Picos::from_ns(self.largest_step_back_ns).unwrap_or(Picos::MAX);
        let backward = format!("earlier than one before them, by up to {step}");
        told(&[
            (self.widened, "widened to whole sectors"),
            (self.backward, &backward),
            (self.assumed_offsets, "at an offset not known, taken as 0"),
            (self.assumed_ends, "appended behind an end not known"),
            (self.like_records, "lines among records that begin with #"),
            (self.unclipped_maps, "mappings with an unknown end of file"),
            (self.direct, "past the page cache (O_DIRECT)"),
            (self.remapped, "handed on from one device to another"),
            (self.unended_lines, "last lines without a line feed"),
            (self.byte_order_marks, "byte order marks"),
        ])
    }
}

fn told(counts: &[(u64, &str)]) -> Vec<String> {
    let told = counts.iter().filter(|c| c.0 > 0);
    told.map(|(n, what)| format!("{n} {what}")).collect()
}

impl BlockTrace {
    /// Whether other records are among the requests, and not what their logs always have beside them: further
    /// stages of a request, calls that touch no data, files that are opened.
    fn counts_others(&self) -> bool {
        !matches!(
            self.format(),
            Format::Strace | Format::Blktrace | Format::Blkparse | Format::Fio | Format::AccuSim
        )
    }

    /// Why its requests so far may not be all, or not be where they are said to be; a sentence
    /// without its end for each reason.
    pub fn doubts(&self) -> Vec<String> {
        let (passed, notes) = (self.passed(), self.notes());
        let mut doubts = Vec::new();
        let mut add = |n: u64, what: &str| {
            if n > 0 {
                doubts.push(format!("{n} {what}"));
            }
        };
        add(
            passed.unresolved,
            "requests are left out, as the trace does not name their files",
        );
        add(
            notes.assumed_offsets,
            "files are first used at an offset that is not known, and taken as 0",
        );
        add(
            notes.assumed_ends,
            "writes append to files whose end is not known, and are taken to begin behind what is known of \
             them",
        );
        add(
            notes.unclipped_maps,
            "mappings may reach behind the end of their file, which is not known",
        );
        add(
            notes.direct,
            "requests are to files opened with O_DIRECT, which pass the page cache by; here they go \
             through it",
        );
        add(
            notes.remapped,
            "requests are handed on from one device to another (a partition, a volume): where both are \
             traced, both have them here",
        );
        add(
            notes.like_records,
            "lines among the records begin with #, and are passed over as comments",
        );
        // At the end of a file calls touch no data; that is no fault of a log.
        if self.format() != Format::Strace {
            add(passed.empty, "requests of no length are passed over");
        }
        if self.counts_others() {
            add(
                passed.others,
                "records are neither reads nor writes, and are passed over",
            );
        }
        if notes.unended_lines > 0 {
            doubts.push("the last line has no line feed: it is taken as whole".to_owned());
        }
        if !self.left_out().is_empty() {
            doubts.push(format!(
                "left out, as the trace does not say which data they move: {}",
                self.left_out().told().join(", ")
            ));
        }
        doubts
    }
}
