//! Processes, their descriptors and what they share.

use super::*;

fn at(offset: u64) -> Open {
    Open {
        offset,
        ..Open::begun(What::Elsewhere)
    }
}

#[test]
fn a_fork_shares_offsets_but_not_descriptors() {
    let mut p = Processes::default();
    p.begin(1).expect("room");
    p.open(1, 3, at(0), false).expect("room");
    p.fork(1, 2, Shares::default()).expect("room");
    p.get(2, 3).expect("inherited").offset = 100;
    assert_eq!(p.get(1, 3).expect("open").offset, 100);
    p.close(1, 3);
    assert!(p.get(1, 3).is_none());
    assert_eq!(p.get(2, 3).expect("still open").offset, 100);
    p.validate();
}

#[test]
fn threads_share_descriptors_until_one_runs_another_program() {
    let mut p = Processes::default();
    p.begin(1).expect("room");
    p.fork(1, 2, Shares::ALL).expect("room");
    p.open(2, 3, at(7), true).expect("room");
    assert_eq!(p.get(1, 3).expect("shared").offset, 7);
    p.exec(2).expect("room");
    assert!(p.get(2, 3).is_none());
    assert!(p.get(1, 3).is_some());
    p.validate();
}

#[test]
fn a_child_of_another_parent_gets_what_that_one_had() {
    let mut p = Processes::default();
    p.begin(1).expect("room");
    p.begin(2).expect("room");
    for (pid, offset) in [(1, 10), (2, 20)] {
        p.open(pid, 3, at(offset), false).expect("room");
        p.open(pid, 4, at(offset), true).expect("room");
        p.open(pid, 5, at(offset), false).expect("room");
    }
    // Taken for a child of 1, it closes a descriptor, opens one and runs another program.
    p.guess_fork(1, 7, Shares::default()).expect("room");
    p.close(7, 5);
    p.open(7, 6, at(60), false).expect("room");
    p.exec(7).expect("room");
    p.fork_known(2, 7, Shares::default()).expect("room");
    let mut offset = |fd| p.get(7, fd).map(|open| open.offset);
    assert_eq!(
        [3, 4, 5, 6].map(&mut offset),
        [Some(20), None, None, Some(60)]
    );
    p.get(7, 3).expect("inherited").offset = 25;
    assert_eq!(p.get(2, 3).expect("shared").offset, 25);
    p.validate();
}

#[test]
fn a_thread_of_another_process_gets_its_table() {
    let mut p = Processes::default();
    p.begin(1).expect("room");
    p.begin(2).expect("room");
    p.open(1, 3, at(10), false).expect("room");
    p.open(2, 3, at(20), false).expect("room");
    p.guess_fork(1, 7, Shares::ALL).expect("room");
    p.fork_known(2, 7, Shares::ALL).expect("room");
    assert_eq!(p.get(7, 3).expect("shared").offset, 20);
    p.close(7, 3);
    assert!(p.get(2, 3).is_none());
    assert!(p.get(1, 3).is_some());
    // One that began alone brings what it has opened.
    p.begin(8).expect("room");
    p.open(8, 9, at(90), false).expect("room");
    p.fork_known(2, 8, Shares::ALL).expect("room");
    assert_eq!(p.get(2, 9).expect("brought").offset, 90);
    p.validate();
}

#[test]
fn threads_are_in_one_directory_and_children_in_their_own() {
    let mut p = Processes::default();
    p.begin(1).expect("room");
    p.fork(1, 2, Shares::ALL).expect("room");
    p.fork(1, 3, Shares::default()).expect("room");
    p.set_directory(2, b"/a".to_vec());
    assert_eq!([1, 2].map(|pid| p.directory(pid)), [Some(&b"/a"[..]); 2]);
    assert_eq!(p.directory(3), None);
    p.unshare_directory(2);
    p.set_directory(1, b"/b".to_vec());
    assert_eq!(p.directory(2), Some(&b"/a"[..]));
    // Taken for a child of 1, it is a thread of 2.
    p.guess_fork(1, 7, Shares::ALL).expect("room");
    p.fork_known(2, 7, Shares::ALL).expect("room");
    assert_eq!(p.directory(7), Some(&b"/a"[..]));
    // Its own words are known better.
    p.guess_fork(1, 8, Shares::default()).expect("room");
    p.set_directory(8, b"/c".to_vec());
    p.fork_known(2, 8, Shares::default()).expect("room");
    assert_eq!(p.directory(8), Some(&b"/c"[..]));
    p.validate();
}

#[test]
fn random_lives_of_processes_keep_the_counts() {
    let mut p = Processes::default();
    let mut state = 0x5eed_u64;
    let mut random = |n: u32| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as u32 % n
    };
    let shares = |n: u32| Shares {
        descriptors: n.is_multiple_of(2),
        directory: n.is_multiple_of(3),
    };
    for _ in 0..4000 {
        let (pid, other, fd, to) = (random(6), random(6), random(5), random(5));
        match random(15) {
            9 if !p.knows(other) && p.knows(pid) => {
                p.guess_fork(pid, other, shares(fd)).expect("room");
            }
            10 if p.knows(other) && p.knows(pid) && pid != other => {
                p.fork_known(pid, other, shares(to)).expect("room");
            }
            0 if !p.knows(pid) => p.begin(pid).expect("room"),
            1 if !p.knows(other) && p.knows(pid) => {
                p.fork(pid, other, shares(fd)).expect("room");
            }
            2 => p.end(pid),
            11 => p.set_directory(pid, vec![b'/']),
            12 => p.unshare_directory(pid),
            13 => p.unmap(pid, u64::from(fd)..u64::from(fd + to)),
            14 => {
                let addresses = u64::from(fd)..u64::from(fd + to);
                p.map(pid, addresses, FileKey(to), 0).expect("room");
            }
            3 => p.exec(pid).expect("room"),
            4 | 5 if p.knows(pid) => p.open(pid, fd, at(0), to % 2 == 0).expect("room"),
            6 => p.duplicate(pid, fd, to, false),
            7 => p.close(pid, fd),
            _ => p.set_close_on_exec(pid, |n| n == fd, true),
        }
        p.validate();
    }
    (0..6).for_each(|pid| p.end(pid));
    assert!(p.open.is_empty() && p.tables.is_empty() && p.places.is_empty());
}
