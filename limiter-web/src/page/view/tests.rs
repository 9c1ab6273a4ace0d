//! Foreign text is escaped.

use jiff::Timestamp;
use limiter_policy::policy::bans::Origin;
use limiter_protocol::{
    ConnectionsStatus, FleetStatus, KeyStatus, LimitStatus, OffenderList, OffenderStatus,
    QueueStatus,
    bans::{BanStatus, BansPage},
    testing::status,
    web::IncidentLine,
};

use super::{
    super::{
        params::{BansParams, OffendersParams},
        snapshot::{Offenders, Snapshot},
    },
    *,
};

/// A script that an attacker would inject.
const EVIL: &str = "\"'><script>alert(1)</script>";

fn offenders() -> Offenders {
    Offenders {
        list: OffenderList {
            capacity: 10,
            remembered: 1,
            forgotten: 0,
            recorded: 1,
            skipped: 0,
            lower_bound: false,
            offenders: vec![OffenderStatus {
                limit: EVIL.to_owned(),
                sieve: Some(EVIL.to_owned()),
                id: EVIL.to_owned(),
                addresses: 1,
                drops: 5,
                first_drop_ago_ns: 2,
                last_drop_ago_ns: 1,
            }],
        },
        holds: vec![None],
    }
}

fn ban() -> BanStatus {
    BanStatus {
        prefix: "192.0.2.0/24".parse().unwrap(),
        origin: Origin::OPERATOR,
        limit: Some(EVIL.to_owned()),
        reason: EVIL.to_owned(),
        since: Timestamp::UNIX_EPOCH,
        until: None,
        ends_in_ns: None,
        times: 1,
        hits: 1_234,
        hit_bytes: 74_040,
        excluded_by: Some(EVIL.to_owned()),
    }
}

fn snapshot() -> Snapshot {
    let mut status = status();
    status.interfaces[0].name = EVIL.to_owned();
    let daemon = status.daemon.as_mut().unwrap();
    daemon.lost_answers.insert(EVIL.to_owned(), EVIL.to_owned());
    let limit: LimitStatus = serde_json::from_value(serde_json::json!({
        "mode": "observe", "strategy": "gcra", "passed_packets": 1, "passed_bytes": 1,
        "dropped_packets": 2, "dropped_bytes": 2, "would_drop_packets": 3, "would_drop_bytes": 3,
    }))
    .unwrap();
    Snapshot {
        at: Timestamp::UNIX_EPOCH,
        rates: std::collections::BTreeMap::new(),
        offenders: Ok(offenders()),
        bans: vec![ban()],
        limits: vec![crate::page::snapshot::LimitRow {
            name: EVIL.to_owned(),
            counts: EVIL.to_owned(),
            rate: Some(EVIL.to_owned()),
            status: limit,
            per_second: None,
            left: Vec::new(),
            bans: Some([1, 2]),
        }],
        keys: Vec::new(),
        incidents: vec![IncidentLine {
            at: Timestamp::UNIX_EPOCH,
            began: true,
            text: EVIL.to_owned(),
        }],
        fleet: Some(fleet()),
        status,
    }
}

fn fleet() -> FleetStatus {
    serde_json::from_value(serde_json::json!({
        "name": EVIL, "node": EVIL, "store": EVIL, "connected": false, "error": EVIL, "since_ns": 1,
        "unsent": 2, "held": 1_234, "bans": {EVIL: 3}, "refused_here": 4, "delay_ns": null, "sent": 5,
        "received": 6, "refused": {EVIL: 7}, "pushes": {EVIL: 8}, "sharing_nodes": null, "leases_error": EVIL,
        "sources": {"proven": 1_235, "unsent": 1, "received": 2, "error": EVIL},
        "nodes": {EVIL: {"version": EVIL, "policy": EVIL, "ago_ns": 9}},
        "shares": {EVIL: {
            "share_billionths": 123_456_789, "wanted_billionths": 1_000_000_000, "active": 12, "rate": 10,
            "burst": 11,
            "error": EVIL,
        }},
    }))
    .unwrap()
}

