//! A status for tests.

use std::collections::BTreeMap;

use super::protocol::{BucketsStatus, DaemonStatus, InterfaceStatus, PolicyStatus, Status};
use crate::{
    config::{Buckets, Metrics, Offenders},
    daemon::History,
};

/// Of a daemon with the defaults, on eth0.
pub(crate) fn status() -> Status {
    Status {
        interfaces: vec![InterfaceStatus {
            name: "eth0".to_owned(),
            mode: Some("native".to_owned()),
            attached: true,
            since: Some(jiff::Timestamp::UNIX_EPOCH),
            fell_back: None,
        }],
        policy: PolicyStatus {
            generation: 1,
            loaded_at: jiff::Timestamp::UNIX_EPOCH,
            limits: 1,
            overrides: 0,
            malformed: "drop".to_owned(),
        },
        buckets: BucketsStatus {
            settings: Buckets::default(),
            lossy_evictions: 0,
        },
        offenders: Offenders::default(),
        pinned: None,
        daemon: Some(DaemonStatus {
            metrics: Metrics::default().listen,
            state: None,
            reloads: History::default(),
        }),
        reasons: BTreeMap::new(),
        limits: BTreeMap::new(),
        sieves: Vec::new(),
    }
}
