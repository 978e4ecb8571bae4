//! `scripts/guest.sh emulator`: which QEMU guests without a plugin get, where a newer one than the system's
//! can be had and where it cannot. The programs that it calls are stand-ins, so that nothing is fetched.

use std::{fs, path::PathBuf};

use crate::stand_ins::{Scripts, program};

/// What stands for apt-get: `$FAULT` says what fails, and each call is noted.
const APT_GET: &str = r#"#!/bin/bash
. /etc/os-release
echo "$*" >>"$FAKES/calls"
case "$FAULT $*" in
    no-mirror\ *indextargets*) ;;
    *indextargets*) echo "$VERSION_CODENAME http://mirror.example/debian/" ;;
    no-network\ *update*)
        echo "E: Failed to fetch http://mirror.example/debian/dists/x/InRelease Could not connect [IP: 192.0.2.1 80]" >&2
        exit 100 ;;
    no-file\ *download*) echo "E: Failed to fetch http://mirror.example/debian/pool/q.deb 404" >&2; exit 100 ;;
    *download*) touch qemu.deb ;;
esac
"#;

/// A QEMU of a version, which prints it and its options when it starts, unless `$FAULT` is `no-start`.
fn emulator(version: &str) -> String {
    format!(
        "#!/bin/bash\ncase $1 in --version) echo 'QEMU emulator version {version} (Debian)' ;; \
         *) [ \"$FAULT\" != no-start ] || {{ echo 'qemu: no firmware' >&2; exit 1; }}; \
         echo \"{version} $*\" ;; esac\n"
    )
}

/// The script, on a system that has this version.
struct Place(Scripts);

impl Place {
    fn new(version: &str) -> Self {
        let others = [
            (
                "apt-cache",
                "#!/bin/bash\n[ \"$FAULT\" = no-newer ] && v=1:7.2 || v=1:10.0.2+ds-2\necho \"  Candidate: $v\"\n"
                    .to_owned(),
            ),
            (
                "dpkg-deb",
                "#!/bin/bash\n[ \"$FAULT\" != no-unpacking ] || { echo 'dpkg-deb: no archive' >&2; exit 2; }\n\
                 mkdir -p usr/bin && cp \"$FAKES/newer\" usr/bin/qemu-system-x86_64\n"
                    .to_owned(),
            ),
            ("newer", emulator("10.0.2")),
            ("qemu-system-x86_64", emulator(version)),
        ];
        Self(Scripts::new(APT_GET, &others))
    }

    fn call(&self, fault: &str) -> (Option<i32>, String, String) {
        self.0.call("scripts/guest.sh", fault, &["emulator"])
    }

    fn store(&self) -> PathBuf {
        self.0.cache().join("guest")
    }

    /// Folders of emulators, whole or not.
    fn unpacked(&self) -> Vec<String> {
        let found = fs::read_dir(self.store()).into_iter().flatten().flatten();
        let names = found.filter_map(|f| f.file_name().into_string().ok());
        names
            .filter(|n| n.starts_with("qemu-") || n.ends_with(".partial"))
            .collect()
    }

    fn calls(&self) -> usize {
        let calls = fs::read_to_string(self.0.fakes().join("calls"));
        calls.map_or(0, |text| text.lines().count())
    }
}

#[test]
fn a_newer_emulator_is_unpacked_once_where_that_of_the_system_takes_turns() {
    let place = Place::new("7.2.22");
    let newer = place
        .store()
        .join("qemu-10.0.2+ds-2/usr/bin/qemu-system-x86_64");
    let expected = format!("{} 10.0.2 parallel\n", newer.display());
    let (status, printed, said) = place.call("");
    assert_eq!((status, printed), (Some(0), expected.clone()), "{said}");
    assert_eq!(place.unpacked(), ["qemu-10.0.2+ds-2"]);
    let calls = place.calls();
    assert_eq!(place.call("no-network").1, expected);
    assert_eq!(place.calls(), calls, "it was asked for again");
    // One that is damaged is unpacked anew.
    program(&newer, "");
    assert_eq!(place.call("").1, expected);
}

#[test]
fn a_system_whose_own_runs_in_parallel_fetches_nothing() {
    let place = Place::new("10.0.13");
    let (status, printed, said) = place.call("no-network");
    assert_eq!(status, Some(0), "{said}");
    assert_eq!(printed, "qemu-system-x86_64 10.0.13 parallel\n");
    assert_eq!(place.calls(), 0);
}

