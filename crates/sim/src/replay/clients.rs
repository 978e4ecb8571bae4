//! Clients that ask a server for one query after another, until time is up.
//!
//! A *query* is a list of reads, one after another, and the size of what it returns. A
//! *client* has a sequence of queries, begins the next when it has the answer to the
//! last, and starts over at the sequence's end. Every query is a process of its own on
//! the server: it opens the files that it reads, so that readahead knows nothing of
//! earlier queries. The server has one processor, which copies what a read call brought
//! and is taken in the order in which calls return. This is a closed loop: a faster
//! server gets more queries.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::atomic::{AtomicBool, Ordering};

use piebald_os_model::file::{CpuCost, FileHost, Span, Step};
use piebald_policy::contract::replacement::Replacement;
use piebald_units::block::BlockPort;
use piebald_units::{Bytes, FileId, Picos, TaskId};

use super::driver::{DriverError, Snapshot};

/// Pages of a file that one call reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryRead {
    /// The file.
    pub file: FileId,
    /// Its first page.
    pub first: u64,
    /// How many, at least 1.
    pub pages: u64,
}

/// What a client asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// What the server reads for it, in order.
    pub reads: Vec<QueryRead>,
    /// What it returns.
    pub result: Bytes,
}

/// Who asks for what, and how long.
#[derive(Clone, Copy, Debug)]
pub struct ClientSetup<'a> {
    /// All queries.
    pub queries: &'a [Query],
    /// For each client the numbers of its queries, repeated for ever.
    pub clients: &'a [Vec<usize>],
    /// Simulated time at the beginning: the platters of a disk have turned until then.
    pub begin: Picos,
    /// How long it goes on.
    pub length: Picos,
    /// What the processor takes for a read call and for each page that it copies. Not
    /// both 0, or queries in memory would take no time.
    pub processor: CpuCost,
    /// They end early if this becomes true; what came of them then is of no use.
    pub stop: Option<&'a AtomicBool>,
}

/// Why clients cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// There is no client.
    #[error("no clients; allowed: 1 and more")]
    None,
    /// A client has nothing to ask.
    #[error("client {0} has no query that reads anything; allowed: 1 and more")]
    Idle(usize),
    /// A client asks for a query that does not exist.
    #[error("client {client} asks for query {query}; allowed: 0 to {}", queries.saturating_sub(1))]
    Unknown {
        /// Which client, from 0.
        client: usize,
        /// What it asks for.
        query: usize,
        /// How many there are.
        queries: usize,
    },
    /// Calls take no time.
    #[error("the processor takes no time for a call; allowed: 1 ps and more")]
    NoTime,
}

impl ClientSetup<'_> {
    /// Checks it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn check(&self) -> Result<(), ClientError> {
        if self.clients.is_empty() {
            return Err(ClientError::None);
        }
        if self.processor.call == Picos(0) && self.processor.page == Picos(0) {
            return Err(ClientError::NoTime);
        }
        for (client, sequence) in self.clients.iter().enumerate() {
            let queries = self.queries.len();
            if let Some(&query) = sequence.iter().find(|&&q| q >= queries) {
                return Err(ClientError::Unknown {
                    client,
                    query,
                    queries,
                });
            }
            if sequence.iter().all(|&q| self.queries[q].reads.is_empty()) {
                return Err(ClientError::Idle(client));
            }
        }
        Ok(())
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct ClientOutcome {
    /// Queries that ended in time.
    pub queries: u64,
    /// Of these, by client.
    pub by_client: Vec<u64>,
    /// What they returned.
    pub result: Bytes,
    /// What the processor was busy, also for queries that did not end.
    pub processor: Picos,
    /// Counters at the end.
    pub end: Snapshot,
}

#[derive(Debug, Default)]
struct Client {
    /// Place in its sequence.
    query: usize,
    /// Place in its query.
    read: usize,
    /// Files that the query has open.
    open: BTreeSet<FileId>,
}

/// Clients under way.
struct Server<'a, P, D> {
    host: FileHost<P, D>,
    setup: ClientSetup<'a>,
    clients: Vec<Client>,
    /// Clients that may go on: when, in which order, who.
    ready: BinaryHeap<Reverse<(Picos, u64, usize)>>,
    sequence: u64,
    /// When the processor has nothing more to do.
    free: Picos,
    outcome: ClientOutcome,
}

