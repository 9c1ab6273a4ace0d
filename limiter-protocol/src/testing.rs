//! A status and an explanation for tests.

use std::collections::BTreeMap;

use limiter_common::reason::Action;
use limiter_policy::{
    config::{Bans, Buckets, Metrics, Offenders},
    lists::Findings,
    policy::Mode,
};

use super::{
    BansStatus, BucketsStatus, DaemonStatus, Explanation, InterfaceStatus, LastDrop,
    LimitExplanation, PolicyStatus, Status,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The status of a daemon with the defaults on eth0.
#[must_use]
pub fn status() -> Status {
    Status {
        interfaces: vec![InterfaceStatus {
            name: "eth0".to_owned(),
            mode: Some("native".to_owned()),
            attached: true,
            renamed: None,
            elsewhere: false,
            replaced: false,
            since: Some(jiff::Timestamp::UNIX_EPOCH),
            fell_back: None,
            by_pattern: false,
        }],
        patterns: Vec::new(),
        policy: PolicyStatus {
            generation: 1,
            loaded_at: jiff::Timestamp::UNIX_EPOCH,
            limits: 1,
            overrides: 0,
            malformed: Action::Drop,
        },
        buckets: BucketsStatus {
            settings: Buckets::default(),
            lossy_evictions: 0,
        },
        offenders: Offenders::default(),
        bans: BansStatus {
            settings: Bans::default(),
            ipv4: 0,
            ipv6: 0,
        },
        pinned: None,
        lost_pin: None,
        daemon: Some(DaemonStatus {
            metrics: Metrics::default().listen,
            ..DaemonStatus::default()
        }),
        reasons: BTreeMap::new(),
        limits: BTreeMap::new(),
        lists: Vec::new(),
        sieves: Vec::new(),
        standing: None,
        connections: None,
        own_connections_error: None,
        server_names: None,
        server_names_error: None,
    }
}

/// The explanation of an address that its only limit dropped.
///
/// # Panics
///
/// If `address` is none.
#[must_use]
pub fn explanation(address: &str) -> Explanation {
    Explanation {
        address: address.parse().expect("an address"),
        lists: Findings::default(),
        standing: None,
        limits: vec![LimitExplanation {
            limit: "PacketsPerIPAddress".to_owned(),
            id: address.to_owned(),
            interface: None,
            mode: Mode::Enforce,
            strategy: "gcra".to_owned(),
            matching: None,
            other_standing: false,
            reserve: None,
            answer: None,
            slip: None,
            source: "default".to_owned(),
            connections: None,
            waiting: None,
            burst: Some(2000),
            count: 1000,
            period_ns: SECOND_NS,
            remaining: 0,
            retry_in_ns: 250_000,
            reset_in_ns: 2 * SECOND_NS,
        }],
        bans: Vec::new(),
        last_drop: Some(LastDrop {
            sieve: None,
            limit: "PacketsPerIPAddress".to_owned(),
            drops: 1234,
            lower_bound: true,
            first_drop_ago_ns: 3 * SECOND_NS,
            last_drop_ago_ns: 1_000,
        }),
        own_connections: None,
        sieves: Vec::new(),
    }
}
