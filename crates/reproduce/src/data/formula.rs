//! Formulas and templates of rows, as they are written.
//!
//! ```text
//! formula   = and { "||" and }
//! and       = compared { "&&" compared }
//! compared  = sum [ ( "==" | "!=" | "<=" | ">=" | "<" | ">" ) sum ]
//! sum       = product { ( "+" | "-" ) product }
//! product   = signed { ( "*" | "/" ) signed }
//! signed    = ( "-" | "!" ) signed | chosen
//! chosen    = single { "." word | "[" word "=" formula { "," word "=" formula } "]" }
//! single    = number | "text" | word | word "(" [ formula { "," formula } ] ")"
//!           | word "(" axis [ "." word ] [ "where" formula ] ":" formula { "," formula } ")" | "(" formula ")"
//! ```

use serde::{Deserialize, Deserializer, de};

/// Deepest nesting of a formula.
const DEEPEST: usize = 64;
/// Most bytes of a formula.
const LONGEST: usize = 1024;

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    Number(f64),
    Text(String),
    /// An axis, a formula with a name, or something that is counted.
    Name(String),
    /// A part of a value: `.mean` of a sample, a column of an axis's value.
    Part(Box<Self>, String),
    Call(String, Vec<Self>),
    /// Something of all values of an axis, or of those for which a formula holds.
    Over {
        what: String,
        axis: String,
        only: Option<Box<Self>>,
        of: Vec<Self>,
    },
    /// With values chosen for axes, programs, policies and runs.
    At(Box<Self>, Vec<(String, Self)>),
    Negative(Box<Self>),
    Not(Box<Self>),
    Two(Two, Box<Self>, Box<Self>),
}

/// What combines two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Two {
    Or,
    And,
    Equal,
    Unequal,
    AtMost,
    AtLeast,
    Less,
    More,
    Plus,
    Minus,
    Times,
    Over,
}

/// How two values are combined, by what binds least first; longer signs before those that they begin
/// with.
const SIGNS: [&[(&str, Two)]; 5] = [
    &[("||", Two::Or)],
    &[("&&", Two::And)],
    &[
        ("==", Two::Equal),
        ("!=", Two::Unequal),
        ("<=", Two::AtMost),
        (">=", Two::AtLeast),
        ("<", Two::Less),
        (">", Two::More),
    ],
    &[("+", Two::Plus), ("-", Two::Minus)],
    &[("*", Two::Times), ("/", Two::Over)],
];

/// Place of the comparisons among them: `a < b < c` is none.
const COMPARED: usize = 2;

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// What stands where, and what may stand there.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!(
                "a formula of {} bytes: allowed: {LONGEST}",
                text.len()
            ));
        }
        let mut reader = Reader {
            text,
            at: 0,
            depth: 0,
        };
        let formula = reader.two(0)?;
        match reader.rest() {
            "" => Ok(formula),
            _ => Err(reader.expected("an operator, or the end")),
        }
    }
}

