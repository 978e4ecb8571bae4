//! Closed formulas: bytes of every message times the links on its way, over what all links carry.

use piebald_units::Bytes;

use super::*;

/// A byte a nanosecond, and a cycle of a nanosecond.
const RATE: u64 = 1_000_000_000;
const NS: Q8 = 1000 << 8;
/// Of a hop, there and back.
const HOP: u32 = 10;

fn square(probes: Probes) -> LinkSpec {
    LinkSpec {
        hops: [[0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0]]
            .map(|row| row.to_vec())
            .to_vec(),
        hop_latency: HOP,
        link_bytes_per_second: Some(Bytes(RATE)),
        probes,
        ..LinkSpec::default()
    }
}

fn links(spec: &LinkSpec, sockets: usize) -> Links {
    Links::new(spec, sockets, NS).unwrap_or_else(|e| panic!("{e}"))
}

fn pairs() -> impl Iterator<Item = (u16, u16)> {
    (0..16).map(|i| (i / 4, i % 4))
}

#[test]
fn a_message_that_meets_nobody_takes_its_latency_and_no_more() {
    for line in [0, 1] {
        for (a, b) in pairs() {
            let mut links = links(&square(Probes::None), 4);
            let now = 1000 * NS;
            let asked = links.ask(a, b, line, now);
            assert_eq!((asked.leaves, asked.heard), (now, now));
            assert_eq!(links.bring(b, a, line, 2 * now), 2 * now);
            let way = Transfer {
                from: a,
                to: b,
                home: 3,
                leaves_group: true,
            };
            assert_eq!(links.transfer(way, line, 3 * now), 3 * now);
        }
    }
}

#[test]
fn an_answer_to_a_probe_has_gone_from_the_home_to_a_holder_and_to_the_one_that_asks() {
    // So fast that messages do not meet: a picosecond a byte.
    let spec = LinkSpec {
        link_bytes_per_second: Some(Bytes(1000 * RATE)),
        ..square(Probes::Broadcast)
    };
    let hop = |a: u16, b: u16| spec.hops_between(a.into(), b.into());
    for (socket, home) in pairs() {
        let mut links = links(&spec, 4);
        let now = 1000 * NS;
        let farthest = (0..4)
            .filter(|via| *via != socket)
            .map(|via| hop(socket, home) + hop(home, via) + hop(via, socket))
            .max()
            .expect("three others");
        let heard = links.ask(socket, home, 0, now).heard;
        let late = heard - (now + Q8::from(farthest * HOP / 2) * NS);
        assert!(late < NS / 10, "{socket} {home}: {late}");
    }
}

/// When the last of `n` lines from 0 to a socket arrives, all asked for at once.
fn last(to: u16, n: u64, line: impl Fn(u64) -> Line) -> u64 {
    let mut links = links(&square(Probes::None), 4);
    let ends = (0..n).map(|i| links.bring(0, to, line(i), LINE_ANSWER * NS));
    ends.max().unwrap_or(0) / NS
}

#[test]
fn lines_follow_one_another_over_each_link_of_their_way() {
    assert_eq!(last(1, 50, |i| i as Line), 50 * LINE_ANSWER);
    // Cut through: the second link does not double the time.
    assert_eq!(last(3, 50, |_| 0), 50 * LINE_ANSWER);
    // Odd lines go the other way round.
    assert_eq!(last(3, 50, |i| i as Line), 25 * LINE_ANSWER);
    assert_eq!(last(0, 50, |i| i as Line), LINE_ANSWER);
}

#[test]
fn what_goes_over_two_hops_is_in_the_way_on_both() {
    let mut links = links(&square(Probes::None), 4);
    // Even lines from 0 to 3 go by socket 1.
    let ready = LINE_ANSWER * NS;
    links.bring(0, 3, 0, ready);
    for (from, to, behind) in [(0, 1, true), (1, 3, true), (0, 2, false), (2, 3, false)] {
        let mut links = links.clone();
        let end = links.bring(from, to, 2, ready);
        let expected = if behind { 2 * ready } else { ready };
        assert_eq!(end, expected, "{from} to {to}");
    }
}

/// Bytes on links of one message of each kind, all homes and sockets alike: the mean way in a
/// square is one hop, its own socket included. A broadcast crosses three links; four hops lie
/// between a socket and the three that answer to it.
const READ: u64 = REQUEST + LINE_ANSWER + ANSWER;
const PROBED: u64 = 3 * REQUEST + 4 * ANSWER;

/// Requests that a socket has under way at once: more than cores have, so that every link is busy.
const UNDER_WAY: usize = 128;
const MESSAGES: u64 = 20_000;

/// Nanoseconds until every socket has done something for every home often; the next begins when
/// one of those under way ends, as `each` says of the time at which it begins.
fn all_to_all(probes: Probes, mut each: impl FnMut(&mut Links, (u16, u16), Line, Q8) -> Q8) -> f64 {
    let mut links = links(&square(probes), 4);
    let mut ends = vec![0; 4 * UNDER_WAY];
    let mut random = 0x2545_F491_4F6C_DD1Du64;
    for _ in 0..MESSAGES {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let first = (0..ends.len()).min_by_key(|i| ends[*i]).unwrap_or(0);
        let pair = ((first / UNDER_WAY) as u16, (random >> 40 & 3) as u16);
        ends[first] = each(&mut links, pair, (random >> 20) as Line, ends[first]);
    }
    ends.into_iter().max().unwrap_or(0) as f64 / NS as f64
}

