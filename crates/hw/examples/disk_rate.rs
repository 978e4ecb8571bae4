//! How many requests per second the disk models simulate.
//!
//! `disk_rate PRESET KIND [REQUESTS]` prints
//! `preset kind requests cpu_seconds thousands_per_cpu_second mean_ms`. KIND is
//! `random` and `sequential` (4 KiB reads, one after the other), `mixed` (reads
//! and writes, 10 ms apart on average), `queue` (16 random reads always
//! outstanding), or the path of a trace with lines
//! `R|W Hit|Miss block sectors service_us gap_us`, repeated as often as needed.

use piebald_hw::disk::{self, Disk};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, BlockReq},
};

type Failure = Box<dyn std::error::Error>;

struct Rng(u64);

impl Rng {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Time that this process has spent on a processor: other load does not count.
fn cpu_seconds() -> Result<f64, Failure> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let ns = text.split_whitespace().next();
    Ok(ns
        .ok_or("no time in /proc/self/schedstat")?
        .parse::<f64>()?
        / 1e9)
}

fn request(lba: u64, sectors: u32, dir: BlockDir) -> BlockReq {
    BlockReq {
        lba: Lba(lba),
        sectors,
        dir,
    }
}

/// Requests with the time from the completion before.
fn trace(path: &str) -> Result<Vec<(BlockReq, Picos)>, Failure> {
    let text = std::fs::read_to_string(path)?;
    let line = |line: &str| -> Option<(BlockReq, Picos)> {
        let mut fields = line.split_whitespace();
        let dir = match fields.next()? {
            "R" => BlockDir::Read,
            _ => BlockDir::Write,
        };
        let lba = fields.nth(1)?.parse().ok()?;
        let sectors = fields.next()?.parse().ok()?;
        let gap: f64 = fields.nth(1)?.parse().ok()?;
        Some((request(lba, sectors, dir), Picos((gap * 1e6) as u64)))
    };
    let all: Option<Vec<_>> = text.lines().map(line).collect();
    Ok(all.ok_or("a line of the trace cannot be read")?)
}

fn made(kind: &str, capacity: u64, count: usize) -> Result<Vec<(BlockReq, Picos)>, Failure> {
    let mut rng = Rng(0x2545_F491_4F6C_DD1D);
    let blocks = capacity / 8;
    let one = |at: usize| match kind {
        "random" => (request(rng.below(blocks) * 8, 8, BlockDir::Read), Picos(0)),
        "sequential" => {
            let lba = at as u64 % blocks * 8;
            (request(lba, 8, BlockDir::Read), Picos(0))
        }
        _ => {
            let dir = [BlockDir::Read, BlockDir::Read, BlockDir::Write][rng.below(3) as usize];
            let gap = Picos(rng.below(20_000_000_000));
            (request(rng.below(blocks) * 8, 8, dir), gap)
        }
    };
    match kind {
        "random" | "sequential" | "mixed" | "queue" => Ok((0..count).map(one).collect()),
        other => Err(format!("{other}: random, sequential, mixed, queue or a trace").into()),
    }
}

/// One request after the other; when the last is done.
fn serve(disk: &mut Disk, requests: &[(BlockReq, Picos)], count: usize) -> Picos {
    let mut now = Picos(0);
    for (req, gap) in requests.iter().cycle().take(count) {
        now = disk.service(*req, now + *gap).done;
    }
    now
}

/// Sixteen outstanding.
fn queue(disk: &mut Disk, requests: &[(BlockReq, Picos)]) -> Picos {
    let mut now = Picos(0);
    for (at, (req, _)) in requests.iter().enumerate() {
        if at >= 16
            && let Some((id, done)) = disk.next_done()
        {
            now = done;
            disk.retire(id);
        }
        disk.submit(*req, now);
    }
    now
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [preset, kind, rest @ ..] = args.as_slice() else {
        return Err("usage: disk_rate PRESET KIND [REQUESTS]".into());
    };
    let count: usize = rest.first().map_or("1000000", |c| c).parse()?;
    let mut disk = Disk::new(&disk::by_name(preset)?)?;
    let requests = match std::path::Path::new(kind).is_file() {
        true => trace(kind)?,
        false => made(kind, disk.capacity_sectors(), count)?,
    };
    let start = cpu_seconds()?;
    match kind.as_str() {
        "queue" => queue(&mut disk, &requests),
        _ => serve(&mut disk, &requests, count),
    };
    let seconds = cpu_seconds()? - start;
    let sums = disk.counters();
    let served = sums.reads + sums.writes;
    let name = kind.rsplit('/').next().unwrap_or(kind);
    let rate = served as f64 / seconds / 1e3;
    let mean = sums.service.0 as f64 / 1e9 / served as f64;
    println!("{preset:12} {name:16} {served} {seconds:.3} {rate:.0} {mean:.3}");
    Ok(())
}
