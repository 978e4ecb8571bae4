//! What a boot's counts follow from, and boots that were made before.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use piebald_store::{Store, digest, digest_of_file};
use serde::Serialize;

use crate::boot::{BootError, Outcome};

/// Sums of what the boots of a scenario have in common.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sums {
    /// The script that starts QEMU.
    pub script: String,
    pub kernel: String,
    pub qemu: String,
    pub plugin: String,
    /// A preset's name, or the sum of a file.
    pub machine: String,
    /// The files of `/data`.
    pub data: Option<String>,
    /// What the disk begins with that programs write to.
    pub trees: Option<String>,
}

/// All that the counts of a boot follow from.
#[derive(Serialize)]
struct Identity<'a> {
    host: &'static str,
    #[serde(flatten)]
    sums: &'a Sums,
    /// Sum of the initial file system: programs, their libraries, modules, and what the guest does.
    initial: &'a str,
    /// How the guest is started.
    words: &'a [String],
}

impl Sums {
    /// The text of a boot.
    pub(crate) fn identity(&self, initial: &str, words: &[String]) -> String {
        let identity = Identity {
            host: "guest",
            sums: self,
            initial,
            words,
        };
        // Texts alone: nothing of it can fail.
        serde_json::to_string(&identity).unwrap_or_default()
    }
}

/// The counts of a boot with this text: from the store, or of `boot`, which are kept there. What fails is not
/// kept.
pub(crate) fn keep(
    store: &Store,
    text: &str,
    stop: Option<&AtomicBool>,
    boot: impl FnOnce() -> Result<Outcome, BootError>,
) -> Result<Outcome, BootError> {
    if let Some(found) = store.get(text) {
        return Ok(found);
    }
    if store.only_looks() {
        return Err(BootError::NotKept);
    }
    let lease = store.lease(text, stop);
    // It may have waited for another process's boot, of minutes.
    if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
        return Err(BootError::Stopped);
    }
    // Somebody else has made it in the meantime.
    if let Some(found) = store.get(text) {
        return Ok(found);
    }
    let began = Instant::now();
    let outcome = boot()?;
    store.put(text, &outcome, began.elapsed());
    drop(lease);
    Ok(outcome)
}

/// The sum of a file, or of a folder: names, rights and contents of all that lies in it.
pub(crate) fn sum_of(path: &Path) -> Result<String, BootError> {
    let sum = || {
        if !path.is_dir() {
            return digest_of_file(path);
        }
        let mut lines = String::new();
        add(path, Path::new(""), &mut lines)?;
        Ok(digest(lines.as_bytes()))
    };
    sum().map_err(|source| BootError::File {
        path: path.to_owned(),
        source,
    })
}

/// A line for each of what lies in a folder, in the order of their names.
fn add(root: &Path, below: &Path, lines: &mut String) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let mut names: Vec<PathBuf> = fs::read_dir(root.join(below))?
        .map(|entry| Ok(below.join(entry?.file_name())))
        .collect::<io::Result<_>>()?;
    names.sort();
    for name in names {
        let path = root.join(&name);
        let meta = path.symlink_metadata()?;
        let what = if meta.is_symlink() {
            format!("link {:?}", fs::read_link(&path)?)
        } else if meta.is_dir() {
            "folder".to_owned()
        } else if meta.is_file() {
            digest_of_file(&path)?
        } else {
            // A device, a pipe or a socket.
            format!("special {}", meta.rdev())
        };
        let rights = meta.permissions().mode();
        *lines += &format!("{name:?} {rights:o} {} {} {what}\n", meta.uid(), meta.gid());
        if meta.is_dir() {
            add(root, &name, lines)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn sums() -> Sums {
        let [script, kernel, qemu, plugin] = ["s", "k", "q", "p"].map(str::to_owned);
        Sums {
            script,
            kernel,
            qemu,
            plugin,
            machine: "w3540".to_owned(),
            data: None,
            trees: Some("t".to_owned()),
        }
    }

    #[test]
    fn a_boot_is_another_one_if_anything_of_it_is() {
        let words = ["--cpus", "2"].map(str::to_owned);
        let of = |sums: &Sums| sums.identity("i", &words);
        let one = of(&sums());
        assert_eq!(one, of(&sums()));
        let changed: [fn(&mut Sums); 7] = [
            |s| s.script.push('x'),
            |s| s.kernel.push('x'),
            |s| s.qemu.push('x'),
            |s| s.plugin.push('x'),
            |s| s.machine.push('x'),
            |s| s.data = Some("t".to_owned()),
            |s| s.trees = None,
        ];
        let mut all = vec![one, sums().identity("j", &words), sums().identity("i", &[])];
        for change in changed {
            let mut other = sums();
            change(&mut other);
            all.push(of(&other));
        }
        let n = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), n);
    }

    #[test]
    fn what_was_booted_is_not_booted_again_but_what_failed_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), "e").expect("a store");
        let results = crate::study::tests::outcome;
        let fails = || Err(BootError::Results("torn".to_owned()));
        assert!(keep(&store, "a", None, fails).is_err());
        let looks = Store::to_look(folder.path(), "e");
        let none = keep(&looks, "a", None, || panic!("boots"));
        assert!(matches!(none, Err(BootError::NotKept)));
        let made = keep(&store, "a", None, || Ok(results())).expect("boots");
        assert_eq!(made, results());
        for store in [&store, &looks] {
            let found = keep(store, "a", None, || panic!("boots again"));
            assert_eq!(found.expect("is there"), results());
        }
        assert!(keep(&store, "b", None, fails).is_err());
        assert_eq!((store.tally().found, store.tally().kept), (1, 1));
    }

    #[test]
    fn who_waits_for_the_boot_of_another_and_is_stopped_boots_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::open(folder.path(), "e").expect("a store");
        let _another = store.lease("a", None).expect("a lease");
        let stop = AtomicBool::new(true);
        let stopped = keep(&store, "a", Some(&stop), || panic!("boots"));
        assert!(matches!(stopped, Err(BootError::Stopped)), "{stopped:?}");
    }

    #[test]
    fn the_sum_of_a_folder_is_that_of_all_that_lies_in_it() {
        let made = |change: &dyn Fn(&Path)| {
            let folder = tempfile::tempdir().expect("a folder");
            let at = folder.path();
            fs::create_dir(at.join("sub")).expect("made");
            fs::write(at.join("sub/a"), "1").expect("written");
            fs::write(at.join("b"), "2").expect("written");
            symlink("b", at.join("link")).expect("made");
            change(at);
            sum_of(at).expect("read")
        };
        let same = made(&|_| {});
        assert_eq!(same, made(&|_| {}));
        let changes: [&dyn Fn(&Path); 5] = [
            &|at| fs::write(at.join("sub/a"), "3").expect("written"),
            &|at| fs::rename(at.join("b"), at.join("c")).expect("moved"),
            &|at| fs::create_dir(at.join("empty")).expect("made"),
            &|at| {
                fs::remove_file(at.join("link")).expect("removed");
                symlink("sub", at.join("link")).expect("made");
            },
            &|at| {
                let mut rights = at.join("b").metadata().expect("there").permissions();
                rights.set_readonly(true);
                fs::set_permissions(at.join("b"), rights).expect("set");
            },
        ];
        for change in changes {
            assert_ne!(same, made(change));
        }
        let missing = sum_of(Path::new("/no/such"))
            .expect_err("missing")
            .to_string();
        assert!(missing.starts_with("/no/such: "), "{missing}");
    }
}