/// What is read of a formula.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl<'t> Reader<'t> {
    /// What follows, without spaces before it.
    fn rest(&mut self) -> &'t str {
        let rest = &self.text[self.at..];
        let begins = rest.trim_start();
        self.at += rest.len() - begins.len();
        begins
    }

    /// Takes a sign if it is next.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = self.rest().starts_with(sign);
        if is_next {
            self.at += sign.len();
        }
        is_next
    }

    fn needs(&mut self, sign: &str) -> Result<(), String> {
        if self.takes(sign) {
            return Ok(());
        }
        Err(self.expected(&format!("`{sign}`")))
    }

    fn expected(&mut self, what: &str) -> String {
        let rest = self.rest();
        let found = match rest.chars().next() {
            None => "the end".to_owned(),
            Some(_) => format!("`{}`", rest.chars().take(12).collect::<String>()),
        };
        format!("\"{}\": {found}: allowed: {what}", self.text)
    }

    /// Takes a word if one is next.
    fn word(&mut self) -> Option<String> {
        let rest = self.rest();
        let is_of = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word: String = rest.chars().take_while(|c| is_of(*c)).collect();
        let begins = word.chars().next()?;
        if begins.is_ascii_digit() {
            return None;
        }
        self.at += word.len();
        Some(word)
    }

    fn needs_word(&mut self, what: &str) -> Result<String, String> {
        self.word().ok_or_else(|| self.expected(what))
    }

    /// What binds as strongly as the signs at `level`, or more.
    fn two(&mut self, level: usize) -> Result<Formula, String> {
        let Some(signs) = SIGNS.get(level) else {
            return self.signed();
        };
        let mut left = self.two(level + 1)?;
        while let Some((_, two)) = signs.iter().find(|(sign, _)| self.takes(sign)) {
            let right = self.two(level + 1)?;
            left = Formula::Two(*two, Box::new(left), Box::new(right));
            if level == COMPARED {
                break;
            }
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Formula, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("nested more than {DEEPEST} deep"));
        }
        let found = if self.takes("-") {
            Formula::Negative(Box::new(self.signed()?))
        } else if self.takes("!") {
            Formula::Not(Box::new(self.signed()?))
        } else {
            self.chosen()?
        };
        self.depth -= 1;
        Ok(found)
    }

    fn chosen(&mut self) -> Result<Formula, String> {
        let mut found = self.single()?;
        loop {
            if self.takes(".") {
                let part = self.needs_word("the name of a part")?;
                found = Formula::Part(Box::new(found), part);
            } else if self.takes("[") {
                let mut at = Vec::new();
                loop {
                    let axis = self.needs_word("an axis, `policy`, `program` or `run`")?;
                    self.needs("=")?;
                    at.push((axis, self.two(0)?));
                    if !self.takes(",") {
                        break;
                    }
                }
                self.needs("]")?;
                found = Formula::At(Box::new(found), at);
            } else {
                return Ok(found);
            }
        }
    }

    fn single(&mut self) -> Result<Formula, String> {
        if self.takes("(") {
            let inner = self.two(0)?;
            self.needs(")")?;
            return Ok(inner);
        }
        if self.takes("\"") {
            let rest = &self.text[self.at..];
            let end = rest
                .find('"')
                .ok_or_else(|| self.expected("a closing \""))?;
            self.at += end + 1;
            return Ok(Formula::Text(rest[..end].to_owned()));
        }
        if let Some(word) = self.word() {
            return if self.takes("(") {
                self.call(word)
            } else {
                Ok(Formula::Name(word))
            };
        }
        let rest = self.rest();
        let digits: usize = rest
            .bytes()
            .take_while(|c| c.is_ascii_digit() || *c == b'.')
            .count();
        let number = rest[..digits].parse();
        self.at += digits;
        match number {
            Ok(number) => Ok(Formula::Number(number)),
            Err(_) => {
                self.at -= digits;
                Err(self.expected("a number, a \"text\", a name, `(`, `-` or `!`"))
            }
        }
    }

    /// What follows `word(`.
    fn call(&mut self, what: String) -> Result<Formula, String> {
        if self.takes(")") {
            return Ok(Formula::Call(what, Vec::new()));
        }
        let begun = self.at;
        if let Some(mut axis) = self.word() {
            if self.takes(".") {
                // A list that a value of the axis has.
                axis = format!("{axis}.{}", self.word().unwrap_or_default());
            }
            let only = match self.word().as_deref() {
                Some("where") => Some(Box::new(self.two(0)?)),
                _ => None,
            };
            if self.takes(":") {
                let of = self.list()?;
                return Ok(Formula::Over {
                    what,
                    axis,
                    only,
                    of,
                });
            }
        }
        self.at = begun;
        Ok(Formula::Call(what, self.list()?))
    }

    /// Formulas up to `)`.
    fn list(&mut self) -> Result<Vec<Formula>, String> {
        let mut list = vec![self.two(0)?];
        while self.takes(",") {
            list.push(self.two(0)?);
        }
        self.needs(")")?;
        Ok(list)
    }
}

impl<'de> Deserialize<'de> for Formula {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

/// A text with formulas in braces: `{program}: {rise:.2} points`. Two braces are one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Template(pub(super) Vec<Piece>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Piece {
    Text(String),
    /// A formula, and how its number is written.
    Of(Formula, Option<Digits>),
}

/// How a number is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Digits {
    /// Behind the point.
    pub(super) behind: usize,
    pub(super) sign: Sign,
}

/// What is written beside a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    /// That of a number below 0.
    Minus,
    /// That of any number.
    Any,
    /// Half of a sample's interval, if it has one.
    Interval,
}

/// Most digits behind the point.
const MOST_DIGITS: usize = 17;

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with a formula, or a brace that is alone.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain += &rest[..at];
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(behind) = rest.strip_prefix(brace) {
                plain += brace;
                rest = behind;
                continue;
            }
            let end = rest.find('}').filter(|_| brace == "{");
            let end = end.ok_or_else(|| {
                format!("\"{text}\": a `{brace}` alone: allowed: `{{formula}}`, and `{{{{` and `}}}}` for braces")
            })?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(piece(&rest[..end])?);
            rest = &rest[end + 1..];
        }
        plain += rest;
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Self(pieces))
    }
}

