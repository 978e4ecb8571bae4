//! Tables of results, which scripts bring up to date row by row.

use std::path::Path;
use std::process::Command;

use piebald_house::root;

const HEADER: &str = "| stage | verdict | seconds |";

/// What `table_with` of `scripts/setup.sh` prints for a file, with these rows.
fn table_with(file: &Path, rows: &[&str]) -> String {
    let script = ". scripts/setup.sh && table_with \"$@\"";
    let output = Command::new("bash")
        .args(["-euc", script, "-"])
        .arg(file)
        .arg(HEADER)
        .args(rows)
        .current_dir(root())
        .output()
        .expect("bash is there");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn a_row_takes_the_place_of_the_one_that_is_named_alike_and_all_others_stay() {
    let folder = std::env::temp_dir().join(format!("piebald-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("results.md");
    let text = "# Results\n\n| package | version |\n|---|---|\n| `gcc` | 14 |\n\n\
        | stage | verdict | seconds |\n|---|---|---|\n\
        | `fmt` | passed | 7 |\n| `shell` | failed | 19 |\n| `demo` | passed | 60 |\n\n\
        | other | table | `here` |\n|---|---|---|\n| `shell` | 1 | 2 |\n";
    std::fs::write(&file, text).expect("written");
    let rows = ["| `shell` | passed | 3 |", "| `guest` | passed | 200 |"];
    let table = table_with(&file, &rows);
    let nothing = table_with(Path::new("/dev/null"), &[]);
    std::fs::remove_dir_all(&folder).expect("removed");
    assert_eq!(
        table,
        "| stage | verdict | seconds |\n|-------|---------|---------|\n\
         | `fmt` | passed | 7 |\n| `shell` | passed | 3 |\n| `demo` | passed | 60 |\n\
         | `guest` | passed | 200 |\n"
    );
    assert_eq!(
        nothing,
        "| stage | verdict | seconds |\n|-------|---------|---------|\n"
    );
}
