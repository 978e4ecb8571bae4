//! What a store promises: whole entries or none, nothing stale, nothing made twice.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};

use piebald_store::{Contents, Costs, Key, Store};

/// What an outcome took.
const TOOK: Duration = Duration::from_millis(1500);

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

fn open(folder: &Path) -> Store {
    Store::open(folder, "epoch").expect("a store")
}

/// All files of a store with an ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let parts = fs::read_dir(folder.join("v1")).expect("a folder");
    let mut files = Vec::new();
    for part in parts {
        for file in fs::read_dir(part.expect("a part").path()).expect("a part") {
            let path = file.expect("a file").path();
            if path.extension().is_some_and(|e| e == ending) {
                files.push(path);
            }
        }
    }
    files
}

#[test]
fn an_outcome_is_found_by_text_and_epoch_alone() {
    let folder = folder();
    let store = open(folder.path());
    assert_eq!(store.get::<u64>("a"), None);
    store.put("a", &7u64, TOOK);
    store.put("b", &u64::MAX, TOOK);
    let again = open(folder.path());
    assert_eq!(again.get("a"), Some(7u64));
    assert_eq!(again.get("b"), Some(u64::MAX));
    assert_eq!(again.get::<u64>("c"), None);
    let other = Store::open(folder.path(), "another").expect("a store");
    assert_eq!(other.get::<u64>("a"), None);
    assert_eq!((again.tally().found, store.tally().kept), (2, 2));
    // Parts of a key do not run into one another.
    assert_ne!(Key::new("ab", "c"), Key::new("a", "bc"));
}

#[test]
fn an_entry_that_is_not_whole_is_none() {
    let folder = folder();
    let store = open(folder.path());
    store.put("a", &vec![1u64; 100], TOOK);
    let path = files(folder.path(), "zst").pop().expect("an entry");
    let whole = fs::read(&path).expect("its bytes");
    assert!(store.get::<Vec<u64>>("a").is_some());
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).expect("written");
        assert_eq!(store.get::<Vec<u64>>("a"), None, "{cut} of {}", whole.len());
    }
    for at in 0..whole.len() {
        let mut torn = whole.clone();
        torn[at] ^= 0x10;
        fs::write(&path, &torn).expect("written");
        let read = store.get::<Vec<u64>>("a");
        assert!(read.is_none_or(|r| r == vec![1; 100]), "byte {at}");
    }
    // The entry of another text in its place.
    store.put("b", &vec![2u64; 3], TOOK);
    let other = files(folder.path(), "zst").into_iter().find(|p| *p != path);
    fs::copy(other.expect("another"), &path).expect("copied");
    assert_eq!(store.get::<Vec<u64>>("a"), None);
    store.put("a", &vec![1u64; 100], TOOK);
    assert!(store.get::<Vec<u64>>("a").is_some());
}

#[test]
fn of_many_who_want_an_outcome_one_makes_it() {
    let folder = folder();
    let made = AtomicU64::new(0);
    let want = |text: &str| {
        // A store of its own, as another process has.
        let store = open(folder.path());
        if let Some(found) = store.get::<u64>(text) {
            return found;
        }
        let _lease = store.lease(text, None).expect("a lease");
        store.get(text).unwrap_or_else(|| {
            let value = made.fetch_add(1, Ordering::Relaxed);
            store.put(text, &value, TOOK);
            value
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..50).for_each(|n| _ = want(&n.to_string())));
        }
    });
    assert_eq!(made.load(Ordering::Relaxed), 50);
    assert_eq!(files(folder.path(), "zst").len(), 50);
}

#[test]
fn who_waits_for_a_lease_can_be_stopped() {
    let folder = folder();
    let store = open(folder.path());
    let _held = store.lease("a", None).expect("a lease");
    let stop = AtomicBool::new(true);
    assert!(open(folder.path()).lease("a", Some(&stop)).is_none());
    assert!(store.lease("b", None).is_some());
}

