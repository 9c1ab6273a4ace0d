use std::net::IpAddr;

use limiter_common::standing::{Event, Kind, Shortage};

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
const MONTH_NS: u64 = 30 * DAY_NS;

fn settings(ipv6_prefix: u32) -> Settings {
    Settings {
        ipv6_prefix,
        visits: 3,
        apart_ns: 60 * SECOND_NS,
        remember_ns: MONTH_NS,
        handshakes_prove: 1,
        fresh_ticks: Tick::MINUTE,
        ..Settings::NONE
    }
}

fn standing_context(settings: &Settings, now_ns: u64) -> StandingContext<'_> {
    StandingContext {
        settings,
        shortage: Shortage::NONE,
        now: Tick::of_ns(now_ns),
    }
}

fn source(settings: &Settings, address: &str) -> SourceId {
    let address: IpAddr = address.parse().unwrap();
    SourceId::new(settings, &address.into())
}

/// A reboot: two days pass, after which the kernel's clock shows 40 seconds.
#[test]
fn what_was_known_goes_on_after_a_reboot() {
    let settings = settings(64);
    let at = standing_context(&settings, 20 * DAY_NS);
    let proven = Record::NONE.after(Event::Handshake, &at);
    let trust = |ns: u64| Event::Trust {
        until_ns: 20 * DAY_NS + ns,
    };
    // Another node's report, which ends in three days.
    let unseen = Tick::of_ns(MONTH_NS - 3 * DAY_NS).0;
    let last = Tick(at.now.0.wrapping_sub(unseen));
    let reported = Record::new(Kind::Reported, false, 0, last, at.now);
    let known = [
        ("192.0.2.1", proven),
        ("2001:db8::", Record::NONE.after(trust(3 * DAY_NS), &at)),
        ("192.0.2.2", Record::NONE.after(trust(DAY_NS), &at)),
        ("192.0.2.3", Record::NONE.after(Event::Visit, &at)),
        ("192.0.2.4", Record::NONE.after(Event::Retry, &at)),
        (
            "192.0.2.5",
            Record::NONE.after(Event::Reported { record: reported }, &at),
        ),
    ];
    let known = known.map(|(address, record)| (source(&settings, address), record));
    let saved = SavedSources::new(known.into_iter(), &at);
    assert_eq!(saved.sources.len(), 4, "visits and retries are not saved");

    let after = standing_context(&settings, 40 * SECOND_NS);
    let restored: Vec<_> = saved.restore(2 * DAY_NS, &after).collect();
    let kinds = restored.iter().map(|(source, record)| {
        let address: IpAddr = source.address().into();
        (address.to_string(), record.kind())
    });
    let expected = [
        ("192.0.2.1", Kind::Proven),
        ("2001:db8::", Kind::Trusted),
        ("192.0.2.5", Kind::Reported),
    ];
    assert!(kinds.eq(expected.map(|(address, kind)| (address.to_owned(), kind))));
    // The first trusted source has a day left, the other one none.
    let later = |ns| standing_context(&settings, 40 * SECOND_NS + ns);
    for (_, record) in &restored[1..] {
        assert_eq!(
            record.standing(&later(DAY_NS - 9 * SECOND_NS)),
            Standing::Proven
        );
        assert_eq!(
            record.standing(&later(DAY_NS + 9 * SECOND_NS)),
            Standing::Unknown
        );
    }
    // A source that did not come for a month, before and after the reboot, is unknown.
    let first = restored[0].1;
    assert_eq!(
        first.standing(&later(28 * DAY_NS - 9 * SECOND_NS)),
        Standing::Proven
    );
    assert_eq!(
        first.standing(&later(28 * DAY_NS + 9 * SECOND_NS)),
        Standing::Unknown
    );
    // A clock that was set ten years forward forgets every source.
    assert_eq!(saved.restore(3_650 * DAY_NS, &after).count(), 0);
}

#[test]
fn a_restart_in_a_flood_makes_nobody_senior() {
    let settings = settings(64);
    let before = standing_context(&settings, DAY_NS);
    let late = Record::NONE.after(Event::Handshake, &before);
    let at = StandingContext {
        shortage: Shortage::NONE.after_refusal(Tick::of_ns(DAY_NS + 30 * SECOND_NS)),
        ..standing_context(&settings, DAY_NS + 31 * SECOND_NS)
    };
    assert_eq!(late.standing(&at), Standing::Fresh);
    assert!(!late.is_fresh(), "only as long as the shortage lasts");
    let known = [(source(&settings, "192.0.2.1"), late)];
    let saved = SavedSources::new(known.into_iter(), &at);
    let after = standing_context(&settings, 40 * SECOND_NS);
    let (_, restored) = saved.restore(0, &after).next().unwrap();
    assert_eq!(restored.standing(&after), Standing::Fresh);
}

#[test]
fn a_source_may_be_a_shorter_prefix_by_now() {
    let of_64 = settings(64);
    let at = standing_context(&of_64, DAY_NS);
    let record = Record::NONE.after(Event::Handshake, &at);
    let known = ["2001:db8:1:2::", "192.0.2.1"].map(|one| (source(&of_64, one), record));
    let saved = SavedSources::new(known.into_iter(), &at);
    let restored = |ipv6_prefix| {
        let settings = settings(ipv6_prefix);
        let at = standing_context(&settings, DAY_NS);
        let restored = saved.restore(0, &at);
        restored.map(|(source, _)| source).collect::<Vec<_>>()
    };
    let of_48 = settings(48);
    let expected = ["2001:db8:1::", "192.0.2.1"].map(|one| source(&of_48, one));
    assert_eq!(restored(48), expected);
    // The /64s within a former source, a /48, are unknown.
    let wide = SavedSources {
        ipv6_prefix: 48,
        ..saved.clone()
    };
    let restored = wide.restore(0, &at).map(|(source, _)| source);
    assert!(restored.eq([source(&of_64, "192.0.2.1")]));
}
