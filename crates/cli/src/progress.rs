//! Progress bars.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::terminal;

/// A bar on standard error over a number of references, with the time left;
/// invisible if standard error takes no escape codes or `quiet` is set.
pub(crate) fn bar(quiet: bool) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if quiet || !terminal::takes_escapes(&std::io::stderr()) {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    let template =
        "{bar:32} {percent:>3}%  {human_pos} of {human_len} references, {per_sec}, {eta} left";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
