//! S-4: what follows from the machine alone.

use piebald_hw::presets;
use piebald_lab::colors::all_colors;
use piebald_units::{Bytes, Pfn};

use crate::data::{Known, number};

/// Section 2 counts the colors of this machine with this memory.
const PRESET: &str = "x5355";
const MEMORY: Bytes = Bytes(4 << 30);

/// Numbers of the rows by their names.
///
/// # Errors
/// The machine has no colors.
pub(super) fn known() -> Result<Known, String> {
    let mut machine = presets::load(PRESET).map_err(|e| e.to_string())?;
    machine.memory.size = MEMORY;
    let map = all_colors(&machine)?;
    let mut pages = vec![0u64; map.colors() as usize];
    for frame in 0..MEMORY.0 >> 12 {
        pages[usize::from(map.color(Pfn(frame)).0)] += 1;
    }
    let least = pages.iter().min().copied().unwrap_or(0);
    let most = pages.iter().max().copied().unwrap_or(0);
    let known = [
        ("colors", f64::from(map.colors())),
        ("least_pages", least as f64),
        ("most_pages", most as f64),
    ];
    Ok(known
        .map(|(name, value)| (name.to_owned(), number(value)))
        .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_colors_have_as_many_pages() {
        let known = known().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(known["colors"], number(64.0));
        assert_eq!(known["least_pages"], known["most_pages"]);
    }
}
