//! One room per format or family of formats.

pub(crate) mod accusim;
pub(crate) mod arc;
pub(crate) mod blkparse;
pub(crate) mod blktrace;
pub(crate) mod columns;
pub(crate) mod disksim;
pub(crate) mod fio;
pub(crate) mod fpt;
pub(crate) mod ids;
pub(crate) mod lcs;
pub(crate) mod libcachesim;
pub(crate) mod mqsim;
pub(crate) mod msr;
pub(crate) mod oracle;
pub(crate) mod spc;
pub(crate) mod strace;
pub(crate) mod systor;
pub(crate) mod tencent;
pub(crate) mod vscsi;
pub(crate) mod w106;

use super::request::Op;
use super::{TargetKind, Times, Traits};
use crate::foreign::error::Complaint;

/// Traits of a disk trace that knows reads from writes but no processes.
const fn disk(times: Times) -> Traits {
    Traits {
        target: TargetKind::Device,
        times,
        directions: true,
        tasks: false,
    }
}

/// `R` or `W`, in either case.
fn read_or_write(field: &'static str, text: &[u8]) -> Result<Op, Complaint> {
    match text {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(Complaint::text(field, text, "R (read) or W (write)")),
    }
}