fn piece(inside: &str) -> Result<Piece, String> {
    let written = |(colon, sign): (&str, Sign)| {
        let (formula, behind) = inside.rsplit_once(colon)?;
        let behind = behind.trim().parse().ok()?;
        Some((formula, Digits { behind, sign }))
    };
    let all = [
        (":.", Sign::Minus),
        (":+.", Sign::Any),
        (":±.", Sign::Interval),
    ];
    match all.into_iter().find_map(written) {
        None => Ok(Piece::Of(Formula::parse(inside)?, None)),
        Some((formula, digits)) if digits.behind <= MOST_DIGITS => {
            Ok(Piece::Of(Formula::parse(formula)?, Some(digits)))
        }
        Some((_, Digits { behind, .. })) => Err(format!(
            "\":.{behind}\": allowed: 0 to {MOST_DIGITS} digits"
        )),
    }
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        fn of(formula: &Formula) -> String {
            match formula {
                Formula::Number(n) => n.to_string(),
                Formula::Text(text) => format!("\"{text}\""),
                Formula::Name(name) => name.clone(),
                Formula::Part(of_, part) => format!("{}.{part}", of(of_)),
                Formula::Call(name, list) => format!("{name}({})", all(list)),
                Formula::Over {
                    what,
                    axis,
                    only,
                    of: list,
                } => {
                    let only = only.as_ref().map(|f| format!(" where {}", of(f)));
                    format!("{what}({axis}{}: {})", only.unwrap_or_default(), all(list))
                }
                Formula::At(of_, at) => {
                    let at = at
                        .iter()
                        .map(|(axis, value)| format!("{axis}={}", of(value)));
                    format!("{}[{}]", of(of_), at.collect::<Vec<_>>().join(","))
                }
                Formula::Negative(of_) => format!("(-{})", of(of_)),
                Formula::Not(of_) => format!("(!{})", of(of_)),
                Formula::Two(two, a, b) => format!("({two:?} {} {})", of(a), of(b)),
            }
        }
        fn all(list: &[Formula]) -> String {
            list.iter().map(of).collect::<Vec<_>>().join(", ")
        }
        Formula::parse(text).map_or_else(|e| format!("error: {e}"), |f| of(&f))
    }

    #[test]
    fn what_binds_more_is_combined_first() {
        for (text, formula) in [
            ("1 - 2 - 3*4", "(Minus (Minus 1 2) (Times 3 4))"),
            ("a && b || c && !d", "(Or (And a b) (And c (!d)))"),
            (
                "a.high <= 5 && -b<2.5",
                "(And (AtMost a.high 5) (Less (-b) 2.5))",
            ),
            (
                "100 * (t[run = \"together\", size = 2] / t - 1)",
                "(Times 100 (Minus (Over t[run=\"together\",size=2] t) 1))",
            ),
            (
                "max(size where size < 16 && size != 3: m(\"L3\").mean)",
                "max(size where (And (Less size 16) (Unequal size 3)): m(\"L3\").mean)",
            ),
            ("correlation(size: a, b)", "correlation(size: a, b)"),
            ("if(a, b + 1, \"c, d\")", "if(a, (Plus b 1), \"c, d\")"),
            ("f()", "f()"),
        ] {
            assert_eq!(shown(text), formula, "{text}");
        }
    }

    #[test]
    fn what_is_no_formula_is_told_with_its_place() {
        for (text, part) in [
            ("", "the end: allowed: a number"),
            ("1 +", "the end: allowed: a number"),
            ("a b", "`b`: allowed: an operator, or the end"),
            ("(a", "the end: allowed: `)`"),
            ("a[2]", "`2]`: allowed: an axis"),
            ("a[b 2]", "`2]`: allowed: `=`"),
            ("\"a", "closing"),
            ("1.2.3", "allowed: a number"),
            ("a < b < c", "`< c`: allowed: an operator"),
            ("a.", "the end: allowed: the name of a part"),
            ("é", "`é`: allowed: a number"),
            ("max(size where: a)", "`: a)`: allowed"),
        ] {
            let found = shown(text);
            assert!(
                found.starts_with("error: ") && found.contains(part),
                "{text}: {found}"
            );
        }
        for deep in ["(", "-", "a(", "a["] {
            let found = shown(&deep.repeat(1000));
            assert!(found.starts_with("error: "), "{deep}: {found}");
        }
        assert!(shown(&"-".repeat(1000)).contains("nested more than 64"));
        assert!(shown(&vec!["a"; 10_000].join("+")).contains("allowed: 1024"));
    }

    #[test]
    fn templates_have_formulas_in_braces() {
        let text = |t: &str| Piece::Text(t.to_owned());
        let digits = |behind, sign| Some(Digits { behind, sign });
        let of = |t: &str, digits| Piece::Of(Formula::parse(t).expect(t), digits);
        let parsed = |t: &str| Template::parse(t).map(|t| t.0);
        assert_eq!(
            parsed("{a}: {b - 1:.2} points, {{x}}"),
            Ok(vec![
                of("a", None),
                text(": "),
                of("b - 1", digits(2, Sign::Minus)),
                text(" points, {x}")
            ])
        );
        assert_eq!(
            parsed("{a:+.0}{b:±.1}"),
            Ok(vec![
                of("a", digits(0, Sign::Any)),
                of("b", digits(1, Sign::Interval))
            ])
        );
        assert_eq!(
            parsed("{names(a where b: c)}"),
            Ok(vec![of("names(a where b: c)", None)])
        );
        assert_eq!(parsed(""), Ok(Vec::new()));
        for wrong in ["{a", "a}", "{}", "{a:.99}", "{a:±.99}", "{a:2}", "{a:±1}"] {
            assert!(parsed(wrong).is_err(), "{wrong}");
        }
    }
}
