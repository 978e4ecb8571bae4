//! The counter of lines and functions, on texts that hold what misleads it.

use std::collections::BTreeMap;

use piebald_house::{
    census::{self, Counts, room_of},
    lines::{Language, of_c, of_python, of_shell},
    packages::Package,
    read, root,
    rust::Source,
    texts_below,
};

/// Each text beside the number of its code lines.
fn check<E: std::fmt::Debug>(count: fn(&str) -> Result<usize, E>, cases: &[(&str, usize)]) {
    for (text, lines) in cases {
        assert_eq!(count(text).unwrap(), *lines, "\n{text}");
    }
}

fn of_rust(text: &str) -> Result<usize, String> {
    Source::read(text).map(|source| source.code_lines())
}

fn functions(text: &str) -> Vec<usize> {
    Source::read(text).unwrap().functions()
}

#[test]
fn comments_and_blank_lines_of_rust_are_no_code() {
    check(
        of_rust,
        &[
            ("", 0),
            (
                "//! Purpose.\n\n/// A.\n/** B. */\n// c\nfn f() {} // d\n",
                1,
            ),
            ("/* a /* b */ c\n d */ fn f() {\n\n}\n", 2),
            ("/* a /* b */\nfn no_code() {}\n */\n", 0),
            (
                "#[inline]\nfn f() {\n    //! Inner.\n    g(/* a */\n  1)\n}\n",
                5,
            ),
        ],
    );
}

#[test]
fn comment_marks_in_strings_of_rust_are_code() {
    check(
        of_rust,
        &[
            ("const A: &str = \"\n// a\n\n/* b\";\nconst B: u8 = 1;\n", 4),
            (
                "const A: &str = r#\"\n\"// a\n\"#;\nconst B: u8 = b'\"'; // c\n",
                4,
            ),
            ("const A: char = '\"'; // \"\n// \"\nconst B: u8 = 1;\n", 2),
            ("#[doc = \"a\"]\nfn f() {}\n", 2),
        ],
    );
}

#[test]
fn what_only_tests_have_is_left_out() {
    let unlike = "#[cfg(not(test))]\nfn f() {}\n#[cfg(any(test, unix))]\nfn g() {}\n";
    check(
        of_rust,
        &[
            (
                "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\nfn h() {}\n",
                2,
            ),
            ("#[cfg(all(unix, test))]\n/// A.\nfn f() {\n}\n", 0),
            (
                "impl A {\n    #[cfg(test)]\n    fn f() {}\n    fn g() {}\n}\n",
                3,
            ),
            ("trait A {\n    #[cfg(test)]\n    fn f() {}\n}\n", 2),
            ("mod a {\n    #[cfg(test)]\n    use b::C;\n}\n", 2),
            ("#![cfg(test)]\nfn f() {}\n", 0),
            (unlike, 4),
        ],
    );
    assert_eq!(functions(unlike), [1, 1]);
    assert_eq!(
        functions("#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n"),
        [0; 0]
    );
}

#[test]
fn a_function_is_as_long_as_its_signature_and_body() {
    let text = "/// A.\n#[inline]\npub fn f(\n    a: u8,\n) {\n    // b\n\n    fn g() {}\n}\n\
                trait T {\n    fn h();\n    fn i() {\n    }\n}\n\
                impl T for A {\n    const fn j() {\n        1\n    }\n}\n";
    assert_eq!(functions(text), [7, 1, 2, 3]);
}

#[test]
fn ranks_of_lengths_are_those_of_a_function_that_exists() {
    let counts = |functions: &[usize]| Counts {
        functions: functions.to_vec(),
        ..Counts::default()
    };
    let ten: Vec<usize> = (1..=10).collect();
    assert_eq!(counts(&ten).percentile(50), Some(5));
    assert_eq!(counts(&ten).percentile(90), Some(9));
    assert_eq!(counts(&[7]).percentile(90), Some(7));
    assert_eq!(counts(&[]).percentile(90), None);
    assert_eq!(counts(&[59, 60, 61, 62]).long_functions(), 2);
}

#[test]
fn comments_of_c_are_no_code_wherever_they_stand() {
    check(
        of_c,
        &[
            ("/* a\n * b\n */\n\nint c; // d\n// e\n", 1),
            ("/* a */ int b; /*\n c */ int d;\n", 2),
            ("// a \\\n still a\nint b;\n", 1),
            ("/* a /* b */ int c;\n", 1),
            ("#ifdef A /* b */\n#endif\n", 2),
        ],
    );
}

