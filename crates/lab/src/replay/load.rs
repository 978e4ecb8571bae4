//! What is replayed, in data: requests and which part of them, clients of a server, a program that pages.

use std::path::PathBuf;

use piebald_os_model::file::CpuCost;
use piebald_units::Picos;
use piebald_workload::Touches;

/// What is replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// The traces of the input.
    #[default]
    Requests,
    /// Clients of a server.
    Clients(ClientsAsked),
    /// A program that pages its memory.
    Touches(Paging),
}

/// Clients of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientsAsked {
    /// Lines `NAME BYTES`: the trace of each query and the size of its result.
    pub queries: PathBuf,
    /// A line of queries for each client.
    pub sequences: PathBuf,
    /// How long they ask.
    pub length: Picos,
    /// What calls and pages take of the server's processor.
    pub processor: CpuCost,
}

/// A program that pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    /// The program, in words.
    pub name: String,
    /// What it touches.
    pub touches: Touches,
    /// Pages of the swap area, not 1; 0 = there is none.
    pub swap: u32,
}

/// A part of a trace, of which the seed draws what each process leaves out and how they meet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Part {
    /// References behind which nothing is replayed; `None` = all are.
    pub limit: Option<u64>,
    /// Share of a process's references, 0 to 1, that it passes over at most.
    pub skip: f64,
    /// Share of the trace, 0 to 1, by which a process of several leads at most.
    pub lead: f64,
}

impl Part {
    /// Is anything of it drawn?
    pub(super) const fn is_drawn(&self) -> bool {
        self.skip > 0.0 || self.lead > 0.0
    }

    /// What a reader of the numbers must know.
    pub(super) fn note(&self) -> Option<String> {
        let mut said = Vec::new();
        said.extend(
            self.limit
                .map(|limit| format!("the first {limit} references are replayed")),
        );
        if self.skip > 0.0 {
            let most = 100.0 * self.skip;
            said.push(format!(
                "each process passes over up to {most} % of its first references"
            ));
        }
        if self.lead > 0.0 {
            let most = 100.0 * self.lead;
            said.push(format!(
                "each process of several leads by up to {most} % of the trace"
            ));
        }
        let drawn = if self.is_drawn() {
            ", drawn by the seed"
        } else {
            ""
        };
        (!said.is_empty()).then(|| said.join("; ") + drawn)
    }
}

/// Where the disk stands at the beginning: how the same data and the same requests meet other places of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// Sectors by which what a layout file or swap space says lies further behind; a multiple of 8.
    pub shift_sectors: u64,
    /// Simulated time at the first call: the angle by which platters have turned.
    pub at: Picos,
}