#[test]
fn without_a_newer_one_processors_take_turns_and_the_reason_is_said_and_kept() {
    for (fault, says) in [
        ("no-mirror", "apt's configuration has no archive of Debian"),
        (
            "no-network",
            "the lists of backports, which may have a newer QEMU, cannot be had:\n    E: Failed to fetch .../InRelease Could not connect\n",
        ),
        ("no-newer", "the backports have no QEMU from version 10 on"),
        (
            "no-file",
            "the backports do not serve QEMU 10.0.2+ds-2:\n    E: Failed to fetch .../q.deb 404\n",
        ),
        (
            "no-unpacking",
            "QEMU 10.0.2+ds-2 cannot be unpacked:\n    dpkg-deb: no archive\n",
        ),
        (
            "no-start",
            "QEMU 10.0.2+ds-2 of backports does not start here:\n    qemu: no firmware\n",
        ),
    ] {
        let place = Place::new("7.2.22");
        let (status, printed, said) = place.call(fault);
        assert_eq!(status, Some(0), "{fault}: {said}");
        assert_eq!(printed, "qemu-system-x86_64 7.2.22 in turns\n", "{fault}");
        assert!(said.contains(says), "{fault}: {said}");
        assert_eq!(place.unpacked(), [""; 0], "{fault}");
        // It is not asked for each time.
        let calls = place.calls();
        assert!(place.call("").2.contains(says), "{fault}");
        assert_eq!(place.calls(), calls, "{fault}");
    }
}

#[test]
fn what_is_named_must_be_an_emulator() {
    let place = Place::new("7.2.22");
    for named in ["/nonexistent", "/bin/true"] {
        let script = ("scripts/guest.sh", "");
        let variables = [("PIEBALD_QEMU_SYSTEM", named)];
        let (status, printed, said) = place.0.call_with(script, &["emulator"], &variables);
        assert_eq!((status, printed.as_str()), (Some(2), ""), "{said}");
        let says = format!("PIEBALD_QEMU_SYSTEM={named}: allowed: QEMU in system mode");
        assert!(said.contains(&says), "{said}");
    }
    program(&place.0.fakes().join("qemu-system-x86_64"), "#!/bin/bash\n");
    let (status, _, said) = place.call("");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("no QEMU in system mode: "), "{said}");
}

/// What an emulator is started with.
fn booted(place: &Place, options: &[&str]) -> String {
    let kernel = place.store().join("6.12.1-cloud-amd64");
    fs::create_dir_all(&kernel).expect("a folder");
    fs::write(kernel.join("complete"), "").expect("written");
    let initrd = place.0.folder().join("initrd");
    fs::write(&initrd, "").expect("written");
    let initrd = initrd.display().to_string();
    let words: Vec<&str> = ["boot", &initrd].iter().chain(options).copied().collect();
    let (status, printed, said) = place.0.call("scripts/guest.sh", "", &words);
    // It ends without the word of a guest.
    assert_eq!(status, Some(125), "{said}");
    printed
}

#[test]
fn processors_run_in_parallel_if_that_is_asked_for_and_there_is_no_plugin() {
    let place = Place::new("7.2.22");
    let old = booted(&place, &[]);
    assert!(
        old.starts_with("7.2.22 -M ") && old.contains("thread=single"),
        "{old}"
    );
    assert_eq!(place.call("").0, Some(0));
    // It is there, and was not asked for.
    let turns = booted(&place, &[]);
    assert!(
        turns.starts_with("7.2.22 -M ") && turns.contains("thread=single"),
        "{turns}"
    );
    let new = booted(&place, &["--parallel", "--cpus", "4"]);
    let data = place.store().join("qemu-10.0.2+ds-2/usr/share");
    let data = data.display();
    let expected = format!("10.0.2 -L {data}/qemu -L {data}/seabios -M ");
    assert!(new.starts_with(&expected), "{new}");
    assert!(
        new.contains("thread=multi") && new.contains("-smp 4"),
        "{new}"
    );
    for options in [
        ["--parallel", "--qemu", "-plugin", "--qemu", "x"],
        ["--parallel", "--qemu", "-icount", "--qemu", "shift=0"],
    ] {
        let turns = booted(&place, &options);
        assert!(
            turns.starts_with("7.2.22 -M ") && turns.contains("thread=single"),
            "{turns}"
        );
    }
}

/// A place whose emulator would run for an hour, and notes its number in the file `pid`, with what a boot needs.
fn where_guests_stay() -> Place {
    let place = Place::new("10.0.13");
    let here = |name: &str| place.0.fakes().join(name);
    let waits = "#!/bin/bash\ncase $1 in --version) echo 'QEMU emulator version 10.0.13' ;; \
                 *) echo $$ >\"$FAKES/new\" && mv \"$FAKES/new\" \"$FAKES/pid\"; exec sleep 3600 ;; esac\n";
    program(&here("qemu-system-x86_64"), waits);
    let kernel = place.store().join("6.12.1-x/boot");
    fs::create_dir_all(&kernel).expect("a folder");
    fs::write(kernel.join("vmlinuz-6.12.1-x"), "").expect("written");
    fs::write(place.store().join("6.12.1-x/complete"), "").expect("written");
    fs::write(here("initrd"), "").expect("written");
    place
}

