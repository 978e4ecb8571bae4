//! D-13: figure 6, a sparse matrix multiplication in less memory than it has data.

use piebald_os_model::file::{FileConfig, FileTable, Layout, SwapArea};
use piebald_report::{Published, Sample, Target, TargetKind};
use piebald_sim::replay::{FileSide, paging_with};
use piebald_units::{Lba, Picos, block::SECTORS_SHIFT};

use super::kernel::{
    Cells, Figures, Job, LINUX, List, PAGES_PER_MB, draw, drive, dulo, jobs, kernel, policy, seeds,
    states,
};
use super::smm_stream::Shape;
use crate::{
    Hooks, Options,
    row::{blank, sampled, shown},
    verdict,
};

/// Figure 6's largest reduction of time, in percent.
const REDUCTION: f64 = 43.7;
/// Memory, in MB, at which it may be (printed: 135).
const AT_MB: std::ops::RangeInclusive<u32> = 125..=145;
/// At the largest size times differ by less, in percent (protocol).
const SAME: f64 = 2.0;

/// Slots of the swap area: 1 GiB, twice the machine's memory \[M\].
const SLOTS: u32 = 262_144;

/// Processor time of a row: 8 elements of two operations at 100 Mflop/s, which this kernel
/// reaches about on the machine of section 4.2.3 \[M\]. All products take 2.5 s of it.
const ELEMENT: Picos = Picos(20_000);

/// The short form: sizes in MB, products.
const QUICK_MB: [u32; 3] = [110, 135, 170];
const QUICK_PRODUCTS: u64 = 5;

/// Runs the row, or says why it is not run.
pub(super) fn smm(options: &Options, hooks: Hooks<'_>) -> Vec<Target> {
    let title = "figure 6: time of a sparse matrix multiplication by memory";
    let mut target = blank("D-13", title, TargetKind::H);
    match all(options, hooks) {
        Ok((sizes, cells, dulo)) => judge(&mut target, &cells, &sizes, &dulo),
        Err(why) => target.why = Some(why),
    }
    let wanted = options.wants(&target.id);
    wanted.then_some(target).into_iter().collect()
}

fn all(options: &Options, hooks: Hooks<'_>) -> Result<(Vec<u32>, Cells, String), String> {
    let list = List::read()?.smm;
    let (sizes, products) = match options.quick {
        true => (QUICK_MB.to_vec(), QUICK_PRODUCTS),
        false => (list.memory_mb.clone(), list.products),
    };
    let each = list.elements / list.rows;
    let shape = Shape {
        rows: list.rows,
        each,
        window: list.window_rows,
        products,
        row_time: Picos(ELEMENT.0 * each),
    };
    let dulo = dulo(list.bank_mb, list.evicting_mb);
    let jobs = jobs(0, &sizes, &[LINUX, &dulo], &seeds(options));
    let cells = Cells::run(jobs, "SMM", hooks, |job| run(job, shape, list.kernel_mb))?;
    Ok((sizes, cells, dulo))
}

fn run(job: &Job, shape: Shape, kernel_mb: u32) -> Result<Figures, String> {
    let disk = drive()?;
    let (start, begin, _) = draw(job.seed, &disk, u64::from(SLOTS) << SECTORS_SHIFT);
    let side = FileSide {
        config: FileConfig {
            swap: Some(SwapArea::new(Lba(start), SLOTS)),
            ..kernel()
        },
        files: FileTable::new(Layout::Extents).map_err(|e| e.to_string())?,
        disk,
    };
    let pages = job.mb.saturating_sub(kernel_mb) * PAGES_PER_MB;
    let done = paging_with(
        &policy(&job.policy)?,
        pages,
        &side,
        &mut shape.touches(),
        begin,
    )
    .map_err(|e| e.to_string())?;
    let stats = done.programs.end.stats;
    Ok(Figures {
        main: done.programs.time.0 as f64 / 1e12,
        hits: stats.hit_ratio().unwrap_or(0.0) * 100.0,
        references: done.programs.touches,
        more: vec![
            ("swap-ins", stats.swap_ins as f64),
            ("read along", stats.swap_readahead as f64),
            ("of these unused", stats.prefetched_unused as f64),
            ("swap-outs", stats.swap_outs as f64),
            ("disk requests", (done.disk.reads + done.disk.writes) as f64),
        ],
    })
}

fn reduction(cells: &Cells, mb: u32, dulo: &str) -> Sample {
    let of = |policy| cells.sample(0, mb, policy, |f| f.main);
    let longer = of(LINUX).slowdown(&of(dulo));
    longer.map_or_else(|| Sample::new(Vec::new()), |longer| longer.scaled(-100.0))
}

fn judge(t: &mut Target, cells: &Cells, sizes: &[u32], dulo: &str) {
    let mut reductions = Vec::new();
    for &mb in sizes {
        let reduced = reduction(cells, mb, dulo);
        t.values
            .push(shown(&format!("{mb} MB: reduction of time"), &reduced, "%"));
        reductions.push((mb, reduced));
        for (name, policy) in [("Linux", LINUX), ("DULO", dulo)] {
            let time = cells.sample(0, mb, policy, |f| f.main);
            t.values
                .push(shown(&format!("{mb} MB: {name}, time"), &time, "s"));
            for more in cells.more() {
                let figure = cells.sample(0, mb, policy, |f| f.get(more));
                t.values
                    .push(shown(&format!("{mb} MB: {name}, {more}"), &figure, ""));
            }
        }
    }
    let by_mean = |a: &&(u32, Sample), b: &&(u32, Sample)| a.1.mean.total_cmp(&b.1.mean);
    let Some((at, largest)) = reductions.iter().max_by(by_mean) else {
        return;
    };
    let name = "largest reduction over the sizes";
    let paper = Published::Number(REDUCTION);
    t.values.insert(0, sampled(name, paper, largest, "%"));
    t.predicates.push(states(
        format!("it is at {} to {} MB ({at} MB)", AT_MB.start(), AT_MB.end()),
        AT_MB.contains(at),
    ));
    if let Some((mb, last)) = reductions.iter().max_by_key(|(mb, _)| *mb) {
        t.predicates.push(states(
            format!(
                "{mb} MB: times differ by less than {SAME} % ({:.2} %)",
                last.mean
            ),
            last.mean.abs() < SAME,
        ));
    }
    t.verdict = verdict::with_statements(verdict::headline(REDUCTION, largest), &t.predicates);
}
