use limiter_common::counters::{LimitTraffic, Traffic};
use limiter_protocol::{
    AutomaticRate, ConnectionsStatus, Grouping, KeyStatus, OverloadStatus, QueueStatus,
    ShortageStatus, StandingStatus, StandingTraffic, counted_standings, testing::explanation,
};
use ratatui::{Terminal, backend::TestBackend, buffer::Cell, style::Color};

use super::{
    super::{
        keys::Action,
        testing::{automatic, limit, model, offender, snapshot},
    },
    *,
};

/// The lines of a screen of this size, without trailing spaces.
fn screen(model: &Model, (width, height): (u16, u16)) -> Vec<String> {
    let view = View {
        palette: Palette::plain(),
    };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, model)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content().chunks(width.into());
    let lines = rows.map(|row| row.iter().map(Cell::symbol).collect::<String>());
    lines.map(|line| line.trim_end().to_owned()).collect()
}

fn with_offenders() -> Model {
    let mut model = model(&[]);
    let drops = |first, second| {
        [
            offender("PacketsPerIPAddress", "192.0.2.1", first),
            offender(
                "NewConnectionsPerIPv6Range",
                "2001:db8:1234:5678::9",
                second,
            ),
        ]
    };
    model.take(snapshot(0, [0, 0], drops(0, 0)));
    model.take(snapshot(1, [500, 1_000], drops(5, 995)));
    model.take(snapshot(2, [3_000, 5_000], drops(1_005, 3_995)));
    model
}

#[test]
fn a_usual_terminal() {
    let model = with_offenders();
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[..9],
        [
            "limiter top  eth0 native                                               every 1 s",
            "passed 2 500/s  dropped 4 000/s  most 4 000/s",
            "                                                                               █",
            "                                                                               █",
            "                                                                              ▆█",
            "limit                       address                drops/s▼   drops   last drop",
            "NewConnectionsPerIPv6Range  2001:db8:1234:5678::9     3 000   3 995    0 ns ago",
            "PacketsPerIPAddress         192.0.2.1                 1 000   1 005    0 ns ago",
            "",
        ]
    );
    assert_eq!(lines[22], "by address · 2 remembered");
    assert_eq!(lines[23], HINTS);
}

#[test]
fn what_each_standing_gets() {
    let mut model = model(&[]);
    let at = |second: u64, shortage: Option<ShortageStatus>| {
        let of_each = counted_standings().zip(1..).map(|(standing, number)| {
            let packets = |factor: u64| Traffic {
                packets: factor * number * second,
                bytes: 0,
            };
            let traffic = LimitTraffic {
                passed: packets(1_000),
                dropped: packets(200_000),
                would_drop: packets(100_000),
            };
            StandingTraffic::new(standing, &traffic)
        });
        let mut snapshot = snapshot(second, [0, 0], []);
        snapshot.status.standing = Some(StandingStatus {
            dns_cookies: std::collections::BTreeMap::new(),
            shortage,
            handshakes_error: None,
            limits: [("AllPacketsToThisServer".to_owned(), of_each.collect())].into(),
        });
        snapshot
    };
    model.take(at(1, None));
    let lines = screen(&model, (80, 24));
    assert!(lines[5].starts_with("no shortage  "), "{lines:#?}");
    assert!(lines[6].ends_with("        –"), "{lines:#?}");
    let shortage = ShortageStatus {
        began_ago_ns: 120_000_000_000,
        last_refused_ago_ns: 0,
    };
    model.take(at(3, Some(shortage)));
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[5..9],
        [
            "SHORTAGE for 2 min           proven familiar    fresh  retried  unknown  unasked",
            "AllPacketsToThi   passed/s    1 000    2 000    3 000    4 000    5 000    6 000",
            "                 refused/s  300 000  600 000  900 000    1.2 M    1.5 M    1.8 M",
            "No drops.",
        ]
    );
    // If there is no room for both, offenders come first.
    assert_eq!(screen(&model, (80, 17))[5], "No drops.");
}

#[test]
fn what_is_answered() {
    let mut model = model(&[]);
    let at = |second: u64| {
        let mut snapshot = snapshot(second, [10_000_000, 10_000_000].map(|all| all * second), []);
        let mut limit = automatic(1);
        limit.automatic = None;
        limit.answers = [("truncate".to_owned(), 100_000 * second)].into();
        snapshot.status.limits = [("Dns".to_owned(), limit)].into();
        snapshot
    };
    model.take(at(0));
    let lines = screen(&model, (80, 24));
    assert_eq!(lines[1], "passed –/s  dropped –/s  answered –/s  most 0/s");
    model.take(at(1));
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[1],
        "passed 10 000 000/s  dropped 10 000 000/s  answered 100 000/s  most 10 000 000/s"
    );
}

