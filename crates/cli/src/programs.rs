//! The programs of a recording, and what QEMU refused them, in words.

use std::fmt::Write as _;

use piebald_trace::{
    printable,
    recording::{ProgramShare, RefusedCall},
};

/// Programs that are named one by one.
const SHOWN: usize = 6;

/// Which programs ran in how many processes, in one line; `None` if there is nothing to tell.
pub(crate) fn describe(programs: &[ProgramShare]) -> Option<String> {
    let processes: u64 = programs.iter().map(|p| p.processes).sum();
    if processes < 2 {
        return None;
    }
    let all: u64 = programs.iter().map(|p| p.references).sum();
    let share = |p: &ProgramShare| 100.0 * p.references as f64 / all.max(1) as f64;
    let shown = programs.iter().take(SHOWN);
    let named: Vec<String> = shown
        .map(|p| format!("{} {} ({:.1} %)", printable(&p.name), p.processes, share(p)))
        .collect();
    let mut text = format!("{processes} processes by program, with their references: ");
    text += &named.join(", ");
    if let Some(others) = programs.get(SHOWN..).filter(|o| !o.is_empty()) {
        let processes: u64 = others.iter().map(|p| p.processes).sum();
        let references: f64 = others.iter().map(share).sum();
        let n = others.len();
        let _ = write!(text, ", {n} others {processes} ({references:.1} %)");
    }
    Some(text)
}

/// The refused calls in one line; `None` if there are none.
pub(crate) fn describe_refused(refused: &[RefusedCall]) -> Option<String> {
    let named: Vec<String> = refused.iter().map(ToString::to_string).collect();
    (!named.is_empty()).then(|| {
        format!(
            "refused by QEMU, although the recorder's kernel has them: {}",
            named.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str, processes: u64, references: u64) -> ProgramShare {
        ProgramShare {
            name: name.to_owned(),
            processes,
            references,
        }
    }

    #[test]
    fn one_process_is_not_worth_a_line_and_rare_programs_are_summed() {
        assert_eq!(describe(&[program("gzip", 1, 9)]), None);
        let two = [program("bash", 3, 750), program("sed", 1, 250)];
        assert_eq!(
            describe(&two).as_deref(),
            Some("4 processes by program, with their references: bash 3 (75.0 %), sed 1 (25.0 %)")
        );
        let many: Vec<_> = (0..8).map(|n| program(&format!("p{n}"), 2, 100)).collect();
        let text = describe(&many).expect("several");
        assert!(
            text.ends_with("p5 2 (12.5 %), 2 others 4 (25.0 %)"),
            "{text}"
        );
    }

    #[test]
    fn refused_calls_are_named_with_their_counts() {
        let call = |number, name: &str, count| RefusedCall {
            number,
            name: name.to_owned(),
            count,
        };
        assert_eq!(describe_refused(&[]), None);
        let calls = [call(334, "rseq", 1), call(425, "io_uring_setup", 3)];
        let text = describe_refused(&calls).expect("two");
        assert!(
            text.ends_with(": rseq (1 time), io_uring_setup (3 times)"),
            "{text}"
        );
    }
}
