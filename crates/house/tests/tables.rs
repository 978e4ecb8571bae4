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

/// Rows of the first table of a text whose first cell is this word, each with its cells.
fn table_of<'t>(text: &'t str, first: &str) -> Vec<Vec<&'t str>> {
    let cells = |line: &'t str| -> Vec<&'t str> {
        let inner = line.trim().trim_matches('|');
        inner.split('|').map(str::trim).collect()
    };
    let mut lines = text.lines().map(str::trim);
    let head = lines.find(|l| l.starts_with(&format!("| {first} |")));
    let head = cells(head.expect("a table"));
    let rows = lines.skip(1).take_while(|l| l.starts_with('|'));
    std::iter::once(head).chain(rows.map(cells)).collect()
}

/// The README's replay has the policies of the demo, and names the one with the least time.
#[test]
fn the_readme_names_the_policy_that_wins_and_says_why_dulo_does_not() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect("it is there");
    let (readme, demo) = (read("README.md"), read("demo.sh"));
    let listed = demo
        .lines()
        .find(|l| l.contains("--readahead 2.6.11 --policy"));
    let listed = listed.and_then(|l| l.split('"').nth(1)).expect("a list");
    let text = readme.split("five policies of the page cache").nth(1);
    let text = text.expect("a part about the replay");
    let table = table_of(text, "policy");
    let names: Vec<String> = table[1..]
        .iter()
        .map(|row| row[0].to_lowercase().replace("dulo on clock", "dulo"))
        .collect();
    let wanted: Vec<&str> = listed.split(',').collect();
    assert_eq!(names, wanted, "the README and demo.sh");
    let times = (0..table[0].len()).filter(|at| table[0][*at] == "time on the disk");
    let times: Vec<usize> = times.collect();
    assert!(!times.is_empty());
    for at in times {
        let seconds = |row: &Vec<&str>| -> f64 {
            let number = row[at].strip_suffix(" s").expect("seconds");
            number.parse().expect("a number")
        };
        let best = table[1..]
            .iter()
            .min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
        let best = best.expect("rows")[0];
        let claim = format!("{best} has the least time");
        assert!(text.contains(&claim), "{claim}");
    }
    assert!(
        text.contains("DULO refines the order of CLOCK"),
        "why it loses"
    );
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
