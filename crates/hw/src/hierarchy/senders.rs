//! Whether a cache or memory sends a clean line, which depends on how far away it is held.

use crate::spec::{Clean, LinkSpec};

/// For each distance: does the other cache send its clean line, or does memory?
#[derive(Clone, Copy, Debug)]
pub(super) struct Senders {
    pub(super) same_group: Clean,
    pub(super) same_socket: Clean,
    pub(super) other_socket: Clean,
}

impl Senders {
    pub(super) fn of(links: &LinkSpec) -> Self {
        Self {
            same_group: links.same_group_clean,
            same_socket: links.same_socket_clean,
            other_socket: links.other_socket_clean,
        }
    }
}