/// What a script prints there. `BOOT` in it boots, `READY` waits for the emulator, and `END` says whether that is gone.
fn of_guests_that_stay(place: &Place, script: &str) -> String {
    let here = |name: &str| place.0.fakes().join(name).display().to_string();
    let _ = fs::remove_file(here("pid"));
    let guest = piebald_house::root().join("scripts/guest.sh");
    let boot = format!("bash {} boot {} --quiet", guest.display(), here("initrd"));
    let script = script
        .replace("BOOT", &boot)
        .replace("READY", "until [ -e $FAKES/pid ]; do sleep 0.05; done")
        .replace(
            "END",
            "for i in {1..600}; do kill -0 $(cat $FAKES/pid) 2>/dev/null || { echo gone; break; }; sleep 0.05; done",
        );
    fs::write(here("script"), script).expect("written");
    let variables = [("PIEBALD_GUEST_KERNEL", "6.12.1-x")];
    let (_, printed, said) = place.0.call_with((&here("script"), ""), &[], &variables);
    format!("{printed}{said}")
}

#[test]
fn a_signal_ends_the_emulator_too() {
    let place = where_guests_stay();
    for signal in ["TERM", "INT", "HUP"] {
        // Signals reach the script alone, as when a program that waits for it sends them. Without job control
        // jobs in the background take no SIGINT.
        let script = format!(
            "set -m\nBOOT & script=$!\nREADY\nkill -{signal} $script; wait $script; echo $?\nEND\n"
        );
        assert_eq!(
            of_guests_that_stay(&place, &script),
            "143\ngone\n",
            "{signal}"
        );
    }
}

#[test]
fn the_emulator_ends_with_whoever_holds_the_input_and_not_before() {
    let place = where_guests_stay();
    // SIGKILL ends the holder, who can do nothing about it.
    let script = "mkfifo $FAKES/input\nsleep 3600 >$FAKES/input & holder=$!; disown\n\
                  BOOT --until-eof <$FAKES/input >/dev/null 2>&1 &\nREADY\nsleep 0.3\n\
                  kill -0 $(cat $FAKES/pid) && echo there\nkill -9 $holder\nEND\n";
    assert_eq!(of_guests_that_stay(&place, script), "there\ngone\n");
    // An input that does not end is read no longer than the guest runs: its writer finds nobody.
    let ends = "#!/bin/bash\ncase $1 in --version) echo 'QEMU emulator version 10.0.13' ;; *) sleep 0.5 ;; esac\n";
    program(&place.0.fakes().join("qemu-system-x86_64"), ends);
    let script = "yes >$FAKES/input 2>/dev/null & writer=$!\nBOOT --until-eof <$FAKES/input >/dev/null 2>&1\n\
                  for i in {1..600}; do kill -0 $writer 2>/dev/null || { echo gone; break; }; sleep 0.05; done\n\
                  kill -9 $writer 2>/dev/null\n";
    assert_eq!(of_guests_that_stay(&place, script), "gone\n");
    let refused = "bash $GUEST boot $FAKES/initrd --until-eof; echo $?\n";
    let guest = piebald_house::root().join("scripts/guest.sh");
    let refused = refused.replace("$GUEST", &guest.display().to_string());
    let printed = of_guests_that_stay(&place, &refused);
    assert!(
        printed.starts_with("2\n") && printed.contains("allowed with --quiet"),
        "{printed}"
    );
}

#[test]
fn an_emulator_that_dies_before_the_guest_begins_is_started_again() {
    let place = where_guests_stay();
    // It dies so often as `deaths` says, before or after the guest's program begins.
    let dies = "#!/bin/bash\ncase $1 in --version) echo 'QEMU emulator version 10.0.13'; exit ;; esac\n\
                for word; do case $word in file:*) status=${word#file:} ;; esac; done\n\
                echo >>\"$FAKES/started\"\n[ ! -e \"$FAKES/late\" ] || echo begun >>\"$status\"\n\
                [ $(wc -l <\"$FAKES/started\") -gt $(cat \"$FAKES/deaths\") ] || kill -ABRT $$\n\
                printf 'begun\\nstatus 7\\n' >>\"$status\"\n";
    let here = |name: &str| place.0.fakes().join(name);
    program(&here("qemu-system-x86_64"), dies);
    for (deaths, late, status, started) in [
        (0, false, 7, 1),
        (2, false, 7, 3),
        (3, false, 1, 3),
        (1, true, 1, 1),
    ] {
        let _ = fs::remove_file(here("started"));
        let _ = fs::remove_file(here("late"));
        fs::write(here("deaths"), format!("{deaths}\n")).expect("written");
        if late {
            fs::write(here("late"), "").expect("written");
        }
        let printed = of_guests_that_stay(
            &place,
            "BOOT >/dev/null 2>&1; echo $?; wc -l <$FAKES/started\n",
        );
        let lines: Vec<&str> = printed.lines().map(str::trim).collect();
        let expected = [status.to_string(), started.to_string()];
        assert_eq!(lines, expected, "{deaths} deaths, late: {late}: {printed}");
    }
}
