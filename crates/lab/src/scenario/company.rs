//! Which programs run together, and which alone.

use piebald_report::Role;

use super::{ProgramEntry, ScenarioError, Source, file};

/// Which programs run together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All of them.
    All,
    /// Each target with all polluters, without the other targets.
    EachTarget,
}

/// Which programs run alone, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// All of them.
    All,
    /// Targets; polluters are company only.
    Targets,
    /// None: only policies are compared.
    None,
}

/// The keys `together` and `alone`.
pub(super) fn company(
    file: &file::File,
    source: &Source<'_>,
    programs: &[ProgramEntry],
) -> Result<(Together, Alone), ScenarioError> {
    let words = [
        ("all", Together::All),
        ("each-target", Together::EachTarget),
    ];
    let together = source.choose(&file.together, "together", &words)?;
    let words = [
        ("all", Alone::All),
        ("targets", Alone::Targets),
        ("none", Alone::None),
    ];
    let alone = source.choose(&file.alone, "alone", &words)?;
    let meet = match together {
        Together::All => programs.len() > 1,
        Together::EachTarget => programs.iter().any(|p| p.role == Role::Polluter),
    };
    match (&file.alone, alone) {
        (Some(given), Alone::None) if !meet => {
            let allowed = "\"all\" or \"targets\" where programs do not run together";
            Err(source.refuse(given, "alone", "\"none\"", allowed))
        }
        _ => Ok((together, alone)),
    }
}
