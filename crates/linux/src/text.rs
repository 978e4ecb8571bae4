//! What the module's files say, as values. Pure; the caller reads the files.

use piebald_units::ColorSet;

use crate::{
    ask::parse_mode,
    module::{Counters, Task, Tasks},
};

/// What is wrong with a text: the line, from 1, what is there, and what could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) allowed: &'static str,
}

/// Applies `read` to each line.
fn lines<T>(
    text: &str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, Fault> {
    let each = text.lines().zip(1..).map(|(line, number)| {
        read(line).ok_or_else(|| Fault {
            line: number,
            text: line.to_owned(),
            allowed,
        })
    });
    each.collect()
}

/// The only line of a text.
fn single<T>(
    text: &str,
    allowed: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Fault> {
    let fault = || Fault {
        line: 1,
        text: text.lines().next().unwrap_or_default().to_owned(),
        allowed,
    };
    let mut all = lines(text, allowed, read)?;
    match (all.pop(), all.is_empty()) {
        (Some(value), true) => Ok(value),
        _ => Err(fault()),
    }
}

/// `0` or `1`.
pub(crate) fn switch(text: &str) -> Result<bool, Fault> {
    single(text, "0 or 1", |line| match line {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })
}

/// A whole number.
pub(crate) fn number(text: &str) -> Result<u64, Fault> {
    single(text, "a whole number", |line| line.parse().ok())
}

/// `PID COLORS MODE` for each process; the last line is `others`.
pub(crate) fn tasks(text: &str) -> Result<Tasks, Fault> {
    enum Line {
        Task(Task),
        Others(ColorSet),
    }
    let read = |line: &str| {
        let mut words = line.split(' ');
        let (who, colors, mode) = (words.next()?, words.next()?, words.next()?);
        let mode = parse_mode(mode).filter(|_| words.next().is_none())?;
        let colors = match colors {
            // Before a map is set there are none.
            "" => ColorSet::EMPTY,
            set => set.parse().ok()?,
        };
        Some(match who {
            "others" => Line::Others(colors),
            pid => Line::Task(Task {
                pid: pid.parse().ok()?,
                colors,
                mode,
            }),
        })
    };
    let mut tasks = Tasks::default();
    for line in lines(text, "PID COLORS hard|hint, or others COLORS hint", read)? {
        match line {
            Line::Task(task) => tasks.tasks.push(task),
            Line::Others(colors) => tasks.others = colors,
        }
    }
    // The module lists them by hash.
    tasks.tasks.sort_by_key(|task| task.pid);
    Ok(tasks)
}

/// `COLOR FRAMES`, colours from 0 on without a gap.
pub(crate) fn free(text: &str) -> Result<Vec<u64>, Fault> {
    let allowed = "COLOR FRAMES, colors from 0 on";
    let pair = |line: &str| {
        let (color, frames) = line.split_once(' ')?;
        Some((color.parse::<usize>().ok()?, frames.parse::<u64>().ok()?))
    };
    let pairs = lines(text, allowed, pair)?;
    if let Some((at, (color, _))) = pairs.iter().enumerate().find(|(i, (c, _))| i != c) {
        return Err(Fault {
            line: at + 1,
            text: color.to_string(),
            allowed,
        });
    }
    Ok(pairs.into_iter().map(|(_, frames)| frames).collect())
}

/// `NAME NUMBER`.
pub(crate) fn counters(text: &str) -> Result<Counters, Fault> {
    let pair = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.parse().ok()?))
    };
    lines(text, "NAME NUMBER", pair).map(Counters)
}

#[cfg(test)]
mod tests {
    use piebald_policy::contract::Mode;

    use super::*;

    #[test]
    fn tasks_are_listed_by_number() {
        let text = "77 0-3 hard\n12 8,10 hint\nothers 4-7,9,11-15 hint\n";
        let read = tasks(text).unwrap();
        let shown: Vec<_> = read
            .tasks
            .iter()
            .map(|t| (t.pid, t.colors.to_string(), t.mode))
            .collect();
        let expected = [
            (12, "8,10".to_owned(), Mode::Hint),
            (77, "0-3".to_owned(), Mode::Hard),
        ];
        assert_eq!(shown, expected);
        assert_eq!(read.others.to_string(), "4-7,9,11-15");
        assert!(tasks("others  hint\n").unwrap().others.is_empty());
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, line) in [
            ("1 0-3 soft\n", 1),
            ("others 0 hint\n1 0\n", 2),
            ("1 0-3 hint more\n", 1),
            ("x 0 hint\n", 1),
            ("1 3-0 hint\n", 1),
        ] {
            assert_eq!(tasks(text).map_err(|f| f.line), Err(line), "{text}");
        }
        assert_eq!(free("0 5\n2 5\n").map_err(|f| f.line), Err(2));
        assert_eq!(free("0 5\n1 7\n"), Ok(vec![5, 7]));
        assert_eq!(counters("a 1\nb\n").map_err(|f| f.line), Err(2));
        for text in ["", "2\n", "0\n1\n"] {
            assert!(switch(text).is_err(), "{text:?}");
        }
        assert_eq!((switch("1\n"), number("17\n")), (Ok(true), Ok(17)));
    }
}
