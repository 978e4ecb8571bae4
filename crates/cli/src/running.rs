//! What long work shares: how many threads it takes, and how it is stopped.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::failure::Failure;

/// Takes so many threads instead of one for each core.
pub(crate) fn threads(wanted: Option<u16>) -> Result<(), Failure> {
    let Some(threads) = wanted else {
        return Ok(());
    };
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(Failure::failed)
}

/// A flag that an interrupt sets. A second interrupt does not wait for results: it ends the
/// program.
pub(crate) fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = stop.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .map_err(Failure::failed)?;
    Ok(stop)
}