#[test]
fn what_an_automatic_rate_is() {
    let mut model = model(&[]);
    let at = |second: u64, change: &dyn Fn(&mut AutomaticRate)| {
        let mut limit = automatic(52_000);
        limit.automatic.iter_mut().for_each(change);
        let mut snapshot = snapshot(second, [0, 0], []);
        let name = "AllPacketsToThisServerAndItsNeighbours".to_owned();
        snapshot.status.limits = [(name, limit)].into();
        snapshot
    };
    let reported = |model: &Model| screen(model, (80, 24))[5].clone();
    model.take(at(1, &|_| ()));
    let calm = "AllPacketsToThisServer  auto 52 000/s  from 5 000 to 1 000 000";
    assert_eq!(reported(&model), calm);
    let overload = |kind: &str, seconds: u64| OverloadStatus {
        kind: kind.to_owned(),
        intervals: 3,
        ago_ns: seconds * 1_000_000_000,
    };
    let heard = || vec![overload("receive-buffer", 9), overload("backlog", 3)];
    model.take(at(2, &|rate| rate.overload = heard()));
    assert_eq!(reported(&model), format!("{calm}  overload 3 s ago"));
    model.take(at(3, &|rate| {
        rate.error = Some("no daemon runs".to_owned());
    }));
    assert_eq!(
        reported(&model),
        "AllPacketsToThisServer  auto 52 000/s  NOT FOUND: no daemon runs"
    );
    // If there is no room for both, offenders come first.
    assert_eq!(screen(&model, (80, 17))[5], "No drops.");
}

#[test]
fn other_sizes() {
    let model = with_offenders();
    // No room for all columns, nor for the whole name, nor for the sparkline.
    let lines = screen(&model, (59, 8));
    assert_eq!(
        lines[2..5],
        [
            "limit               address                drops/s▼   drops",
            "NewConnectionsPer…  2001:db8:1234:5678::9     3 000   3 995",
            "PacketsPerIPAddre…  192.0.2.1                 1 000   1 005",
        ]
    );
    // On a wider screen the columns stay where they are.
    assert_eq!(
        screen(&model, (132, 24))[5..8],
        screen(&model, (80, 24))[5..8]
    );
    for size in [(1, 1), (2, 3), (5, 5), (20, 6), (40, 12), (600, 2)] {
        assert_eq!(screen(&model, size).len(), usize::from(size.1), "{size:?}");
    }
}

#[test]
fn the_selected_row_is_in_sight() {
    let mut model = model(&["--sort", "drops"]);
    let offenders: Vec<_> = (0..100)
        .map(|n| offender("L", &format!("192.0.2.{n}"), 1_000 - n))
        .collect();
    model.take(snapshot(0, [0, 0], offenders));
    let shows =
        |model: &Model, id: &str| screen(model, (80, 24)).iter().any(|line| line.contains(id));
    assert!(shows(&model, "192.0.2.0 ") && !shows(&model, "192.0.2.99 "));
    assert!(model.apply(Action::Last).is_continue());
    assert!(shows(&model, "192.0.2.99 ") && !shows(&model, "192.0.2.0 "));
}

#[test]
fn what_is_chosen_is_told() {
    let mut model = with_offenders();
    let mut check = |actions: &[Action], expected: &str| {
        for action in actions {
            assert!(model.apply(*action).is_continue());
        }
        let lines = screen(&model, (80, 24));
        assert!(
            lines.iter().any(|line| line.contains(expected)),
            "no {expected:?} in {lines:#?}"
        );
    };
    check(&[Action::Pause], "PAUSED");
    check(&[Action::Reverse], "drops/s▲");
    check(&[Action::NextColumn], "drops▼");
    check(&[Action::EditFilter, Action::Type('6')], "filter: 6▏");
    check(&[Action::Accept], "filter 6: 1 of 2 · 2 remembered");
    check(
        &[Action::EditFilter, Action::Type('y'), Action::Accept],
        "The filter hides all of them.",
    );
    check(&[Action::Back, Action::Help], "Home, End");
    check(&[Action::Back, Action::Explain], "asking the daemon …");
}

#[test]
fn counts_of_which_more_may_have_been() {
    let mut model = model(&["--by", "range", "--limit", "L"]);
    assert!(!screen(&model, (80, 24)).concat().contains("Nobody"));
    let mut snapshot = snapshot(0, [0, 0], [offender("L", "192.0.2.0/24", 1_234)]);
    snapshot.by = Grouping::Range;
    snapshot.list.lower_bound = true;
    snapshot.list.skipped = 7;
    snapshot.status.interfaces[0].attached = false;
    model.take(snapshot);
    let lines = screen(&model, (80, 24));
    assert_eq!(lines[0].split("  ").nth(1), Some("eth0 NOT attached"));
    assert_eq!(
        lines[5..7],
        [
            "limit   range         addresses  drops/s▼    drops   last drop",
            "L       192.0.2.0/24          1         –  ≥ 1 234    0 ns ago",
        ]
    );
    assert_eq!(
        lines[22],
        "by range · limit L · 1 remembered · 0 forgotten, 7 drops skipped"
    );
}

