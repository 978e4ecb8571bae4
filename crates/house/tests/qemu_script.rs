//! `scripts/qemu.sh` where a build of QEMU cannot be had: what it says, and what it leaves. The programs that
//! it calls are stand-ins, so that nothing is fetched.

use std::{fs, path::PathBuf, process::Command};

use crate::stand_ins::{Scripts, program};

/// What stands for apt-get. `$FAULT` says what fails; a source is served as two files without content.
const APT_GET: &str = r#"#!/bin/bash
. /etc/os-release
case "$FAULT $*" in
    no-mirror\ *indextargets*) ;;
    *indextargets*) echo "$VERSION_CODENAME http://mirror.example/debian/" ;;
    no-network\ *update*)
        echo "E: Failed to fetch http://mirror.example/debian/dists/trixie/InRelease" >&2
        exit 100 ;;
    *print-uris*) echo "'http://mirror.example/qemu.tar.xz' qemu.tar.xz 41000000 SHA256:0" ;;
    no-file\ *download-only*)
        echo "E: Failed to fetch http://mirror.example/debian/pool/qemu.tar.xz 404" >&2
        exit 100 ;;
    *download-only*) touch qemu.dsc qemu.tar.xz ;;
    no-meson\ *download*) exit 100 ;;
    *download*) touch meson.deb ;;
    no-packages\ *install*) exit 100 ;;
esac
"#;

/// What stands for other programs: their names and what they do.
const OTHERS: [(&str, &str); 8] = [
    (
        "apt-cache",
        "[ \"$FAULT\" = no-version ] || echo 'Version: 1:10.0.13+ds-0+deb13u1'",
    ),
    // A package is installed, unless none can be.
    (
        "dpkg-query",
        "[ \"$FAULT\" = no-packages ] || echo 'install ok installed'",
    ),
    ("dpkg-deb", "mkdir -p python/usr/bin"),
    (
        "dpkg-source",
        "[ \"$FAULT\" != no-unpacking ] && mkdir source && cp \"$FAKES/configure\" source && \
         touch source/COPYING source/COPYING.LIB source/LICENSE",
    ),
    // QEMU's own, in the unpacked source.
    (
        "configure",
        "[ \"$FAULT\" != no-glib ] || { echo 'ERROR: glib-2.56 gthread-2.0 is required'; exit 1; }",
    ),
    (
        "ninja",
        "[ \"$FAULT\" != no-memory ] || { echo 'cc: fatal error: Killed'; exit 1; }; \
         [ \"$FAULT\" = no-program ] || cp \"$FAKES/qemu\" qemu-x86_64",
    ),
    ("strip", "true"),
    (
        "qemu",
        "[ \"$FAULT\" = no-plugins ] || printf 'usage\\n-plugin\\n'",
    ),
];

/// The script with stand-ins for the programs that it calls.
struct Place(Scripts);

impl Place {
    fn new() -> Self {
        let others = OTHERS.map(|(name, does)| (name, format!("#!/bin/bash\n{does}\n")));
        Self(Scripts::new(APT_GET, &others))
    }

    fn tools(&self) -> PathBuf {
        self.0.cache().join("tools")
    }

    /// The status, what is printed and what is said of a call with a fault.
    fn call(&self, fault: &str, words: &[&str]) -> (Option<i32>, String, String) {
        self.0.call("scripts/qemu.sh", fault, words)
    }

    /// Folders of QEMUs in the cache.
    fn built(&self) -> Vec<String> {
        let found = fs::read_dir(self.tools()).into_iter().flatten().flatten();
        let names = found.filter_map(|f| f.file_name().into_string().ok());
        names.filter(|name| name.starts_with("qemu-")).collect()
    }
}