#[test]
fn comment_marks_in_strings_of_c_are_code() {
    check(
        of_c,
        &[
            ("char *a = \"/*\";\nint b;\n", 2),
            ("char *a = \"\\\"/*\";\nint b; /* \" */\n/* c */\n", 2),
            ("char a = '\"'; /* ' */\n/* b */\nchar c = '\\'';\n", 2),
            ("#error it's not\n/* a */\nint b;\n", 2),
            ("char *a = \"http://b\\\n/* c\";\n", 2),
        ],
    );
    assert!(of_c("int a;\n/* b").unwrap_err().starts_with("2:"));
}

#[test]
fn comments_of_a_script_begin_with_a_word() {
    check(
        of_shell,
        &[
            ("#!/bin/sh\n# a\n\n  # b\necho c # d\n", 1),
            ("a=$#\nb=${#a}\nc=$a#b\n", 3),
            ("(# a\necho b;# c'\n)\n", 3),
            ("a=$((16#ff << 2))\n# b\n((a<<=1))\n", 2),
            ("echo a \\\n  b\n", 2),
        ],
    );
}

#[test]
fn quotes_of_a_script_hold_no_comments() {
    check(
        of_shell,
        &[
            ("a='\n# b\n\n'\n# it's\nb=1\n", 4),
            ("a=\"\n# b\n\\\"\n# c\"\n# d\n", 4),
            ("a=\"$(echo \"b\" # c\n# \"d\n)\"\n# e\n", 2),
            ("a=$'\\'\n# b'\n", 2),
            ("a=\"${b:-it's}\"\n# c\n", 1),
            ("a=${b#'}'}\n# c\n", 1),
            ("a=`echo b # c`\nd=1\n", 2),
            ("a=\\'\n# b\n", 1),
        ],
    );
}

#[test]
fn here_documents_are_code_up_to_their_end_mark() {
    check(
        of_shell,
        &[
            ("cat <<A\n# b\n\nit's \"\nA\n# c\n", 4),
            ("cat <<'A B'\n# c\nA B\n# d\n", 3),
            ("cat <<-A >b <<\"C\"\n# d\n\tA\n# e\nC\n# f\n", 5),
            ("cat <<<A\n# b\n", 1),
            ("a=$(cat <<A\n) # \"\nA\n)\n# b\n", 4),
        ],
    );
    assert!(of_shell("cat <<A\nb\n").is_err());
}

#[test]
fn a_pattern_of_case_closes_no_substitution() {
    check(
        of_shell,
        &[
            ("a=\"$(case b in\n# \"\nb) echo \"c\" ;;\nesac)\"\n# d\n", 3),
            ("case a in (b) ;; esac\n# c\n", 1),
            ("say case_\n(echo)\n# a\n", 2),
        ],
    );
    for open in [
        "a='b",
        "a=\"b",
        "a=${b",
        "a=$(b",
        "a=$((1)",
        "a=`b",
        "case a in b) ;;",
    ] {
        assert!(of_shell(open).is_err(), "{open}");
    }
}

#[test]
fn docstrings_of_python_are_comments_and_other_strings_are_code() {
    check(
        of_python,
        &[
            (
                "#!/usr/bin/env python3\n\"\"\"A.\n\nB.\"\"\"\nimport c  # d\n# e\n",
                1,
            ),
            ("def f():\n    r'''A\n    # b'''  # c\n    return 1\n", 2),
            ("def f():\n    'A'\n    return \"# b\"\n", 2),
            ("a = \"\"\"\n# b\n\nc\n\"\"\"\n", 4),
            ("f(\n    \"\"\"a\n# b\"\"\",\n)\n", 4),
            ("\"\"\"a\n# b\"\"\".join(c)\n", 2),
            ("'a' \\\n    'b'\n", 2),
            ("a = [  # \"\"\"\n    # b\n    'c',\n]\n", 3),
            ("a = '\\'# b'\n\"\"\"c\\\"\"\"\"\n# d\n", 1),
            ("rb = 1\nb = rb'# a'\n", 2),
            ("def f(): \"\"\"a\nb\"\"\"\nc = 1\n", 3),
        ],
    );
    assert!(of_python("a = 1\nb = '''").unwrap_err().starts_with("2:"));
    assert!(of_python("a = 'b\n'").is_err());
}