/// Lets clients ask a server whose host knows all files of their queries.
///
/// # Errors
/// The set-up, or see [`DriverError`].
pub fn run_clients<P: Replacement, D: BlockPort>(
    host: FileHost<P, D>,
    setup: ClientSetup<'_>,
) -> Result<(ClientOutcome, FileHost<P, D>), DriverError> {
    setup.check()?;
    let mut server = Server {
        host,
        clients: setup.clients.iter().map(|_| Client::default()).collect(),
        ready: BinaryHeap::new(),
        sequence: 0,
        free: setup.begin,
        outcome: ClientOutcome {
            by_client: vec![0; setup.clients.len()],
            ..ClientOutcome::default()
        },
        setup,
    };
    for client in 0..setup.clients.len() {
        server.go_on(client, setup.begin);
    }
    server.run()?;
    server.outcome.end = Snapshot {
        stats: server.host.stats(),
        io: server.host.io_stats(),
        sequences: server.host.runs().histogram(),
        at: setup.begin + setup.length,
    };
    Ok((server.outcome, server.host))
}

impl<P: Replacement, D: BlockPort> Server<'_, P, D> {
    fn run(&mut self) -> Result<(), DriverError> {
        let end = self.setup.begin + self.setup.length;
        let stop = self.setup.stop;
        while !stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            let ready = self.ready.peek().map(|Reverse((at, ..))| *at);
            let event = self.host.next_event();
            let next = match (ready, event) {
                (Some(at), event) if event.is_none_or(|event| at < event) => at,
                (_, Some(event)) => event,
                _ => return Err(self.stuck()),
            };
            if next >= end {
                return Ok(());
            }
            match Some(next) == event {
                true => self.advance(next)?,
                false => self.begin_next()?,
            }
        }
        Ok(())
    }

    fn stuck(&self) -> DriverError {
        DriverError::Stuck {
            waiting: self.clients.len(),
            resident: self.host.resident(),
        }
    }

    fn advance(&mut self, event: Picos) -> Result<(), DriverError> {
        for woken in self.host.advance(event)? {
            self.returned(woken.task.0 as usize, woken.at);
        }
        Ok(())
    }

    /// The query under way of a client.
    fn query(&self, client: usize) -> &Query {
        let sequence = &self.setup.clients[client];
        let nth = self.clients[client].query % sequence.len();
        &self.setup.queries[sequence[nth]]
    }

    fn begin_next(&mut self) -> Result<(), DriverError> {
        let Some(Reverse((at, _, client))) = self.ready.pop() else {
            return Ok(());
        };
        if self.clients[client].read >= self.query(client).reads.len() {
            self.end_query(client);
            self.go_on(client, at);
            return Ok(());
        }
        let read = self.query(client).reads[self.clients[client].read];
        self.clients[client].open.insert(read.file);
        let span = Span::pages(read.first, read.pages);
        let step = self
            .host
            .read(TaskId(client as u32), read.file, span, at)
            .map_err(DriverError::from)?;
        if let Step::Ready(at) = step {
            self.returned(client, at);
        }
        Ok(())
    }

    /// A call returned: the processor copies, after what it has to do for others.
    fn returned(&mut self, client: usize, at: Picos) {
        let read = self.clients[client].read;
        let pages = self.query(client).reads.get(read).map_or(0, |r| r.pages);
        let cost = self.setup.processor;
        let work = Picos(
            cost.page
                .0
                .saturating_mul(pages)
                .saturating_add(cost.call.0),
        );
        self.free = self.free.max(at) + work;
        self.outcome.processor += work;
        self.clients[client].read += 1;
        self.go_on(client, self.free);
    }

    fn go_on(&mut self, client: usize, at: Picos) {
        self.sequence += 1;
        self.ready.push(Reverse((at, self.sequence, client)));
    }

    fn end_query(&mut self, client: usize) {
        let result = self.query(client).result;
        self.outcome.result.0 = self.outcome.result.0.saturating_add(result.0);
        self.outcome.queries += 1;
        self.outcome.by_client[client] += 1;
        let state = &mut self.clients[client];
        state.query += 1;
        state.read = 0;
        for file in std::mem::take(&mut state.open) {
            self.host.close(TaskId(client as u32), file);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use piebald_os_model::file::{FileConfig, FileTable, Layout};
    use piebald_os_model::replace::{LruK, LruKConfig};
    use piebald_units::Lba;
    use piebald_units::block::{BlockReq, ReqId};

    use super::*;

    const MS: u64 = 1_000_000_000;

    /// One request after another, 10 ms each.
    #[derive(Debug, Default)]
    struct Fixed(VecDeque<(ReqId, Picos)>, u64);

    impl BlockPort for Fixed {
        fn submit(&mut self, _: BlockReq, now: Picos) -> ReqId {
            self.1 += 1;
            let start = self.0.back().map_or(now, |last| last.1.max(now));
            self.0.push_back((ReqId(self.1), start + Picos(10 * MS)));
            ReqId(self.1)
        }
        fn next_done(&self) -> Option<(ReqId, Picos)> {
            self.0.front().copied()
        }
        fn retire(&mut self, _: ReqId) {
            self.0.pop_front();
        }
    }

    fn read(file: u64, first: u64) -> QueryRead {
        QueryRead {
            file: FileId(file),
            first,
            pages: 1,
        }
    }

    fn run(queries: &[Query], clients: &[Vec<usize>], pages: u32, ms: u64) -> ClientOutcome {
        run_until(None, queries, clients, pages, ms)
    }

    fn run_until(
        stop: Option<&AtomicBool>,
        queries: &[Query],
        clients: &[Vec<usize>],
        pages: u32,
        ms: u64,
    ) -> ClientOutcome {
        let layout = Layout::Packed {
            start: Lba(0),
            gap_pages: 100,
        };
        let mut files = FileTable::new(layout).expect("layout");
        for file in 0..8 {
            files.add(FileId(file), 100).expect("file");
        }
        let policy = LruK::new(LruKConfig::new(pages)).expect("policy");
        let host = FileHost::new(FileConfig::plain(), files, policy, Fixed::default());
        let setup = ClientSetup {
            queries,
            clients,
            begin: Picos(7),
            length: Picos(ms * MS),
            processor: CpuCost {
                call: Picos(MS),
                page: Picos(MS),
            },
            stop,
        };
        let (outcome, host) = run_clients(host.expect("host"), setup).expect("run");
        host.validate().expect("books");
        outcome
    }

    fn query(reads: Vec<QueryRead>) -> Query {
        Query {
            reads,
            result: Bytes(100),
        }
    }

    #[test]
    fn clients_end_when_somebody_wants_it() {
        let queries = [query(vec![QueryRead {
            file: FileId(0),
            first: 0,
            pages: 1,
        }])];
        let one = [vec![0]];
        let asked = |stop: bool| {
            let stop = AtomicBool::new(stop);
            run_until(Some(&stop), &queries, &one, 50, 1000).queries
        };
        assert!(asked(false) > 0);
        assert_eq!(asked(true), 0);
    }

    #[test]
    fn a_client_asks_again_when_it_has_its_answer() {
        // Each miss takes 10 ms, and 2 ms of the processor: two misses are 24 ms.
        let q = [query(vec![read(0, 0), read(1, 0)])];
        let done = run(&q, &[vec![0]], 1, 240);
        assert_eq!(done.queries, 9, "the tenth ends when time is up");
        let done = run(&q, &[vec![0]], 1, 241);
        assert_eq!((done.queries, done.result), (10, Bytes(1000)));
        assert_eq!(done.end.stats.reads.hits, 0);
        // With room for both pages only the first query waits: 24 ms, then 4 ms each.
        let done = run(&q, &[vec![0]], 2, 125);
        assert_eq!(done.queries, 1 + 25);
        assert_eq!(done.end.stats.reads.misses, 2);
    }

    #[test]
    fn clients_share_one_processor() {
        let q: Vec<Query> = (0..4).map(|f| query(vec![read(f, 0)])).collect();
        let clients: Vec<Vec<usize>> = (0..4).map(|c| vec![c]).collect();
        let done = run(&q, &clients, 8, 1000);
        // Once all is in memory it copies without a pause: 2 ms for a query.
        assert!(
            done.queries > 470 && done.queries <= 500,
            "{}",
            done.queries
        );
        let (least, most) = (done.by_client.iter().min(), done.by_client.iter().max());
        assert!(
            most.zip(least).is_some_and(|(m, l)| m - l <= 20),
            "{done:?}"
        );
        assert_eq!(done.by_client.iter().sum::<u64>(), done.queries);
        assert!(done.processor.0 >= 940 * MS, "{:?}", done.processor);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let q = [query(vec![read(0, 0)]), query(vec![])];
        let cost = CpuCost::P4_1700;
        let check = |clients: &[Vec<usize>], processor| {
            let setup = ClientSetup {
                queries: &q,
                clients,
                begin: Picos(0),
                length: Picos(1),
                processor,
                stop: None,
            };
            setup.check()
        };
        assert_eq!(check(&[], cost), Err(ClientError::None));
        assert_eq!(check(&[vec![0], vec![]], cost), Err(ClientError::Idle(1)));
        assert_eq!(check(&[vec![1]], cost), Err(ClientError::Idle(0)));
        let unknown = ClientError::Unknown {
            client: 0,
            query: 2,
            queries: 2,
        };
        assert_eq!(check(&[vec![0, 2]], cost), Err(unknown));
        assert_eq!(
            check(&[vec![0]], CpuCost::default()),
            Err(ClientError::NoTime)
        );
        assert_eq!(check(&[vec![0, 1]], cost), Ok(()));
    }
}