#[test]
fn what_is_missing_is_said_and_nothing_is_left() {
    for (fault, says) in [
        (
            "no-mirror",
            "apt has no mirror of Debian here, so the source of QEMU cannot be had. Otherwise name a QEMU",
        ),
        (
            "no-network",
            "the lists of packages of trixie cannot be had. Is there a network? Otherwise",
        ),
        ("no-version", "Debian's trixie has no source of QEMU"),
        ("no-packages", "a build of QEMU needs the packages above"),
        (
            "no-file",
            "the mirror does not serve the source of QEMU 10.0.13+ds-0+deb13u1",
        ),
        (
            "no-meson",
            "the mirror does not serve meson and python3-pycotap",
        ),
        (
            "no-unpacking",
            "the source of QEMU 10.0.13+ds-0+deb13u1 cannot be unpacked",
        ),
        (
            "no-glib",
            "QEMU's configure failed; installed should be: build-essential",
        ),
        ("no-memory", "the build of QEMU failed"),
        ("no-program", "the build of QEMU made no program"),
        (
            "no-plugins",
            "QEMU 10.0.13+ds-0+deb13u1 was built, but without plugins",
        ),
    ] {
        let place = Place::new();
        let (status, printed, said) = place.call(fault, &["build", "trixie"]);
        assert_eq!(status, Some(1), "{fault}: {said}");
        assert!(said.contains(says), "{fault}: {said}");
        assert_eq!(printed, "", "{fault}");
        assert!(!said.contains("mirror.example"), "{fault}: {said}");
        let left = place.built();
        assert!(
            left.iter().all(|name| name == "qemu.lock"),
            "{fault}: {left:?}"
        );
        assert_eq!(place.call("", &["path"]).0, Some(1), "{fault}");
    }
}

#[test]
fn what_is_built_is_found_until_its_program_changes() {
    let place = Place::new();
    let build = || {
        let (status, printed, said) = place.call("", &["build", "trixie"]);
        assert_eq!(status, Some(0), "{said}");
        (PathBuf::from(printed.trim_end()), said)
    };
    let (qemu, said) = build();
    let folder = place.tools().join("qemu-10.0.13+ds-0+deb13u1");
    assert_eq!(qemu, folder.join("bin/qemu-x86_64"));
    assert!(
        said.contains("built ") && folder.join("COPYING").is_file(),
        "{said}"
    );
    let path = |words: &[&str]| place.call("", words);
    for words in [&["path"][..], &["path", "trixie"]] {
        assert_eq!(path(words).1.trim_end(), qemu.display().to_string());
    }
    assert_eq!(path(&["path", "bookworm"]).0, Some(1));
    assert!(!build().1.contains("built "), "built twice");

    // Its source goes with it, if it is the same still.
    let sources = place.0.folder().join("sources");
    let built = qemu.display().to_string();
    let folder_of_sources = sources.display().to_string();
    let source = |fault| place.call(fault, &["source", &built, &folder_of_sources]);
    let (status, printed, said) = source("");
    assert_eq!(status, Some(0), "{said}");
    let tar = sources.join("qemu-10.0.13+ds-0+deb13u1-source.tar");
    assert_eq!(printed.trim_end(), tar.display().to_string());
    let listed = Command::new("tar")
        .arg("-tf")
        .arg(&tar)
        .output()
        .expect("tar runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for name in ["qemu.dsc", "qemu.tar.xz", "piebald.diff"] {
        assert!(listed.contains(name), "{listed}");
    }
    let (status, _, said) = source("no-file");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("does not serve the source"), "{said}");

    // Somebody else's program, a build that was ended, and one that was made in another way.
    program(&qemu, "#!/bin/bash\ntrue\n");
    assert_eq!(path(&["path"]).0, Some(1));
    assert!(build().1.contains("built "));
    let facts = folder.join("complete");
    fs::remove_file(&facts).expect("removed");
    assert_eq!(path(&["path"]).0, Some(1));
    fs::create_dir(place.tools().join("qemu-9.partial")).expect("a folder");
    assert!(build().1.contains("built "));
    assert!(!place.built().iter().any(|name| name.ends_with("partial")));
    let text = fs::read_to_string(&facts).expect("a file");
    fs::write(&facts, text.replace("\nrecipe ", "\nrecipe 0")).expect("written");
    assert_eq!(path(&["path"]).0, Some(1));
    assert!(build().1.contains("built "));
}

#[test]
fn wrong_words_are_refused() {
    let place = Place::new();
    for (words, says) in [
        (
            &["make"][..],
            "\"make\": allowed: build, path, source, --help",
        ),
        (&[], "\"\": allowed: build, path, source, --help"),
        (
            &["source", "/bin/true"],
            "source: needed are the program and a folder",
        ),
        (
            &["source", "/bin/true", "x"],
            "/bin/true: no program that was built by this script",
        ),
        (
            &["build", "Trixie!"],
            "suite \"Trixie!\": allowed: a suite of Debian, such as trixie",
        ),
        (&["path", "trixie", "sid"], "path: at most one SUITE"),
    ] {
        let (status, _, said) = place.call("", words);
        assert_eq!(status, Some(2), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!place.tools().exists(), "{words:?}");
    }
}
