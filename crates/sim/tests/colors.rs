//! Programs with colours of their own: limits, and partitions that change while
//! their programs run.

use crate::kit;
use crate::kit::{Bench, FOREVER, Script, loads, post, program, stores, time, wait_for};
use piebald_os_model::kernel::{KernelError, OnLimit, SwapConfig};
use piebald_policy::rainbow::{self, Balance, WhenFull};
use piebald_sim::{ColorChange, ColorSetup, Outcome, ProgramSetup, Recolor, SimError};
use piebald_units::ColorAsk;
use piebald_units::{
    ColorSet, Picos,
    op::{SpawnKind, SysOp},
};

const A: u64 = 0x10_0000;
const B: u64 = 0x4000_0000;

fn bench() -> Bench {
    Bench {
        colors: Some(rainbow::Config {
            balance: Balance::Spread,
            when_full: WhenFull::Others,
            ..rainbow::Config::PAPER
        }),
        ..Bench::default()
    }
}

fn set(text: &str) -> ColorSet {
    text.parse().expect("colors")
}

fn exactly(text: &str) -> ColorAsk {
    ColorAsk::Exactly(set(text))
}

fn with_colors(mut p: ProgramSetup, colors: &str, on_limit: OnLimit) -> ProgramSetup {
    p.colors = ColorSetup {
        reserve: Some(exactly(colors)),
        shared: false,
        on_limit,
        changes: Vec::new(),
    };
    p
}

/// Sweeps 128 KiB, twice what a colour of the L3 holds, for ever; at 60,000 of 200,000
/// references it may get all colours.
fn sweeper(recolor: Option<Recolor>) -> ProgramSetup {
    let mut p = program("a", "0", Script::new(vec![loads(A, 128 << 10, FOREVER)]));
    (p.warmup, p.budget) = (20_000, 200_000);
    let mut p = with_colors(p, "2", OnLimit::Fail);
    let change = |recolor| ColorChange {
        at: 60_000,
        want: ColorAsk::Count(4),
        recolor,
    };
    p.colors.changes = recolor.map(change).into_iter().collect();
    p
}

fn misses(outcome: &Outcome) -> f64 {
    let region = &outcome.programs[0].region;
    region.counters.level[2].misses as f64 / region.refs as f64
}