#[test]
fn nobody_is_dropped() {
    let mut model = model(&[]);
    model.take(snapshot(0, [0, 0], []));
    let lines = screen(&model, (80, 24));
    assert_eq!(lines[1], "passed –/s  dropped –/s  most 0/s");
    assert_eq!(lines[5], "No drops.");
}

#[test]
fn an_explanation_in_place_of_the_table() {
    let mut model = model(&[]);
    let rows = || [offender("PacketsPerIPAddress", "192.0.2.1", 5)];
    model.take(snapshot(0, [0, 0], rows()));
    assert!(model.apply(Action::Explain).is_continue());
    let mut response = snapshot(1, [0, 0], rows());
    response.explanation = Some(Box::new(explanation("192.0.2.1")));
    model.take(response);
    let lines = screen(&model, (80, 24));
    let expected = [
        "last drop: 1 µs ago by PacketsPerIPAddress",
        "its drops: ≥ 1 234, the first 3 s ago",
        "",
        "PacketsPerIPAddress of 192.0.2.1 (enforce, default)",
        "  0 left of 2 000, 1 000 per 1 s; retry in 250 µs, reset in 2 s",
    ];
    assert!(lines[5].starts_with("┌ 192.0.2.1 ─"), "{lines:#?}");
    for (line, expected) in lines[6..11].iter().zip(expected) {
        assert_eq!(line.trim_matches('│').trim_end(), expected);
    }
    // Lines that do not fit are counted.
    let lines = screen(&model, (80, 9));
    assert!(lines.concat().contains("… 3 more lines"), "{lines:#?}");
}

#[test]
fn colours_only_in_colour() {
    let model = with_offenders();
    let colours = |palette| {
        let view = View { palette };
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| view.draw(frame, &model)).unwrap();
        let cells = terminal.backend().buffer().content().iter();
        cells
            .filter(|cell| (cell.fg, cell.bg) != (Color::Reset, Color::Reset))
            .count()
    };
    assert_eq!(colours(Palette::plain()), 0);
    assert!(colours(Palette::coloured()) > 0);
}

#[test]
fn a_ban_says_what_will_happen() {
    let mut model = with_offenders();
    assert!(model.apply(Action::Ban).is_continue());
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[5..11],
        [
            "Ban 2001:db8:1234:5678::9 as the operator: its packets are dropped for 1 h.",
            "for     1h▏",
            "reason  dropped by NewConnectionsPerIPv6Range",
            "Enter: do it  Tab: the other text  Esc: change nothing",
            "",
            "limit                       address                drops/s▼   drops   last drop",
        ]
    );
    let lines = screen(&model, (60, 24));
    assert_eq!(
        lines[5..7],
        [
            "Ban 2001:db8:1234:5678::9 as the operator: its packets are",
            "dropped for 1 h.",
        ]
    );
    assert!(model.apply(Action::Type('x')).is_continue());
    let lines = screen(&model, (80, 24));
    assert!(lines[5].starts_with("for: "), "{lines:#?}");
    assert_eq!(lines[8], "Esc: change nothing");
    model.show_outcome(Err("the guard's words".to_owned()));
    let lines = screen(&model, (80, 24));
    assert_eq!(lines[5..7], ["the guard's words", "Esc: back to the table"]);
    for size in [(1, 1), (5, 5), (20, 6)] {
        assert_eq!(screen(&model, size).len(), usize::from(size.1), "{size:?}");
    }
}

#[test]
fn an_unban_says_whose_bans_are_lifted() {
    let mut model = with_offenders();
    let unban = [Action::Last, Action::Unban];
    assert!(
        unban
            .map(|action| model.apply(action))
            .iter()
            .all(std::ops::ControlFlow::is_continue)
    );
    assert_eq!(screen(&model, (80, 24))[5], "asking the daemon …");
    let mut response = snapshot(3, [0, 0], []);
    let ban = limiter_protocol::bans::BanStatus {
        prefix: "192.0.2.1/32".parse().unwrap(),
        origin: "fail2ban".parse().unwrap(),
        limit: None,
        reason: "ssh: 40 failures".to_owned(),
        since: jiff::Timestamp::UNIX_EPOCH,
        until: None,
        ends_in_ns: Some(60_000_000_000),
        times: 1,
        hits: 1_234,
        hit_bytes: 74_040,
        excluded_by: None,
    };
    response.bans = Some((ban.prefix, vec![ban]));
    model.take(response);
    assert_eq!(
        screen(&model, (80, 24))[5..8],
        [
            "Unban 192.0.2.1: everybody's bans of it are lifted.",
            "192.0.2.1 by fail2ban for 1 min more, 1 234 hits  ssh: 40 failures",
            "Enter: do it  Esc: change nothing",
        ]
    );
}

