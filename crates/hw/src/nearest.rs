//! "Did you mean ...?": which of some names a mistyped one is nearest to.

/// Similarity from which a name is offered, of 1 for equal ones: a slip of a letter or two,
/// or the beginning of a longer name, lies above; another name of the same kind, such as
/// `x5355` beside `w3540`, below.
const LEAST: f64 = 0.8;

/// How much alike two names are, 0 to 1. Jaro and Winkler's measure knows beginnings of
/// longer names, but nothing of a slip in names of three letters; edits know those.
fn likeness(a: &str, b: &str) -> f64 {
    let edits = strsim::osa_distance(a, b) as f64;
    let longest = a.chars().count().max(b.chars().count()).max(1);
    let by_edits = 1.0 - edits / (2 * longest) as f64;
    strsim::jaro_winkler(a, b).max(by_edits)
}

/// The known name that is most like `name`, letters of either case being equal; none if none
/// is like it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let like = |of: &str| likeness(&lower, &of.to_lowercase());
    let rated = known.into_iter().map(|known| (like(known), known));
    let near = rated.filter(|(similarity, _)| *similarity >= LEAST);
    let best = near.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map(|(_, known)| known)
}

/// `; did you mean NAME?` to end a message with, or nothing if no known name is like it.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let offer = |near| format!("; did you mean {near}?");
    nearest(name, known).map_or(String::new(), offer)
}

/// What to add to a message of serde's that a key or a word is unknown: `unknown field `NAME`,
/// expected one of `A`, `B``. Nothing for other messages.
pub fn hint_of(message: &str) -> String {
    let Some((head, known)) = message.split_once("expected ") else {
        return String::new();
    };
    let name = ["unknown field `", "unknown variant `"]
        .into_iter()
        .find_map(|before| head.split_once(before)?.1.split_once('`'));
    match name {
        Some((name, _)) => did_you_mean(name, known.split('`').skip(1).step_by(2)),
        None => String::new(),
    }
}

/// A message of serde's without the words of a programming language: `expected u16` says how large a number may
/// be.
pub fn in_words(message: &str) -> String {
    let Some((head, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    let head = head.strip_prefix("invalid type: ").unwrap_or(head);
    let head = head.strip_prefix("invalid value: ").unwrap_or(head);
    let head = head.replace('`', "");
    let whole = |most: u64| format!("a whole number from 0 to {most}");
    let expected = match expected.trim_matches('`') {
        "u8" => whole(u8::MAX.into()),
        "u16" => whole(u16::MAX.into()),
        "u32" => whole(u32::MAX.into()),
        "u64" | "usize" => "a whole number from 0".to_owned(),
        "f64" => "a number".to_owned(),
        "bool" | "a boolean" => "true or false".to_owned(),
        "a string" | "string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        struct_ if struct_.starts_with("struct ") => "a table".to_owned(),
        _ => return message.to_owned(),
    };
    format!("{head}: allowed: {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_language_are_told_in_plain_ones() {
        for (message, told) in [
            (
                "invalid type: string \"x\", expected u16",
                "string \"x\": allowed: a whole number from 0 to 65535",
            ),
            (
                "invalid value: integer `70000`, expected u16",
                "integer 70000: allowed: a whole number from 0 to 65535",
            ),
            (
                "invalid type: integer `1`, expected struct Program",
                "integer 1: allowed: a table",
            ),
            (
                "invalid type: string \"x\", expected f64",
                "string \"x\": allowed: a number",
            ),
            (
                "unknown field `x`, expected one of `a`, `b`",
                "unknown field `x`, expected one of `a`, `b`",
            ),
            ("missing field `name`", "missing field `name`"),
        ] {
            assert_eq!(in_words(message), told);
        }
    }

    #[test]
    fn the_words_of_serde_are_read() {
        let message = "unknown field `budget_ref`, expected one of `title`, `budget_refs`";
        assert_eq!(hint_of(message), "; did you mean budget_refs?");
        let message = "unknown variant `lineer`, expected `linear` or `physical`";
        assert_eq!(hint_of(message), "; did you mean linear?");
        for message in [
            "unknown field `x`, there are no fields",
            "invalid type: string, expected `u64`",
            "missing field `name`",
        ] {
            assert_eq!(hint_of(message), "", "{message}");
        }
    }

    #[test]
    fn slips_and_beginnings_are_near_and_other_names_are_not() {
        let machines = [
            "epyc",
            "i7-860",
            "skylake-sp",
            "w3540",
            "x5355",
            "x7560",
            "zen",
        ];
        for (typed, meant) in [
            ("w3541", "w3540"),
            ("W3540", "w3540"),
            ("skylake", "skylake-sp"),
            ("skylake_sp", "skylake-sp"),
            ("i7", "i7-860"),
            ("i7_860", "i7-860"),
            ("zne", "zen"),
            ("zen2", "zen"),
            ("x5535", "x5355"),
            ("x756", "x7560"),
            ("epic", "epyc"),
        ] {
            assert_eq!(nearest(typed, machines), Some(meant), "{typed}");
        }
        for typed in ["", "pentium", "my.toml", "opteron", "7", "a"] {
            assert_eq!(nearest(typed, machines), None, "{typed}");
        }
        assert_eq!(nearest("zen", []), None);
    }

    #[test]
    fn the_offer_ends_a_message() {
        let policies = ["stock", "rainbow", "lru", "budget_refs"];
        let offer = |typed| did_you_mean(typed, policies);
        assert_eq!(offer("stok"), "; did you mean stock?");
        assert_eq!(offer("lrru"), "; did you mean lru?");
        assert_eq!(offer("budget_ref"), "; did you mean budget_refs?");
        assert_eq!(offer("dulo"), "");
    }
}
