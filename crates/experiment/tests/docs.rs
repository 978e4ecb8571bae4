//! The pages that are made from the types of this crate.

use std::{env, fs, path::Path};

use piebald_experiment::reference;

const BEGIN: &str = "<!-- keys:begin -->\n";
const END: &str = "<!-- keys:end -->\n";

/// The page of scenarios has the tables of all keys; with `PIEBALD_BLESS=1` they are written.
#[test]
fn the_page_of_scenarios_has_the_keys_as_they_are() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenarios.md");
    let text = fs::read_to_string(&page).expect("the page is in the repository");
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("the page marks where keys begin");
    let (there, after) = rest.split_once(END).expect("the page marks where keys end");
    let made = format!("\n{}\n", reference());
    if there == made {
        return;
    }
    assert_eq!(
        env::var("PIEBALD_BLESS").as_deref(),
        Ok("1"),
        "docs/scenarios.md is not as `piebald keys` prints; PIEBALD_BLESS=1 cargo test -p \
         piebald-experiment writes it"
    );
    fs::write(&page, format!("{before}{BEGIN}{made}{END}{after}")).expect("the page is written");
}
