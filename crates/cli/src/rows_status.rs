//! `piebald reproduce --status`: what of the rows is there, what is missing and why.

use std::{
    fmt::Write as _,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use piebald_reproduce::{Hooks, Options, RowStatus, Runs, Source, State, status};
use serde_json::{Value, json};

use crate::{
    failure::{Failure, say},
    json::Json,
    record, store,
};

/// Says where the rows of papers stand. Nothing is run, recorded or kept.
pub(crate) fn show(
    papers: &[(Source, Options)],
    named: Option<&str>,
    (json, quiet): (&Json, bool),
) -> Result<ExitCode, Failure> {
    let folder = store::folder(named, store::Default::Cache)?;
    let folder = folder.ok_or_else(|| {
        Failure::usage("--status: no store to look into; allowed: --store DIR or --store cache")
    })?;
    // Programs are made ready to know what they are, which takes a while.
    let last = Mutex::new(String::new());
    let tell = |stage: &str, _: u64, _: u64| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if !quiet && *last != stage {
            *last = stage.to_owned();
            say!("piebald: looking at {stage}");
        }
    };
    let hooks = Hooks {
        stop: None,
        progress: Some(&tell),
        record: &record::stand_in_there,
        store: None,
    };
    let mut text = format!("store: {}\n", folder.display());
    let mut found = Vec::new();
    for (source, options) in papers {
        if !quiet {
            say!("piebald: looking at {}", source.name());
        }
        let rows = status(source, options, hooks, &folder).map_err(Failure::failed)?;
        let form = if options.quick { "quick" } else { "full" };
        let _ = writeln!(text, "\n{}, {form} form", source.name());
        rows.iter().for_each(|row| text += &line(row));
        found.push(json!({
            "name": source.name(), "form": form, "rows": rows.iter().map(value).collect::<Vec<_>>(),
        }));
    }
    let found = json!({ "schema": 1, "store": folder, "papers": found });
    json.show(&text, &found)?;
    Ok(ExitCode::SUCCESS)
}

/// A row as text: one line, and one more for each thing that is to be known.
fn line(row: &RowStatus) -> String {
    let kept = match row.kept.count {
        0 if row.state == State::Ready => "needs no runs".to_owned(),
        0 => String::new(),
        _ => format!("in the store: {}", runs(row.kept)),
    };
    let missing = match row.other_code.count + row.never {
        0 => String::new(),
        n => format!("missing: at least {n}"),
    };
    let other = match row.other_code.count {
        0 => String::new(),
        _ => format!("other code made: {}", runs(row.other_code)),
    };
    let told = [kept, missing, other].into_iter();
    let told: Vec<String> = told.filter(|words| !words.is_empty()).collect();
    let mut text = format!(
        "  {:<5} {:<10} {}",
        row.id,
        row.state.name(),
        told.join("; ")
    );
    text.truncate(text.trim_end().len());
    text.push('\n');
    if let Some(why) = &row.why {
        let _ = writeln!(text, "        {why}");
    }
    text
}

fn runs(runs: Runs) -> String {
    let word = if runs.count == 1 { "run" } else { "runs" };
    format!("{} {word}, {}", runs.count, time(runs.seconds))
}

/// Seconds in the unit that they are read in.
fn time(seconds: f64) -> String {
    match seconds {
        s if s < 60.0 => format!("{s:.1} s"),
        s if s < 3600.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn value(row: &RowStatus) -> Value {
    let runs = |runs: &Runs| json!({ "runs": runs.count, "seconds": runs.seconds });
    json!({
        "id": row.id, "title": row.title, "state": row.state.name(), "kept": runs(&row.kept),
        "other_code": runs(&row.other_code), "never": { "runs": row.never }, "why": row.why,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_is_there_what_is_missing_and_what_it_took() {
        let row = |state, kept, other, never| RowStatus {
            id: "R-5".to_owned(),
            title: "t".to_owned(),
            state,
            kept: Runs {
                count: kept,
                seconds: 90.0,
            },
            other_code: Runs {
                count: other,
                seconds: 7200.0,
            },
            never,
            why: None,
        };
        for (row, wanted) in [
            (
                row(State::Ready, 0, 0, 0),
                "  R-5   ready      needs no runs\n",
            ),
            (
                row(State::Ready, 2, 0, 0),
                "  R-5   ready      in the store: 2 runs, 1.5 min\n",
            ),
            (
                row(State::Missing, 0, 1, 3),
                "  R-5   missing    missing: at least 4; other code made: 1 run, 2.0 h\n",
            ),
        ] {
            assert_eq!(line(&row), wanted);
        }
        let row = RowStatus {
            why: Some("no text".to_owned()),
            ..row(State::CannotRun, 0, 0, 0)
        };
        assert_eq!(line(&row), "  R-5   cannot-run\n        no text\n");
    }
}