/// Bytes of a message, times the messages of [`all_to_all`], over eight links.
fn formula(bytes: u64) -> f64 {
    (bytes * MESSAGES) as f64 / 8.0
}

fn near(found: f64, expected: f64) {
    let off = found / expected - 1.0;
    // Chance leaves a link idle now and then.
    assert!(
        (-0.01..0.06).contains(&off),
        "{found} ns, {expected} ns by the formula"
    );
}

fn read(links: &mut Links, (socket, home): (u16, u16), line: Line, now: Q8) -> Q8 {
    let asked = links.ask(socket, home, line, now);
    links
        .bring(home, socket, line, asked.leaves + 100 * NS)
        .max(asked.heard)
}

#[test]
fn reads_of_all_from_all_take_what_their_messages_weigh() {
    near(all_to_all(Probes::None, read), formula(READ));
    near(all_to_all(Probes::Broadcast, read), formula(READ + PROBED));
}

#[test]
fn a_square_of_opterons_carries_about_what_is_published() {
    // Conway and Hughes, The AMD Opteron Northbridge Architecture, IEEE Micro 27(2), 2007, table
    // of topologies: 14.9 GB/s all to all, data alone, for a square of four with 16-bit links at
    // 2 GT/s, 4 GB/s in each direction. Flow control and the packets' checksums, which take the
    // rest, are not modelled.
    let ns = all_to_all(Probes::Broadcast, read);
    let gigabytes = 4.0 * (64 * MESSAGES) as f64 / ns;
    assert!((14.9..14.9 * 1.16).contains(&gigabytes), "{gigabytes} GB/s");
}

#[test]
fn upgrades_take_what_their_messages_weigh() {
    let found = all_to_all(Probes::Broadcast, |links, (socket, home), line, now| {
        let way = Upgrade {
            socket,
            home,
            alone: true,
        };
        links.upgrade(way, line, now).heard
    });
    near(found, formula(REQUEST + ANSWER + PROBED));
}

#[test]
fn what_is_written_back_takes_link_time_from_what_is_read() {
    // Two to one, as a triad's.
    let found = all_to_all(Probes::None, |links, (socket, home), line, now| {
        if line % 2 == 0 {
            links.write(socket, home ^ 1, line / 2, now);
        }
        read(links, (socket, home), line, now)
    });
    near(found, formula(READ + (LINE_REQUEST + ANSWER) / 2));
}

#[test]
fn an_upgrade_that_nobody_need_hear_of_goes_out_only_where_all_are_asked() {
    let way = |alone| Upgrade {
        socket: 0,
        home: 1,
        alone,
    };
    for (probes, alone, asks) in [
        (Probes::None, true, false),
        (Probes::None, false, true),
        (Probes::Broadcast, true, true),
    ] {
        let mut links = links(&square(probes), 4);
        links.upgrade(way(alone), 0, 0);
        let next = links.ask(0, 1, 0, 0).leaves;
        assert_eq!(next > 0, asks, "{probes:?} {alone}");
    }
}

#[test]
fn a_bus_carries_transfers_once_in_a_socket_and_on_both_sides_between_two() {
    let spec = LinkSpec {
        hops: vec![vec![0, 0], vec![0, 0]],
        socket_bus_bytes_per_second: Some(Bytes(RATE)),
        socket_bus_transfers: true,
        ..LinkSpec::default()
    };
    let mut links = links(&spec, 2);
    let way = |from, to, leaves_group| Transfer {
        from,
        to,
        home: 0,
        leaves_group,
    };
    let ready = 100 * NS;
    assert_eq!(links.transfer(way(0, 0, false), 0, ready), ready);
    assert_eq!(links.transfer(way(0, 0, true), 0, ready), ready);
    assert_eq!(links.transfer(way(0, 0, true), 0, ready), ready + 64 * NS);
    // The bus of socket 1 is free, that of socket 0 is not.
    assert_eq!(links.clone().bring(0, 1, 0, ready), ready);
    assert_eq!(links.transfer(way(0, 1, true), 0, ready), ready + 128 * NS);
    assert_eq!(links.transfer(way(1, 1, true), 0, ready), ready);
    assert!(links.bus_carries_transfers());
}

#[test]
fn rates_and_hops_that_nothing_has_are_refused_by_name() {
    let refused = |spec: LinkSpec, says: &str| {
        let error = Links::new(&spec, 4, NS)
            .map(|_| ())
            .expect_err("refused")
            .to_string();
        assert!(error.contains(says), "{error}");
    };
    let none = |key: fn(&mut LinkSpec) -> &mut Option<Bytes>| {
        let mut spec = square(Probes::None);
        *key(&mut spec) = Some(Bytes(0));
        spec
    };
    refused(
        none(|s| &mut s.link_bytes_per_second),
        "links.link_bytes_per_second = 0B: more than 0",
    );
    refused(
        none(|s| &mut s.socket_bus_bytes_per_second),
        "links.socket_bus_bytes_per_second = 0B: more than 0",
    );
    let mut spec = square(Probes::None);
    spec.hops[0][3] = 3;
    refused(spec, "links.hops = 3 from 0 to 3: the number of links");
    let mut spec = square(Probes::None);
    spec.hops.pop();
    refused(spec, "4 rows of 4 numbers");
}