#[test]
fn a_language_is_told_by_extension_or_interpreter() {
    assert_eq!(Language::of("a/b.h", ""), Some(Language::C));
    assert_eq!(
        Language::of("a.d/run", "#!/usr/bin/env bash\n"),
        Some(Language::Shell)
    );
    assert_eq!(Language::of("run", "#!/usr/bin/env perl\n"), None);
    assert_eq!(Language::of("a.md", "#!/bin/sh\n"), None);
}

#[test]
fn rooms_are_those_of_the_product() {
    let room = |path| room_of(path);
    assert_eq!(room("crates/lab/src/lib.rs").as_deref(), Some("crates/lab"));
    assert_eq!(room("kernel/core/src/lib.rs").as_deref(), Some("kernel"));
    assert_eq!(room("test.sh"), room(".ci/run"));
    for path in [
        "crates/lab/tests/a.rs",
        "crates/lab/src/a/tests/b.rs",
        "crates/lab/benches/a.rs",
        "crates/lab/examples/a.rs",
        "crates/lab/fuzz/a.rs",
        "crates/house/src/lib.rs",
        "kernel/test/run.sh",
        "bench/a/run.sh",
        "testdata/a.py",
        "docs/a.py",
    ] {
        assert_eq!(room(path), None, "{path}");
    }
}

fn texts(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    let text = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
    files.iter().map(text).collect()
}

#[test]
fn files_that_only_tests_include_are_left_out() {
    let texts = texts(&[
        ("crates/a/Cargo.toml", ""),
        (
            "crates/a/src/lib.rs",
            "mod b;\n#[cfg(test)]\n#[path = \"c_tests.rs\"]\nmod tests;\n",
        ),
        ("crates/a/src/b.rs", "#[cfg(test)]\nmod d;\nfn f() {}\n"),
        ("crates/a/src/b/d.rs", "mod e;\nfn f() {}\n"),
        ("crates/a/src/b/d/e.rs", "fn f() {}\n"),
        ("crates/a/src/c_tests.rs", "fn f() {}\n"),
        ("crates/a/tests/f.rs", "fn f() {}\n"),
        ("crates/a/build.rs", "fn f() {}\n"),
        ("crates/a/c/d.c", "int a;\n"),
    ]);
    let census = census::count(&texts).unwrap();
    let total = census.total();
    assert_eq!(
        (total.lines[&Language::Rust], total.lines[&Language::C]),
        (3, 1)
    );
    assert_eq!(total.functions, [1, 1]);
    assert_eq!(census.to_json()["sum"]["lines"], 4);
    assert_eq!(
        census.to_json()["rooms"]["crates/a"]["functions"]["p90_lines"],
        1
    );
    assert!(
        census.to_text().contains("sum                      4"),
        "{}",
        census.to_text()
    );
}

#[test]
fn a_source_that_no_module_declares_is_refused() {
    let read = |files: &[(&str, &str)]| Package::read("a", &texts(files)).map(|_| ());
    let lib = ("a/src/lib.rs", "mod b;\n");
    assert_eq!(read(&[lib, ("a/src/b.rs", "")]), Ok(()));
    assert!(read(&[lib]).unwrap_err().contains("src/b.rs"));
    assert!(
        read(&[lib, ("a/src/b.rs", ""), ("a/src/c.rs", "")])
            .unwrap_err()
            .contains("a/src/c.rs")
    );
    assert!(
        read(&[("a/src/lib.rs", "fn\n")])
            .unwrap_err()
            .starts_with("a/src/lib.rs:")
    );
}

/// The lexers say where a quote stays open, which is what happens to a text that they misread.
#[test]
fn every_source_of_the_repository_is_understood() {
    let texts = texts_below(&root());
    for (path, text) in &texts {
        let lines = match Language::of(path, text) {
            Some(Language::C) => of_c(text),
            Some(Language::Shell) => of_shell(text),
            Some(Language::Python) => of_python(text),
            _ => continue,
        };
        assert!(lines.is_ok_and(|lines| lines > 0), "{path}");
    }
    let census = census::count(&texts).unwrap();
    assert!(census.rooms.len() >= 18, "{:?}", census.rooms.keys());
    assert_eq!(
        of_shell(&read(&root().join("scripts/lines.sh"))),
        Ok(7),
        "counted by hand"
    );
}