#[track_caller]
fn assert_harmless(markup: Markup) {
    let page = markup.into_string();
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert!(!page.contains("<script>"), "{page}");
    assert!(!page.contains("\"'>"), "{page}");
}

#[test]
fn nothing_from_elsewhere_is_markup() {
    assert_harmless(overview(&snapshot()));
    assert_harmless(message(EVIL));
    let asked = OffendersParams {
        from: 100,
        by: None,
        limit: EVIL.to_owned(),
    };
    assert_harmless(super::offenders(&offenders(), &asked, Some(200)));
    let page = BansPage {
        capacity: 5,
        bans: vec![ban()],
        next: None,
    };
    let asked = BansParams {
        prefix: EVIL.to_owned(),
        origin: EVIL.to_owned(),
        ..BansParams::default()
    };
    assert_harmless(bans(&page, &asked, Some(&asked)));
    let mut explanation = limiter_protocol::testing::explanation("192.0.2.1");
    explanation.limits[0].limit = EVIL.to_owned();
    explanation.bans = vec![ban()];
    assert_harmless(super::explanation(&explanation));
}

#[test]
fn what_is_observed_stands_beside_what_is_enforced() {
    let page = overview(&snapshot()).into_string();
    for text in [
        "Would have dropped",
        "Would have banned",
        "<strong>observe</strong>",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
}

#[test]
fn a_fleet_is_shown_where_there_is_one() {
    let mut snapshot = snapshot();
    let page = overview(&snapshot).into_string();
    for text in [
        "known 1 234, unsent 2, refused here 4",
        "known sources: 1 235 proven here, 1 of them unsent",
        ">12.3 %<",
        ">Nodes<",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    snapshot.fleet = None;
    let page = overview(&snapshot).into_string();
    assert!(!page.contains("leet"), "{page}");
}

#[test]
fn who_waits_in_line_is_shown() {
    let mut snapshot = snapshot();
    snapshot.status.connections = Some(ConnectionsStatus {
        counted: 1_234,
        tracked: Some(34),
        uncounted: 0,
        error: None,
    });
    snapshot.limits[0].status.open = Some(1_229);
    snapshot.limits[0].status.connections = Some(40);
    let page = overview(&snapshot).into_string();
    assert!(!page.contains("wait in line"), "{page}");
    for text in [
        "1 234 open that limits count",
        "34 of them forwarded",
        "Open connections by limit",
        ">1 229<",
        ">40<",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    snapshot.limits[0].status.queue = Some(QueueStatus {
        waiting: 17,
        resumed: 2,
        waited_ns: 3_000_000_000,
        ..QueueStatus::default()
    });
    let page = overview(&snapshot).into_string();
    for text in ["Clients that wait in line", ">17<", "1.5 s"] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert_harmless(overview(&snapshot));
}

#[test]
fn who_has_the_most_connections_is_shown() {
    let mut snapshot = snapshot();
    snapshot.status.connections = Some(ConnectionsStatus {
        counted: 1_234,
        tracked: None,
        uncounted: 0,
        error: None,
    });
    let page = overview(&snapshot).into_string();
    assert!(!page.contains("Keys with the most"), "{page}");
    let key = |id: &str, waiting| KeyStatus {
        limit: EVIL.to_owned(),
        id: id.to_owned(),
        open: 1_111,
        most: 2_222,
        waiting,
    };
    snapshot.keys = vec![key("2001:db8::1", Some(17)), key(EVIL, None)];
    let page = overview(&snapshot).into_string();
    for text in [
        "Keys with the most open connections",
        "<a href=\"/explain?address=2001:db8::1\">",
        ">1 111<",
        ">2 222<",
        ">17<",
    ] {
        assert!(page.contains(text), "{text} is not in {page}");
    }
    assert_harmless(overview(&snapshot));
}

#[test]
fn an_address_is_explained_and_nothing_else() {
    let link = |id| parts::source(id).into_string();
    assert_eq!(
        link("2001:db8::1"),
        "<a href=\"/explain?address=2001:db8::1\">2001:db8::1</a>"
    );
    assert_eq!(link("192.0.2.0/24"), "192.0.2.0/24");
}
