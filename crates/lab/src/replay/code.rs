//! What stands for the code of replays, which lies outside the rooms that an epoch of the model
//! stands for.

use piebald_store::digest;

/// The files of this room.
const FILES: [(&str, &[u8]); 15] = [
    ("asked.rs", include_bytes!("asked.rs")),
    ("closed.rs", include_bytes!("closed.rs")),
    ("code.rs", include_bytes!("code.rs")),
    ("curves.rs", include_bytes!("curves.rs")),
    ("disk.rs", include_bytes!("disk.rs")),
    ("draws.rs", include_bytes!("draws.rs")),
    ("fill.rs", include_bytes!("fill.rs")),
    ("load.rs", include_bytes!("load.rs")),
    ("loops.rs", include_bytes!("loops.rs")),
    ("mod.rs", include_bytes!("mod.rs")),
    ("passes.rs", include_bytes!("passes.rs")),
    ("plan.rs", include_bytes!("plan.rs")),
    ("sized.rs", include_bytes!("sized.rs")),
    ("sizes.rs", include_bytes!("sizes.rs")),
    ("timed.rs", include_bytes!("timed.rs")),
];

/// The sum of the code that makes replays from the rooms below.
pub fn code() -> String {
    let sums = FILES.map(|(name, bytes)| format!("{name} {}\n", digest(bytes)));
    digest(sums.concat().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_room_counts() {
        let room = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/replay");
        let entries = std::fs::read_dir(room).expect("the room");
        let mut names: Vec<_> = entries.map(|e| e.expect("a file").file_name()).collect();
        names.sort();
        assert_eq!(names, FILES.map(|(name, _)| name));
    }
}
