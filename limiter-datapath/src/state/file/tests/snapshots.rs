//! Snapshots with contents in each section.

use limiter_common::{
    ban::{Ban, BanText, Hits},
    key::BucketKey,
    limit::{Cost, LimitId},
    sieve::ListedSource,
    standing::{self, Event, Record, Settings, Shortage, SourceId, Tick},
    strategy::{Parameters, Strategy},
    table::HashKey,
    unit::Unit,
};
use limiter_policy::policy::{Names, Percentage, PermaBlock, Sieve, Units};

use crate::state::{
    ClockReading, Debts, HashDebt, SavedBan, SavedHits, SavedSieve, SavedSources, SetDebts,
    Snapshot, StoredDebts, TableDebt, TableDebts,
};
use limiter_native::{ShardLists, SieveSnapshot};

/// The contents of a sieve of two shards, ten seconds after the clock's start.
pub(super) fn in_sieve() -> SieveSnapshot {
    let listed = |address: &str, added_s: u64| ListedSource {
        key: address.parse::<std::net::IpAddr>().unwrap().into(),
        count: u32::MAX,
        added_ns: added_s * 1_000_000_000,
    };
    let shard = |list: Vec<ListedSource>| ShardLists {
        lists: vec![vec![], list, vec![]],
        is_exact: true,
    };
    SieveSnapshot {
        shards: vec![
            shard(vec![listed("192.0.2.1", 9), listed("2001:db8::", 4)]),
            shard(vec![listed("192.0.2.2", 10)]),
        ],
    }
}

pub(super) fn sieve() -> SavedSieve {
    let configured = Sieve {
        name: "main".to_owned(),
        buckets: 2,
        size: 4,
        percentage: Percentage::default(),
        max_age_ns: 0,
        perma_block: PermaBlock::default(),
        ipv6_prefix: 64,
        pressure: None,
    };
    SavedSieve::new(&configured, &in_sieve(), 10_000_000_000)
}

fn snapshot(stored: StoredDebts) -> Snapshot {
    let unit = |strategy, count| {
        let parameters = Parameters::new(strategy, 1, count, 10).unwrap();
        Unit::new(&parameters, Cost::Packets)
    };
    let units = [
        unit(Strategy::Gcra, 3),
        unit(Strategy::MovingWindow, 5),
        Unit::of_stamps(Cost::Packets),
        unit(Strategy::FixedWindow, 7),
    ];
    Snapshot {
        saved_at: "2026-03-01T12:00:00.123456789Z".parse().unwrap(),
        names: Names::default().intern(["Dns"]).unwrap(),
        sets: vec![SetDebts {
            interface: Some("eth0".to_owned()),
            debts: Debts {
                units: Units::default().intern(&units).unwrap().0,
                stored,
            },
        }],
        bans: vec![ban("fail2ban")],
        hits: vec![hits()],
        sieves: vec![sieve()],
        known: known(),
    }
}

/// A proven source, with a record of the longest encoding.
fn known() -> SavedSources {
    let settings = Settings {
        remember_ns: u64::MAX,
        handshakes_prove: 1,
        ..Settings::NONE
    };
    let at = standing::StandingContext {
        settings: &settings,
        shortage: Shortage::NONE,
        now: Tick::of_ns(1 << 40),
    };
    let record = Record::NONE.after(Event::Handshake, &at);
    let source = "192.0.2.1".parse::<std::net::IpAddr>().unwrap().into();
    let source = SourceId::new(&settings, &source);
    SavedSources::new([(source, record)].into_iter(), &at)
}

/// A ban of an origin of this name; empty: of the operator.
pub(super) fn ban(origin: &str) -> SavedBan {
    let ban = Ban {
        until_ns: u64::MAX,
        since_ns: 7,
        times: 2,
        limit: Ban::BY_HAND,
        text: BanText::new("spam", origin),
    };
    let now = ClockReading::new(8, "2026-03-01T12:00:00Z".parse().unwrap());
    SavedBan::new("192.0.2.0/24".parse().unwrap(), &ban, now)
}

/// Hits with the longest encoding.
fn hits() -> SavedHits {
    let most = Hits {
        packets: u64::MAX,
        bytes: u64::MAX,
    };
    SavedHits::new("2001:db8::1/128".parse().unwrap(), most)
}

pub(super) fn of_table() -> Snapshot {
    let debt = |line, name| TableDebt {
        line,
        name,
        owed: u64::MAX,
    };
    let table = TableDebts {
        hash_key: HashKey {
            first: 1,
            second: u64::MAX,
        },
        lines: 1024,
        debts: vec![debt(0, 7), debt(1023, u64::MAX)],
    };
    snapshot(StoredDebts::Table(table))
}

pub(super) fn of_hash() -> Snapshot {
    let id = LimitId(32);
    let address = |text: &str| text.parse::<std::net::IpAddr>().unwrap().into();
    let keys = [
        BucketKey::of_source(id, address("192.0.2.1"), 32),
        BucketKey::of_source(id, address("2001:db8:1::"), 48),
        BucketKey::of_subscriber(id, u64::MAX),
        BucketKey::of_interface(id, 3),
        BucketKey::of_interface(id, 3).of_part(0),
        BucketKey::of_subscriber(id, 3).of_part(127),
    ];
    let debts = keys.map(|key| HashDebt {
        key,
        unit: 0x8000,
        owed: 5,
    });
    snapshot(StoredDebts::Hash(debts.into()))
}
