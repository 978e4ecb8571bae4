//! `piebald store`, and `--store` of the verbs that run cases.

use std::{path::PathBuf, process::ExitCode, sync::Arc};

use piebald_sim::EPOCH;
use piebald_store::{Contents, Store};
use piebald_units::Bytes;
use serde_json::json;

use crate::{failure::Failure, json::Json, record};

/// Where outcomes of runs are kept.
#[derive(Clone, Copy)]
pub(crate) enum Default {
    /// Nowhere.
    Nowhere,
    /// In the cache folder.
    Cache,
}

/// The folder that `--store` names: a folder, `cache` or `none`.
pub(crate) fn folder(named: Option<&str>, default: Default) -> Result<Option<PathBuf>, Failure> {
    Ok(match (named, default) {
        (Some("none"), _) | (None, Default::Nowhere) => None,
        (Some(""), _) => {
            let says = "--store: the name is empty; allowed: a folder, cache or none";
            return Err(Failure::usage(says));
        }
        (Some("cache"), _) => Some(cache().map_err(Failure::usage)?),
        (Some(folder), _) => Some(PathBuf::from(folder)),
        // Nobody asked for it.
        (None, Default::Cache) => cache().ok(),
    })
}

/// Opens it.
pub(crate) fn open(named: Option<&str>, default: Default) -> Result<Option<Arc<Store>>, Failure> {
    let Some(folder) = folder(named, default)? else {
        return Ok(None);
    };
    match Store::open(&folder, EPOCH) {
        Ok(store) => Ok(Some(Arc::new(store))),
        Err(error) if named.is_some() => Err(Failure::usage(format!("--store: {error}"))),
        Err(error) => {
            crate::failure::say!("piebald: runs are not kept: {error}");
            Ok(None)
        }
    }
}

/// Says what was found and kept, if anything was, and always what could not be kept.
pub(crate) fn tell(store: Option<&Arc<Store>>, quiet: bool) {
    let Some(tally) = store.map(|store| store.tally()) else {
        return;
    };
    if tally.problem.is_some() || !quiet && tally.found > 0 {
        crate::failure::say!("piebald: {tally}");
    }
}

fn cache() -> Result<PathBuf, String> {
    Ok(record::cache_folder()?.join("store"))
}

/// Arguments of `piebald store`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Removes outcomes, those first that were used longest ago, until at most so much is left,
    /// such as 8GiB; 0 removes all
    #[arg(long, value_name = "SIZE")]
    keep: Option<Bytes>,
    /// Folder of the store [default: in the cache folder]
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let folder = match &args.store {
        Some(folder) => folder.clone(),
        None => cache().map_err(Failure::usage)?,
    };
    let store = Store::open(&folder, EPOCH).map_err(Failure::usage)?;
    let words = |contents: Contents| {
        let runs = if contents.entries == 1 { "run" } else { "runs" };
        format!("{} {runs}, {}", contents.entries, Bytes(contents.bytes))
    };
    let value = |c: Contents| json!({ "runs": c.entries, "bytes": c.bytes });
    let (text, json) = match args.keep {
        None => {
            let contents = store.contents().map_err(Failure::failed)?;
            let text = format!("{}: {}\n", folder.display(), words(contents));
            (
                text,
                json!({ "schema": 1, "folder": folder, "holds": value(contents) }),
            )
        }
        Some(most) => {
            let done = store.keep(most.0).map_err(Failure::failed)?;
            let (gone, left) = (words(done.removed), words(done.left));
            let text = format!("{}: removed {gone}; left {left}\n", folder.display());
            let json = json!({
                "schema": 1, "folder": folder, "holds": value(done.left), "removed": value(done.removed),
            });
            (text, json)
        }
    };
    args.json.show(&text, &json)?;
    Ok(ExitCode::SUCCESS)
}
