//! Built-in programs as recordings.

use std::sync::Barrier;

use piebald_trace::recording::Recording;
use piebald_workload::{Builtin, Library, list, record};

/// Small parameters under which every kernel completes an iteration quickly.
fn small(name: &str) -> Builtin {
    let text = match name {
        "fft" => "fft:1024".to_owned(),
        "lu" | "sor" => format!("{name}:40"),
        "smm" => "smm:1000,nz=5000".to_owned(),
        "phold" => "phold:1000,processes=100".to_owned(),
        "hashjoin" => "hashjoin:1MiB,dimension=1000".to_owned(),
        "triad" | "gups" => format!("{name}:64KiB,threads=2"),
        "matmul" => "matmul:30".to_owned(),
        "filesort" => "filesort:64KiB,block=8KiB".to_owned(),
        "postmark" => "postmark:20,low=1KiB,high=8KiB".to_owned(),
        "readfiles" => "readfiles:4,size=4KiB,chunk=4KiB,instrs=16,threads=2".to_owned(),
        "lookup" => "lookup:2,size=16KiB,chunk=4KiB".to_owned(),
        _ => format!("{name}:64KiB"),
    };
    Builtin::parse(&text).unwrap()
}

fn bytes_of(recording: &Recording) -> u64 {
    let index = recording.index();
    let chunks: u64 = index.chunks.iter().map(|c| c.len).sum();
    chunks + index.dictionaries.iter().map(|d| d.len).sum::<u64>()
}

#[test]
fn recordings_are_whole_and_hold_every_reference() {
    for spec in list() {
        let builtin = small(spec.name);
        let recording = record(&builtin, 3, 100_000).unwrap();
        recording.verify().unwrap();
        let counts = recording.header().counts;
        assert!(recording.header().complete, "{builtin}");
        assert_eq!(counts.threads, u64::from(builtin.threads()), "{builtin}");
        let threads = u64::from(builtin.threads());
        assert!(counts.references > threads * 99_000, "{builtin}");
        assert!(counts.instructions > counts.references, "{builtin}");
    }
}

#[test]
fn recordings_take_few_bytes() {
    for (text, most) in [
        ("triad:64KiB", 0.05),
        ("chase:64KiB", 2.5),
        ("mergesort:64KiB", 1.0),
    ] {
        let recording = record(&Builtin::parse(text).unwrap(), 3, 1_000_000).unwrap();
        let refs = recording.header().counts.references;
        let each = bytes_of(&recording) as f64 / refs as f64;
        assert!(each < most, "{text}: {each} bytes per reference");
    }
}

#[test]
fn a_library_executes_each_program_once() {
    let library = Library::new();
    let builtin = small("mergesort");
    let barrier = Barrier::new(4);
    let threads: Vec<Recording> = std::thread::scope(|scope| {
        let get = || {
            barrier.wait();
            library.recording(&builtin, 1, 50_000).unwrap()
        };
        let handles: Vec<_> = (0..4).map(|_| scope.spawn(get)).collect();
        handles.into_iter().map(|h| h.join().unwrap()).collect()
    });
    assert_eq!(library.len(), 1);
    let same = |r: &Recording| std::ptr::eq(r.index(), threads[0].index());
    assert!(threads.iter().all(same));
    let other = library.recording(&builtin, 2, 50_000).unwrap();
    assert!(!same(&other));
    assert_eq!(library.len(), 2);
}
