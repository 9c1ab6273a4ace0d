//! A status for tests.

use std::collections::BTreeMap;

use limiter_common::reason::Action;
use limiter_policy::config::{Bans, Buckets, Metrics, Offenders};

use super::{
    BansStatus, BucketsStatus, DaemonStatus, GuardStatus, History, InterfaceStatus, PolicyStatus,
    Status,
};

/// The status of a daemon with the defaults on eth0.
pub(crate) fn status() -> Status {
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
            metrics_hosts: Vec::new(),
            page: None,
            group: None,
            state: None,
            reloads: History::default(),
            guard: GuardStatus::default(),
            no_answers: None,
            lost_answers: BTreeMap::new(),
            misfits: BTreeMap::new(),
            unmatched: Vec::new(),
            unseen: BTreeMap::new(),
            secrets_error: None,
            syn_cookies: BTreeMap::new(),
            tracking: None,
            fleet: None,
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