#[test]
fn used_up_colors_end_the_run_with_an_error_that_names_the_program() {
    let small = Bench {
        frames: 4096,
        ..bench()
    };
    let script = || Script::new(vec![stores(A, 1100 << 12, 1)]);
    let mut p = with_colors(program("big", "0", script()), "1", OnLimit::Fail);
    p.budget = 1 << 20;
    let error = small.run(vec![p]).expect_err("1100 pages of at most 1024");
    let SimError::Kernel {
        program,
        error: KernelError::ColorLimit(limit),
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((program.as_str(), limit.program), ("big", 1));
    assert_eq!((limit.colors.as_str(), limit.held.frames), ("1", 1024));
    assert!((800..1024).contains(&limit.held.own), "{error}");
}

#[test]
fn a_change_to_colors_that_another_program_has_names_it() {
    let mut changing = sweeper(Some(Recolor::No));
    changing.colors.changes[0].want = exactly("1,3");
    let mut other = program("b", "1", Script::new(vec![loads(B, 64 << 10, FOREVER)]));
    (other.warmup, other.budget) = (20_000, 200_000);
    let other = with_colors(other, "3", OnLimit::Fail);
    let error = bench()
        .run(vec![changing, other])
        .expect_err("b has color 3");
    assert_eq!(
        error.to_string(),
        "program \"a\": color 3 of its change 1 belongs to \"b\" when it comes; allowed: colors that nobody has, \
         or a change of \"b\" before"
    );
}

#[test]
fn a_program_that_may_swap_waits_for_the_device_instead() {
    let small = Bench {
        frames: 4096,
        ..bench()
    };
    let run = |colors: &str| {
        let script = Script::new(vec![stores(A, 1100 << 12, 2)]);
        let mut p = program("big", "0", script);
        p.budget = 1 << 20;
        let p = with_colors(p, colors, OnLimit::Swap);
        small.run(vec![p]).expect("runs")
    };
    let (swaps, fits) = (run("1"), run("0-3"));
    let (used, free) = (&swaps.programs[0].memory, &fits.programs[0].memory);
    assert_eq!((free.usage.swap_outs, free.usage.swap_ins), (0, 0));
    let (outs, ins) = (used.usage.swap_outs, used.usage.swap_ins);
    assert!(outs > 300 && ins > 200, "{outs} {ins}");
    assert_eq!((outs, ins), (swaps.kernel.swap_outs, swaps.kernel.swap_ins));
    assert_eq!(used.pages_by_color[0], 0, "nothing is borrowed");
    assert_eq!(
        u64::from(used.pages_by_color[1]),
        used.usage.pages,
        "{used:?}"
    );
    assert!(used.usage.peak_pages < 1024 && free.usage.peak_pages == 1100);
    let swap = SwapConfig::default();
    let waited = (outs * swap.write.0 + ins * swap.read.0) as f64;
    let longer = time(&swaps, 0) - time(&fits, 0);
    assert!(
        (1.0..1.5).contains(&(longer / waited)),
        "{longer} ps longer, {waited} ps of it waiting"
    );
}

#[test]
fn a_partition_that_grows_misses_less_once_its_pages_have_moved() {
    let before = bench().run(vec![sweeper(None)]).expect("runs");
    let pages = &before.programs[0].memory;
    assert_eq!(pages.pages_by_color, [0, 0, 32, 0]);
    assert_eq!(
        (&pages.own, &pages.colors),
        (&Some(set("2")), &Some(set("2")))
    );
    assert!(misses(&before) > 0.9, "{}", misses(&before));

    // New colours without moving: the pages stay where they are.
    let stay = bench().run(vec![sweeper(Some(Recolor::No))]).expect("runs");
    let pages = &stay.programs[0].memory;
    assert_eq!(pages.pages_by_color, [0, 0, 32, 0]);
    assert_eq!(pages.colors, Some(set("0-3")));
    assert!(misses(&stay) > 0.9, "{}", misses(&stay));

    let now = bench()
        .run(vec![sweeper(Some(Recolor::Now))])
        .expect("runs");
    let moved = &now.programs[0].memory;
    assert_eq!(moved.pages_by_color, [8, 8, 8, 8]);
    assert_eq!(moved.usage.recolored, 24);
    // 60,000 of 200,000 references miss, and each page once more.
    let share = misses(&now);
    assert!((0.28..0.36).contains(&share), "{share}");
    // A page takes some microseconds: 64 lines each are read and written.
    let each = moved.recolor_time.0 / 24;
    assert!((1_000_000..20_000_000).contains(&each), "{each} ps");
    assert_eq!(stay.programs[0].memory.recolor_time, Picos(0));
    assert!(time(&now, 0) < time(&stay, 0));
}

#[test]
fn pages_that_move_at_ticks_move_a_few_at_a_time() {
    let quick = Bench {
        tick: Picos(100_000_000),
        ..bench()
    };
    let run = |pages| {
        let p = sweeper(Some(Recolor::PerTick(pages)));
        quick.run(vec![p]).expect("runs")
    };
    let (few, many) = (run(1), run(8));
    for outcome in [&few, &many] {
        let memory = &outcome.programs[0].memory;
        assert_eq!(memory.pages_by_color, [8, 8, 8, 8]);
        assert_eq!(memory.usage.recolored, 24);
        assert!(memory.recolor_time > Picos(0));
    }
    assert!(
        misses(&few) > misses(&many) + 0.01,
        "{} {}",
        misses(&few),
        misses(&many)
    );
}

#[test]
fn what_is_given_back_can_be_taken_by_another_program() {
    let mut shrinks = program("s", "0", Script::new(vec![loads(A, 128 << 10, FOREVER)]));
    (shrinks.warmup, shrinks.budget) = (20_000, 400_000);
    let mut shrinks = with_colors(shrinks, "0-2", OnLimit::Fail);
    shrinks.colors.changes = vec![ColorChange {
        at: 50_000,
        want: exactly("0"),
        recolor: Recolor::Now,
    }];
    let mut grows = program("g", "1", Script::new(vec![loads(B, 64 << 10, FOREVER)]));
    (grows.warmup, grows.budget) = (20_000, 20_000_000);
    let mut grows = with_colors(grows, "3", OnLimit::Fail);
    grows.colors.changes = vec![ColorChange {
        at: 9_000_000,
        want: ColorAsk::Share(7500),
        recolor: Recolor::Now,
    }];
    let outcome = bench().run(vec![shrinks, grows]).expect("runs");
    let [s, g] = &outcome.programs[..] else {
        panic!("two programs");
    };
    assert_eq!(s.memory.pages_by_color, [32, 0, 0, 0]);
    assert_eq!(g.memory.colors, Some(set("1-3")));
    assert_eq!(g.memory.pages_by_color.iter().sum::<u32>(), 16);
    assert!(g.memory.pages_by_color[1..].iter().all(|n| *n >= 5));
}

#[test]
fn colors_that_another_program_has_are_refused_by_name() {
    let p = |name, core| {
        let p = program(name, core, Script::new(vec![loads(A, 4096, FOREVER)]));
        with_colors(p, "1-2", OnLimit::Fail)
    };
    let error = bench().run(vec![p("first", "0"), p("second", "1")]);
    let text = error.expect_err("taken").to_string();
    assert_eq!(
        text,
        "program \"second\": task 1: reserve: color 1 belongs to partition 0"
    );
    let mut changes = p("changes", "1");
    changes.colors.reserve = None;
    changes.colors.changes = vec![ColorChange {
        at: 10_000,
        want: ColorAsk::Count(3),
        recolor: Recolor::No,
    }];
    let error = bench().run(vec![p("first", "0"), changes]);
    let text = error.expect_err("too many").to_string();
    assert!(
        text.starts_with("program \"changes\": task 1: reserve: 3 more colors asked for; 2"),
        "{text}"
    );
    let stock = Bench::default().run(vec![p("first", "0")]);
    let text = stock.expect_err("no colors").to_string();
    assert!(text.contains("this kernel has no page colors"), "{text}");
}

#[test]
fn a_program_that_starts_again_goes_on_with_its_last_colors() {
    let mut long = program("long", "0", Script::new(vec![loads(A, 32 << 10, FOREVER)]));
    (long.warmup, long.budget) = (5_000, 100_000);
    // 16 pages, 10,240 references; it ends and starts again several times.
    let mut short = program("short", "1", Script::new(vec![loads(B, 64 << 10, 10)]));
    (short.warmup, short.budget) = (1_000, 1_000_000);
    let mut short = with_colors(short, "0", OnLimit::Fail);
    short.measured = false;
    short.colors.changes = vec![ColorChange {
        at: 4_000,
        want: exactly("2-3"),
        recolor: Recolor::No,
    }];
    let outcome = bench().run(vec![long, short]).expect("runs");
    let short = &outcome.programs[1];
    assert!(short.restarts > 1, "{}", short.restarts);
    // Its measured part ended in the first instance, with the pages where they were.
    assert_eq!(short.memory.pages_by_color, [16, 0, 0, 0]);
    assert_eq!(short.memory.own, Some(set("2-3")));
    assert_eq!(short.memory.usage.recolored, 0);
    // Later instances have what the first one changed to, so that is what the long one,
    // which owns none, is kept out of.
    let long = &outcome.programs[0].memory;
    assert_eq!((&long.colors, &long.own), (&Some(set("0-1")), &None));
}

#[test]
fn the_main_thread_changes_the_colors_of_all_threads() {
    let thread = SysOp::Spawn {
        thread: 1,
        kind: SpawnKind::Thread,
    };
    let main = vec![
        kit::sys(thread),
        loads(A, 64 << 10, 1),
        wait_for(7),
        loads(A, 64 << 10, 60),
    ];
    let other = vec![loads(B, 64 << 10, 60), post(7), loads(B, 64 << 10, 60)];
    let mut p = program("two", "0-1", Script::threads(vec![main, other]));
    p.budget = 1 << 20;
    let mut p = with_colors(p, "1", OnLimit::Fail);
    // Reached while the main thread waits.
    p.colors.changes = vec![ColorChange {
        at: 20_000,
        want: ColorAsk::Count(2),
        recolor: Recolor::Now,
    }];
    let outcome = bench().run(vec![p]).expect("runs");
    let memory = &outcome.programs[0].memory;
    assert_eq!(memory.usage.recolored, 16);
    assert_eq!(memory.pages_by_color[1], 16);
    assert_eq!(memory.pages_by_color.iter().sum::<u32>(), 32);
}

#[test]
fn colors_of_a_program_that_starts_late_are_kept_for_it() {
    let mut target = program(
        "target",
        "0",
        Script::new(vec![loads(A, 32 << 10, FOREVER)]),
    );
    target.waits = true;
    let target = with_colors(target, "0-2", OnLimit::Fail);
    let mut company = program(
        "company",
        "1",
        Script::new(vec![loads(B, 512 << 10, FOREVER)]),
    );
    (company.warmup, company.measured) = (40_000, false);
    let outcome = bench().run(vec![target, company]).expect("runs");
    let [target, company] = &outcome.programs[..] else {
        panic!("two programs");
    };
    assert_eq!(company.memory.pages_by_color, [0, 0, 0, 128]);
    assert_eq!(target.memory.own, Some(set("0-2")));
    assert_eq!(target.memory.pages_by_color.iter().sum::<u32>(), 8);
}

#[test]
fn programs_that_name_the_same_colors_share_them_if_they_may() {
    let p = |name, core, base| {
        let p = program(
            name,
            core,
            Script::new(vec![loads(base, 32 << 10, FOREVER)]),
        );
        let mut p = with_colors(p, "1-2", OnLimit::Fail);
        p.colors.shared = true;
        p
    };
    let outcome = bench().run(vec![p("a", "0", A), p("b", "1", B)]);
    for one in outcome.expect("runs").programs {
        assert_eq!(one.memory.pages_by_color, [0, 4, 4, 0]);
    }
}
