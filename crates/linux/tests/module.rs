//! The module's files over a tree of plain ones.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use piebald_linux::{Module, ModuleError, Moved, Share, Wanted};
use piebald_policy::contract::Mode;

/// A tree as the module shows it with 16 colours, and its root.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("proc/piebald");
    fs::create_dir_all(&dir).unwrap();
    let free: String = (0..16).map(|c| format!("{c} {}\n", 100 + c)).collect();
    for (name, text) in [
        ("on", "1\n"),
        ("map", "12\n13\n14\n15 19\n"),
        ("colors", "16\n"),
        ("others", "4-15\n"),
        ("free", &free),
        ("pool_max", "16384\n"),
        (
            "counters",
            "anon_pages 7\nrecolored 5\nrecolor_failed 1\nrecolor_shared 3\n",
        ),
        ("check", "ok\n"),
        ("recolor", ""),
        ("error", ""),
    ] {
        fs::write(dir.join(name), text).unwrap();
    }
    make_set(&root, "web", "0-3", "hard", "/web\n");
    for (dir, file, text) in [
        ("proc/self", "mounts", "cgroup2 /cg cgroup2 rw 0 0\n"),
        ("proc/77", "cgroup", "0::/user/shell\n"),
        ("proc/self", "cgroup", "0::/user/test\n"),
        ("cg/user", "cgroup.subtree_control", "memory\n"),
        ("cg/user/test", "cgroup.procs", ""),
    ] {
        let dir = root.path().join(dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(file), text).unwrap();
    }
    root
}

/// A set as the module shows it.
fn make_set(root: &tempfile::TempDir, name: &str, colors: &str, mode: &str, groups: &str) {
    let dir = root.path().join("sys/kernel/config/piebald").join(name);
    fs::create_dir_all(&dir).unwrap();
    for (file, text) in [("colors", colors), ("mode", mode), ("groups", groups)] {
        fs::write(dir.join(file), text).unwrap();
    }
}

fn set_holds(root: &tempfile::TempDir, set: &str, name: &str) -> String {
    let dir = root.path().join("sys/kernel/config/piebald");
    fs::read_to_string(dir.join(set).join(name)).unwrap()
}

fn file(root: &tempfile::TempDir, name: &str) -> std::path::PathBuf {
    root.path().join("proc/piebald").join(name)
}

fn holds(root: &tempfile::TempDir, name: &str) -> String {
    fs::read_to_string(file(root, name)).unwrap()
}

/// From now on the module refuses what is written to a file: no device is as full as this one.
fn refuse(root: &tempfile::TempDir, name: &str, why: &str) {
    fs::remove_file(file(root, name)).unwrap();
    symlink("/dev/full", file(root, name)).unwrap();
    fs::write(file(root, "error"), why).unwrap();
}

#[test]
fn without_the_module_the_error_says_how_to_load_it() {
    let root = tempfile::tempdir().unwrap();
    let error = Module::attach(root.path()).expect_err("no module");
    assert!(matches!(error, ModuleError::NotLoaded { .. }));
    let text = error.to_string();
    assert!(
        text.contains("proc/piebald") && text.contains("piebald load"),
        "{text}"
    );
}

#[test]
fn the_status_is_what_the_files_say() {
    let root = tree();
    let status = Module::attach(root.path()).unwrap().status().unwrap();
    assert!(status.on);
    assert_eq!((status.colors, status.pool_max), (16, 16384));
    assert_eq!(status.map.unwrap().to_string(), "12,13,14,15^19");
    assert_eq!(status.others.to_string(), "4-15");
    let set = &status.sets[0];
    assert_eq!((set.name.as_str(), set.mode), ("web", Mode::Hard));
    assert_eq!(set.colors.to_string(), "0-3");
    assert_eq!(set.groups, ["/web"]);
    assert_eq!((status.free.len(), status.free[15]), (16, 115));
    assert_eq!(status.counters.get("anon_pages"), Some(7));
    assert_eq!(status.counters.get("no_such"), None);
}

#[test]
fn writes_have_the_form_that_the_module_reads() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    module.switch(false).unwrap();
    assert_eq!(holds(&root, "on"), "0");
    module.set_map(&"15-16,17^20".parse().unwrap()).unwrap();
    assert_eq!(holds(&root, "map"), "15\n16\n17 20\n");
    module.set_pool_max(4096).unwrap();
    assert_eq!(holds(&root, "pool_max"), "4096");
    // A tree of plain files counts nothing.
    let none = Moved {
        moved: 0,
        failed: 0,
        shared: 0,
    };
    assert_eq!(
        (module.recolor(77).unwrap(), holds(&root, "recolor")),
        (none, "77".into())
    );
}

#[test]
fn a_running_process_gets_a_group_with_a_set_beside_its_own() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    let colors = Wanted::colors("0-3,8").unwrap();
    module.give(77, &colors, Mode::Hard).unwrap();
    let set = "piebald-run-77";
    let found = ["colors", "mode", "attach"].map(|file| set_holds(&root, set, file));
    assert_eq!(found, ["0-3,8", "hard", "/user/piebald-run-77"]);
    let procs = root.path().join("cg/user/piebald-run-77/cgroup.procs");
    assert_eq!(fs::read_to_string(procs).unwrap(), "77");
}