#[test]
fn a_table_of_limits() {
    let mut model = model(&[]);
    let at = |second: u64| {
        let mut snapshot = snapshot(second, [0, 0], []);
        let mut open = limit(0, 7 * second);
        open.cost = "connections".to_owned();
        (open.rate, open.connections) = (None, Some(40));
        open.open = Some(1_229);
        snapshot.status.limits = [
            (
                "PacketsPerIPAddress".to_owned(),
                limit(1_000 * second, 20_000 * second),
            ),
            ("OpenConnectionsPerIPAddress".to_owned(), open),
        ]
        .into();
        snapshot.status.connections = Some(ConnectionsStatus {
            counted: 1_234,
            tracked: Some(34),
            uncounted: 2,
            error: None,
        });
        snapshot
    };
    model.take(at(1));
    model.take(at(2));
    assert!(model.apply(Action::NextSubject).is_continue());
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[5..8],
        [
            "limit                                      grants  passed/s  refused/s  refused",
            "OpenConnectionsPerIPAddress                    40         0        7.0       14",
            "PacketsPerIPAddress          1 000 packets per 1s     1 000     20 000   40 000",
        ]
    );
    assert_eq!(lines[22], "limits");
    let narrow = screen(&model, (60, 24));
    assert_eq!(
        narrow[5..7],
        [
            "limit                            grants  passed/s  refused/s",
            "OpenConnectionsP…                    40         0        7.0",
        ]
    );
    assert!(
        model
            .apply(Action::Show(Subject::Connections))
            .is_continue()
    );
    let lines = screen(&model, (60, 24));
    assert_eq!(
        lines[5..8],
        [
            "1 234 open that limits count  2 NOT COUNTED for lack of room",
            "limit                      open  at once  refused/s  refused",
            "OpenConnectionsPerIPAdd…  1 229       40        7.0       14",
        ]
    );
    let mut snapshot = at(3);
    let queued = snapshot
        .status
        .limits
        .get_mut("OpenConnectionsPerIPAddress");
    queued.expect("a limit").queue = Some(QueueStatus {
        waiting: 17,
        ..QueueStatus::default()
    });
    model.take(snapshot);
    let lines = screen(&model, (60, 24));
    assert_eq!(
        lines[6..8],
        [
            "limit             open  at once  waiting  refused/s  refused",
            "OpenConnection…  1 229       40       17        7.0       21",
        ]
    );
    assert!(model.apply(Action::Show(Subject::Standing)).is_continue());
    assert_eq!(
        screen(&model, (80, 24))[5],
        "No limit reserves anything by standing."
    );
}

#[test]
fn who_has_the_most_connections() {
    let mut model = model(&[]);
    let mut at = snapshot(1, [0, 0], []);
    at.status.connections = Some(ConnectionsStatus {
        counted: 50,
        tracked: None,
        uncounted: 0,
        error: None,
    });
    let mut open = limit(0, 0);
    open.cost = "connections".to_owned();
    at.status.limits = [("OpenConnectionsPerIPAddress".to_owned(), open)].into();
    let key = |id: &str, open, waiting| KeyStatus {
        limit: "OpenConnectionsPerIPAddress".to_owned(),
        id: id.to_owned(),
        open,
        most: 40,
        waiting,
    };
    at.keys = vec![
        key("192.0.2.7", 38, Some(17)),
        key("2001:db8:1234:5678::/64", 12, None),
    ];
    model.take(at);
    let show = Action::Show(Subject::Connections);
    assert!(model.apply(show).is_continue());
    let lines = screen(&model, (80, 24));
    assert_eq!(
        lines[8..12],
        [
            "",
            "key                      limit                        open  at most  waiting",
            "192.0.2.7                OpenConnectionsPerIPAddress    38       40       17",
            "2001:db8:1234:5678::/64  OpenConnectionsPerIPAddress    12       40        –",
        ]
    );
    let lines = screen(&model, (60, 24));
    assert_eq!(
        lines[9],
        "key                      limit                 open  at most"
    );
    // A part of a key's id finds the key, but no limit.
    let typed = "192.0".chars().map(Action::Type);
    let actions = [Action::EditFilter].into_iter().chain(typed);
    for action in actions.chain([Action::Accept]) {
        assert!(model.apply(action).is_continue());
    }
    let lines = screen(&model, (80, 24));
    assert!(lines[7].starts_with("192.0.2.7 "), "{lines:#?}");
    assert_eq!(lines[8], "");
}
