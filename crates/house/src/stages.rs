//! Tests that are ignored unless they are asked for, and the stages of `test.sh` that ask.

use std::collections::BTreeMap;

/// A test that is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The crate's folder below `crates/`.
    pub package: String,
    /// The test program: `lib`, or a file of `tests/` without its extension.
    pub program: String,
    /// Its name as a filter sees it, but for modules inside of its file.
    pub name: String,
    /// The attribute's reason; empty if there is none.
    pub reason: String,
    /// Line of the attribute.
    pub line: usize,
}

/// Ignored tests of a source, by its path from the root (`crates/CRATE/...`). `one_program` says whether the
/// crate's files of `tests/` are modules of one program, `all`.
pub fn ignored(path: &str, text: &str, one_program: bool) -> Vec<Ignored> {
    let mut parts = path.trim_end_matches(".rs").split('/').skip(1);
    let package = parts.next().unwrap_or_default().to_owned();
    let inside = parts.next() == Some("src");
    let mut modules: Vec<&str> = parts.filter(|m| !["mod", "lib"].contains(m)).collect();
    let program = match (inside, one_program) {
        (true, _) => "lib".to_owned(),
        (false, true) => "all".to_owned(),
        (false, false) if modules.is_empty() => String::new(),
        (false, false) => modules.remove(0).to_owned(),
    };
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(attribute) = line.trim().strip_prefix("#[ignore") else {
            continue;
        };
        let reason = attribute.split('"').nth(1).unwrap_or_default();
        let function = lines
            .by_ref()
            .find_map(|(_, l)| l.split("fn ").nth(1)?.split('(').next());
        let mut name = modules.clone();
        name.extend(function);
        found.push(Ignored {
            package: package.clone(),
            program: program.clone(),
            name: name.join("::"),
            reason: reason.to_owned(),
            line: at + 1,
        });
    }
    found
}

/// What one call of `asked_for` in `test.sh` runs.
#[derive(Debug, Default)]
struct Call {
    packages: Vec<String>,
    programs: Vec<String>,
    filters: Vec<String>,
    skips: Vec<String>,
}

impl Call {
    /// Reads the words behind `asked_for`.
    fn read(words: &str) -> Self {
        let mut call = Self::default();
        let mut words = words.split_whitespace().filter(|w| !w.starts_with('$'));
        let mut behind = false;
        while let Some(word) = words.next() {
            match word {
                "--" => behind = true,
                "-p" => {
                    let name = words.next().unwrap_or_default();
                    let folder = name.strip_prefix("piebald-").unwrap_or("cli");
                    call.packages.push(folder.to_owned());
                }
                "--lib" => call.programs.push("lib".to_owned()),
                "--test" => call.programs.extend(words.next().map(str::to_owned)),
                "--skip" => call.skips.extend(words.next().map(str::to_owned)),
                word if behind => call.filters.push(word.to_owned()),
                _ => {}
            }
        }
        call
    }

    fn runs(&self, test: &Ignored) -> bool {
        let named = |list: &[String], name: &String| list.is_empty() || list.contains(name);
        let has = |part: &String| test.name.contains(part.as_str());
        named(&self.packages, &test.package)
            && named(&self.programs, &test.program)
            && (self.filters.is_empty() || self.filters.iter().any(has))
            && !self.skips.iter().any(has)
    }
}

/// The stages of `test.sh` and what they ask for.
#[derive(Debug)]
pub struct Stages {
    /// By the name of a stage.
    calls: BTreeMap<String, Vec<Call>>,
    /// Those that run only with `--long`.
    long: Vec<String>,
}

impl Stages {
    /// Reads `test.sh`: its two lists of stages, and in each stage's function, and in the functions that
    /// this one calls, the calls of `asked_for`.
    pub fn read(script: &str) -> Self {
        let script = script.replace("\\\n", " ");
        let functions = functions_of(&script);
        let mut calls = BTreeMap::new();
        let mut long = Vec::new();
        for (list, is_long) in [("STAGES=(", false), ("LONG_STAGES=(", true)] {
            let names = script
                .lines()
                .skip_while(|line| *line != list)
                .skip(1)
                .take_while(|line| *line != ")")
                .filter_map(|line| line.trim().strip_prefix('"')?.split(':').next());
            for name in names {
                let mut found = Vec::new();
                let mut seen = Vec::new();
                let function = format!("stage_{}", name.replace('-', "_"));
                collect(&functions, &function, &mut seen, &mut found);
                calls.insert(name.to_owned(), found);
                if is_long {
                    long.push(name.to_owned());
                }
            }
        }
        Self { calls, long }
    }

    /// Whether there is a stage of this name.
    pub fn has(&self, name: &str) -> bool {
        self.calls.contains_key(name)
    }