#[test]
fn what_was_used_longest_ago_makes_room_first() {
    let folder = folder();
    let store = open(folder.path());
    for n in 0..10u64 {
        store.put(&n.to_string(), &n, TOOK);
    }
    let all = store.contents().expect("counted");
    assert_eq!(all.entries, 10);
    let none = store.keep(all.bytes).expect("kept");
    assert_eq!((none.removed, none.left), (Contents::default(), all));
    let half = store.keep(all.bytes / 2).expect("kept");
    assert!(
        half.left.bytes <= all.bytes / 2 && half.left.entries >= 4,
        "{half:?}"
    );
    assert_eq!(store.contents().expect("counted"), half.left);
    assert_eq!(store.keep(0).expect("kept").left, Contents::default());
}

#[test]
fn a_store_that_cannot_be_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let error = Store::open(&file, "e").err().expect("an error").to_string();
    assert!(error.contains("file"), "{error}");
}

#[test]
fn an_outcome_that_cannot_be_kept_is_no_reason_to_end() {
    let folder = folder();
    let store = open(folder.path());
    fs::remove_dir_all(folder.path()).expect("removed");
    fs::write(folder.path(), "").expect("a file in its place");
    store.put("a", &1u64, TOOK);
    let tally = store.tally();
    assert!(tally.kept == 0 && tally.problem.is_some(), "{tally}");
    fs::remove_file(folder.path()).expect("removed");
    fs::create_dir(folder.path()).expect("a folder again");
}

/// What cannot be read is not called missing.
#[test]
fn a_store_that_cannot_be_read_is_an_error() {
    let folder = folder();
    let refused = |at: &Path| Costs::read(at).expect_err("no store").to_string();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").expect("written");
    let said = refused(&file);
    assert!(said.contains("file/v1: "), "{said}");
    let (part, around) = (
        folder.path().join("v1/ab"),
        folder.path().join("v1/ab/cd.zst"),
    );
    fs::create_dir_all(&part).expect("made");
    // One that is torn is not there.
    fs::write(part.join("ef.zst"), "torn").expect("written");
    Costs::read(folder.path()).expect("a store");
    std::os::unix::fs::symlink(&around, &around).expect("made");
    let said = refused(folder.path());
    assert!(said.contains("v1/ab/cd.zst: "), "{said}");
}

#[test]
fn looking_makes_nothing_and_notes_what_was_looked_for() {
    let folder = folder();
    let nowhere = folder.path().join("none");
    let store = Store::to_look(&nowhere, "epoch");
    assert!(store.only_looks() && store.get::<u64>("a").is_none());
    store.put("a", &7u64, TOOK);
    assert_eq!(store.get::<u64>("a"), None);
    assert!(!nowhere.exists());
    let looked = store.looked();
    assert_eq!((looked.len(), looked[0].is_there), (1, false));
    assert!(
        Costs::read(&nowhere)
            .expect("nothing")
            .of(&looked[0])
            .is_none()
    );

    let kept = open(folder.path());
    kept.put("a", &7u64, TOOK);
    assert!(!kept.only_looks() && kept.looked().is_empty());
    let store = Store::to_look(folder.path(), "epoch");
    assert_eq!(store.get("a"), Some(7u64));
    let looked = store.looked();
    assert_eq!((looked.len(), looked[0].is_there), (1, true));
    assert_eq!(looked[0].seconds, Some(1.5));
    assert_eq!(looked[0].key, store.key("a"));
}

#[test]
fn what_a_run_took_is_known_when_other_code_made_it() {
    let folder = folder();
    open(folder.path()).put("a", &7u64, TOOK);
    let store = Store::to_look(folder.path(), "another");
    assert_eq!((store.get::<u64>("a"), store.get::<u64>("b")), (None, None));
    let costs = Costs::read(folder.path()).expect("a store");
    let mut known: Vec<_> = store.looked().iter().map(|look| costs.of(look)).collect();
    known.sort_by_key(Option::is_none);
    assert_eq!(known, [Some(Some(1.5)), None]);
}
