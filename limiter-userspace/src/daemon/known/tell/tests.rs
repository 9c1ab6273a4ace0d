use std::net::IpAddr;

use limiter_common::standing::{Event, Settings, Shortage};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;

const SETTINGS: Settings = Settings {
    lines: 1,
    ipv6_prefix: 64,
    visits: 3,
    apart_ns: 60 * SECOND_NS,
    remember_ns: 86_400 * SECOND_NS,
    handshakes_prove: 1,
    ..Settings::NONE
};

fn at(now_s: u64) -> Moment<'static> {
    Moment {
        settings: &SETTINGS,
        shortage: Shortage::NONE,
        now: Tick::of_ns(now_s * SECOND_NS),
    }
}

fn teller(now_s: u64) -> Teller<'static> {
    Teller {
        at: at(now_s),
        now: Timestamp::UNIX_EPOCH,
    }
}

fn source() -> SourceId {
    let address: IpAddr = "2001:db8::7".parse().unwrap();
    SourceId::new(&SETTINGS, &address.into())
}

/// Returns whether nanoseconds are so many seconds, but for a tick.
fn is_about(ns: Option<u64>, seconds: u64) -> bool {
    ns.is_some_and(|ns| ns.abs_diff(seconds * SECOND_NS) <= 2 * SECOND_NS)
}

#[test]
fn records_are_told() {
    let told = |record: Record, now_s| teller(now_s).tell(source(), record);
    let proven = told(Record::NONE.after(Event::Handshake, &at(1_000)), 1_300);
    assert_eq!(proven.source, "2001:db8::/64".parse::<IpNet>().unwrap());
    assert_eq!(proven.standing, Standing::Proven);
    assert_eq!(proven.by, Some(KnownBy::Handshake));
    assert!(is_about(proven.since_ns, 300) && is_about(proven.last_visit_ns, 300));
    assert_eq!(
        proven.since,
        Timestamp::UNIX_EPOCH
            .checked_sub(signed(proven.since_ns.unwrap()))
            .ok()
    );
    assert_eq!((proven.until, proven.ends_in_ns), (None, None));

    let until_ns = 9_000 * SECOND_NS;
    let vouched = Record::NONE.after(Event::Vouch { until_ns }, &at(1_000));
    let told_vouched = told(vouched, 1_300);
    assert_eq!(told_vouched.by, Some(KnownBy::Operator));
    assert_eq!(told_vouched.since, None, "the record says only until when");
    assert!(is_about(told_vouched.ends_in_ns, 7_700));
    assert_eq!(told(vouched, 9_002).by, None, "it is over");

    let retried = Record::NONE.after(Event::Retry, &at(1_000));
    let told_retried = told(retried, 1_100);
    assert_eq!(told_retried.standing, Standing::Retried);
    assert!(is_about(told_retried.since_ns, 100) && is_about(told_retried.ends_in_ns, 500));
    let over = told(retried, 2_000);
    assert_eq!(
        (over.standing, over.by),
        (Standing::Unknown, Some(KnownBy::Visits))
    );

    let visited = told(Record::NONE.after(Event::Visit, &at(1_000)), 1_000);
    assert_eq!((visited.standing, visited.visits), (Standing::Unknown, 1));

    let nothing = told(Record::NONE, 1_000);
    assert_eq!(
        (nothing.by, nothing.since, nothing.last_visit),
        (None, None, None)
    );
}

#[test]
fn a_shortage_is_told_while_it_lasts() {
    let shortage = Shortage::NONE.after_refusal(Tick::of_ns(1_000 * SECOND_NS));
    let told = |now_s| {
        let at = Moment {
            shortage,
            ..at(now_s)
        };
        Teller {
            at,
            ..teller(now_s)
        }
        .shortage()
    };
    assert!(is_about(told(1_030).map(|told| told.lasts_ns), 30));
    assert_eq!(told(1_070), None);
}