    /// What is wrong with an ignored test: its reason ends in the command of a stage that does not run it, or
    /// in none.
    pub fn defect(&self, test: &Ignored) -> Option<String> {
        let Some((_, command)) = test.reason.split_once(": ./test.sh ") else {
            return Some(format!(
                "{}: the reason \"{}\" does not end in \": ./test.sh STAGE\"",
                test.name, test.reason
            ));
        };
        let (stage, long) = command
            .strip_prefix("--long ")
            .map_or((command, false), |stage| (stage, true));
        let Some(calls) = self.calls.get(stage) else {
            return Some(format!("{}: there is no stage \"{stage}\"", test.name));
        };
        if long != self.long.iter().any(|name| name == stage) {
            return Some(format!("{}: --long or not? ({command})", test.name));
        }
        let runs = calls.iter().any(|call| call.runs(test));
        (!runs).then(|| format!("{}: the stage \"{stage}\" does not run it", test.name))
    }
}

/// Bodies of a script's functions, by name. A body ends with the line on which its brace closes.
fn functions_of(script: &str) -> BTreeMap<&str, String> {
    let mut functions = BTreeMap::new();
    let mut lines = script.lines();
    while let Some(line) = lines.next() {
        let Some((name, rest)) = line.split_once("() {") else {
            continue;
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let mut body = rest.to_owned();
        if !rest.trim_end().ends_with('}') {
            for line in lines.by_ref().take_while(|line| *line != "}") {
                body.push('\n');
                body.push_str(line);
            }
        }
        functions.insert(name, body);
    }
    functions
}

fn collect(
    functions: &BTreeMap<&str, String>,
    name: &str,
    seen: &mut Vec<String>,
    found: &mut Vec<Call>,
) {
    let Some(body) = functions
        .get(name)
        .filter(|_| !seen.iter().any(|s| s == name))
    else {
        return;
    };
    seen.push(name.to_owned());
    for command in body.split(['\n', ';', '&', '|', '{', '}']) {
        let command = command.trim();
        if let Some(words) = command.strip_prefix("asked_for ") {
            found.push(Call::read(words));
        } else if let Some(word) = command.split(' ').next() {
            collect(functions, word, seen, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = "STAGES=(\n    \"one:60:a\"\n    \"two:60:b\"\n)\nLONG_STAGES=(\n    \"three:9:c\"\n)\n\
        stage_one() { asked_for --test all -- first:: \\\n    as_root; }\n\
        stage_two() {\n    local a=1\n    helper \"$a\" || exit 1\n}\n\
        helper() {\n    asked_for --lib -- --skip slow second\n}\n\
        stage_three() { asked_for --release -p piebald-guest --test boots --; }\n";

    fn test(package: &str, program: &str, name: &str, reason: &str) -> Ignored {
        let [package, program, name, reason] = [package, program, name, reason].map(str::to_owned);
        Ignored {
            package,
            program,
            name,
            reason,
            line: 1,
        }
    }

    #[test]
    fn a_stage_runs_what_its_filters_choose() {
        let stages = Stages::read(SCRIPT);
        let fine = [
            test("a", "all", "first::t", "x: ./test.sh one"),
            test("a", "all", "other::t_as_root", "x: ./test.sh one"),
            test("a", "lib", "m::second_t", "x: ./test.sh two"),
            test("guest", "boots", "t", "x: ./test.sh --long three"),
        ];
        for test in fine {
            assert_eq!(stages.defect(&test), None);
        }
        let wrong = [
            (
                test("a", "all", "other::t", "x: ./test.sh one"),
                "does not run it",
            ),
            (
                test("a", "lib", "first::t", "x: ./test.sh one"),
                "does not run it",
            ),
            (
                test("a", "lib", "second_slow", "x: ./test.sh two"),
                "does not run it",
            ),
            (
                test("cli", "boots", "t", "x: ./test.sh --long three"),
                "does not run it",
            ),
            (
                test("guest", "boots", "t", "x: ./test.sh three"),
                "--long or not",
            ),
            (
                test("a", "all", "first::t", "x: ./test.sh four"),
                "no stage \"four\"",
            ),
            (
                test("a", "all", "first::t", "takes minutes"),
                "does not end in",
            ),
            (test("a", "all", "first::t", ""), "does not end in"),
        ];
        for (test, what) in wrong {
            let told = stages.defect(&test).expect("a defect");
            assert!(told.contains(what), "{told}");
        }
    }

    #[test]
    fn ignored_tests_are_found_with_their_programs() {
        let text = "#[test]\n#[ignore = \"x: ./test.sh one\"]\nfn a() {}\n    #[ignore]\n    #[test]\n    fn b() {}\n";
        let found = ignored("crates/hw/tests/deep/mod.rs", text, true);
        assert_eq!(found[0].name, "deep::a");
        assert_eq!((found[0].program.as_str(), found[0].line), ("all", 2));
        assert_eq!(
            (found[1].name.as_str(), found[1].reason.as_str()),
            ("deep::b", "")
        );
        let alone = ignored("crates/guest/tests/boots.rs", text, false);
        assert_eq!(
            (alone[0].program.as_str(), alone[0].name.as_str()),
            ("boots", "a")
        );
        let inside = ignored("crates/linux/src/counters.rs", text, true);
        assert_eq!(
            (inside[0].program.as_str(), inside[0].name.as_str()),
            ("lib", "counters::a")
        );
        assert_eq!(inside[0].package, "linux");
    }
}