#[test]
fn a_group_with_a_set_keeps_it_and_it_changes() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    fs::write(root.path().join("proc/77/cgroup"), "0::/web\n").unwrap();
    let share = Wanted::Share("12.5%".parse::<Share>().unwrap());
    module.give(77, &share, Mode::Hint).unwrap();
    assert_eq!(
        ["colors", "mode"].map(|file| set_holds(&root, "web", file)),
        ["12.5%", "hint"]
    );
    // The module prints colours, whatever was asked for.
    make_set(&root, "web", "4-5", "hint", "/web\n");
    module.take_away(77).unwrap();
    assert_eq!(set_holds(&root, "web", "colors"), "none");
}

#[test]
fn who_has_no_colors_cannot_lose_them() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    let error = module.take_away(77).expect_err("no set").to_string();
    assert!(
        error.contains("/user/shell") && error.contains("no colors of its own"),
        "{error}"
    );
    let error = module.take_away(78).expect_err("no process").to_string();
    assert!(error.contains("no process 78"), "{error}");
}

#[test]
fn sets_that_nobody_looked_after_end_with_the_next_program() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    make_set(&root, "piebald-run-5", "9", "hint", "");
    make_set(&root, "kept", "10", "hint", "");
    // Of a process that has made its set and not yet its group.
    make_set(&root, "piebald-run-78", "11", "hint", "");
    fs::create_dir(root.path().join("proc/78")).unwrap();
    module
        .give(77, &Wanted::colors("8").unwrap(), Mode::Hint)
        .unwrap();
    assert_eq!(set_holds(&root, "piebald-run-5", "colors"), "none");
    assert_eq!(set_holds(&root, "kept", "colors"), "10");
    assert_eq!(set_holds(&root, "piebald-run-78", "colors"), "11");
}

#[test]
fn sets_that_come_and_go_are_no_error() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    let sets = root.path().join("sys/kernel/config/piebald");
    let names: Vec<String> = (0..300).map(|n| format!("passing-{n}")).collect();
    for name in &names {
        make_set(&root, name, "9", "hint", "");
    }
    let all_gone = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        scope.spawn(|| {
            for name in &names {
                fs::rename(sets.join(name), root.path().join(name)).unwrap();
            }
            all_gone.store(true, Ordering::Relaxed);
        });
        let mut seen = Vec::new();
        while !all_gone.load(Ordering::Relaxed) {
            seen.push(module.sets().map_err(|error| error.to_string()));
        }
        seen.push(module.sets().map_err(|error| error.to_string()));
        seen
    });
    let seen: Result<Vec<_>, _> = seen.into_iter().collect();
    for sets in seen.expect("all looks are answered") {
        assert!(sets.iter().any(|set| set.name == "web"));
    }
}

#[test]
fn a_refused_write_tells_file_value_and_reason() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    let why = "while coloring is on";
    refuse(&root, "map", why);
    let error = module
        .set_map(&"12-13".parse().unwrap())
        .expect_err("refused");
    let ModuleError::Refused {
        path,
        value,
        why: said,
    } = &error
    else {
        panic!("{error}");
    };
    assert!(path.ends_with("proc/piebald/map"));
    assert_eq!((value.as_str(), said.as_str()), ("12; 13", why));
}

#[test]
fn a_failed_write_without_a_reason_tells_the_error() {
    let root = tree();
    refuse(&root, "on", "");
    let error = Module::attach(root.path()).unwrap().switch(true);
    assert!(matches!(error, Err(ModuleError::Io { .. })), "{error:?}");
}

#[test]
fn a_module_that_goes_away_is_said_to_be_gone() {
    let root = tree();
    let module = Module::attach(root.path()).unwrap();
    fs::remove_dir_all(root.path().join("proc")).unwrap();
    assert!(matches!(module.is_on(), Err(ModuleError::NotLoaded { .. })));
    let error = module.switch(true);
    assert!(
        matches!(error, Err(ModuleError::NotLoaded { .. })),
        "{error:?}"
    );
}

#[test]
fn files_of_another_version_are_named_with_their_line() {
    let root = tree();
    fs::write(file(&root, "free"), "0 5\nall\n").unwrap();
    let error = Module::attach(root.path()).unwrap().status();
    let text = error.expect_err("a wrong line").to_string();
    assert!(text.contains("proc/piebald/free:2: \"all\""), "{text}");
    fs::write(file(&root, "check"), "color 3: 5 listed, 6 counted\n").unwrap();
    let said = Module::attach(root.path()).unwrap().check().unwrap();
    assert_eq!(said.as_deref(), Some("color 3: 5 listed, 6 counted"));
    assert!(Path::new(&file(&root, "check")).exists());
}

#[test]
fn before_a_map_is_set_there_are_no_colors() {
    let root = tree();
    for (name, text) in [
        ("on", "0\n"),
        ("map", ""),
        ("colors", "0\n"),
        ("free", ""),
        ("others", "none\n"),
    ] {
        fs::write(file(&root, name), text).unwrap();
    }
    let module = Module::attach(root.path()).unwrap();
    let status = module.status().unwrap();
    assert_eq!((status.map, status.colors, status.on), (None, 0, false));
    assert_eq!(module.check().unwrap(), None);
}
