//! The data of the overview, read at most once a second and shared by all visitors.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_common::reason::Reason;
use limiter_policy::policy::Mode;
use limiter_protocol::{
    Failure, FleetStatus, Grouping, KeyQuery, KeyStatus, LimitExplanation, LimitStatus,
    OffenderList, OffenderQuery, OffenderStatus, Status,
    bans::{BanStatus, BansQuery},
    web::{DaemonView, IncidentLine, LimitOverview, SourceBlock},
};
use limiter_report::render::{count, duration};
use thiserror::Error;

use super::{rates::LimitRate, recorder::Recorder};
use crate::fresh::ShortCache;

/// The overview lists sources dropped within this time.
const NOW: Duration = Duration::from_mins(1);

/// The most sources and the most bans on the overview.
const SHOWN: u32 = 20;

/// The most keys of open connections on the overview, of all limits together.
const MOST_KEYS_SHOWN: u32 = 100;

/// Stops reading after this many bans, and shows the newest among them.
const MOST_BANS: usize = 5_000;

/// The data cannot be read.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The daemon does not answer the query.
    #[error("cannot read the page's data: {0}")]
    Refused(Failure),
    /// The kernel does not answer.
    #[error("cannot read the page's data: {0}")]
    Failed(Failure),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) status: Status,
    /// Packets per second by reason.
    pub(super) rates: BTreeMap<&'static str, f64>,
    /// The sources dropped most among recently dropped ones, or the error that hides them.
    pub(super) offenders: Result<Offenders, String>,
    /// The newest bans.
    pub(super) bans: Vec<BanStatus>,
    pub(super) limits: Vec<LimitRow>,
    /// The keys with the most open connections.
    pub(super) keys: Vec<KeyStatus>,
    /// The newest first.
    pub(super) incidents: Vec<IncidentLine>,
    /// The state of the fleet; `None`: the host is in none.
    pub(super) fleet: Option<FleetStatus>,
}

pub(super) struct Offenders {
    pub(super) list: OffenderList,
    /// The end of the drops and the reason; `None`: the row is not an address.
    pub(super) holds: Vec<Option<SourceBlock>>,
}

pub(super) struct LimitRow {
    pub(super) name: String,
    /// A text of the unit it counts, the key and the matched packets.
    pub(super) counts: String,
    /// The default rate; `None`: only ids with an override have one.
    pub(super) rate: Option<String>,
    pub(super) status: LimitStatus,
    /// Rates in packets per second; `None`: not known yet.
    pub(super) per_second: Option<LimitRate>,
    /// The levels of buckets shared by all sources; empty: each source has its own.
    pub(super) left: Vec<LimitExplanation>,
    /// How many sources it has banned, and would have banned; `None`: it does not ban.
    pub(super) bans: Option<[u64; 2]>,
}

/// Reads and caches snapshots.
pub(super) struct Snapshots {
    daemon: Arc<DaemonView>,
    recorder: Arc<Recorder>,
    last: ShortCache<Arc<Snapshot>, ReadError>,
}

impl Snapshots {
    pub(super) fn new(daemon: Arc<DaemonView>, recorder: Arc<Recorder>) -> Self {
        Self {
            daemon,
            recorder,
            last: ShortCache::new(),
        }
    }

    /// Returns a snapshot at most a second old.
    pub(super) fn newest(&self) -> Result<Arc<Snapshot>, Arc<ReadError>> {
        (self.last).or_make(Instant::now, || self.read().map(Arc::new))
    }

    fn read(&self) -> Result<Snapshot, ReadError> {
        let overview = (self.daemon.overview)()?;
        let query = OffenderQuery {
            limit: None,
            within_ns: u64::try_from(NOW.as_nanos()).ok(),
            by: Grouping::Address,
            count: SHOWN,
        };
        let offenders = match (self.daemon.offenders)(&query) {
            Err(Failure(why)) => Err(why),
            Ok(list) => {
                let holds = holds(&self.daemon, &list.offenders)?;
                Ok(Offenders { list, holds })
            }
        };
        let mut incidents = (self.daemon.incidents)();
        incidents.reverse();
        Ok(Snapshot {
            at: Timestamp::now(),
            rates: self.rates(),
            offenders,
            bans: newest_bans(&self.daemon)?,
            limits: self.limits(overview.limits, &overview.status),
            keys: keys(&self.daemon, &overview.status)?,
            incidents,
            fleet: overview.fleet,
            status: overview.status,
        })
    }

    fn rates(&self) -> BTreeMap<&'static str, f64> {
        let recorded = self.recorder.state();
        let newest = recorded.history.seconds().slots().next_back();
        let reasons = Reason::ALL.iter().enumerate();
        newest.map_or_else(BTreeMap::new, |slot| {
            let rates = reasons.map(|(number, reason)| (reason.name(), slot.rate(number)));
            rates.collect()
        })
    }

    fn limits(&self, limits: Vec<LimitOverview>, status: &Status) -> Vec<LimitRow> {
        let mut per_second = self.recorder.state().rates.of_limits();
        let rows = limits.into_iter().filter_map(|overview| {
            let status = status.limits.get(&overview.limit)?.clone();
            let mut counts = format!("{} by {}", status.cost, overview.key);
            if let Some(matching) = &overview.matching {
                counts = format!("{counts}: {matching}");
            }
            Some(LimitRow {
                counts,
                rate: describe_rate(&status, overview.has_burst),
                status,
                per_second: per_second.remove(&overview.limit),
                left: overview.levels,
                bans: overview.bans,
                name: overview.limit,
            })
        });
        rows.collect()
    }
}

impl LimitRow {
    /// Whether it does less than enforce.
    pub(super) fn only_observes(&self) -> bool {
        self.status.mode != Mode::Enforce
    }
}

/// Returns the rate of a key without an override, in words; `None`: it has none.
fn describe_rate(limit: &LimitStatus, has_burst: bool) -> Option<String> {
    if let Some(open) = limit.connections {
        return Some(format!("{} open at once", count(open)));
    }
    let rate = limit.rate?;
    let per = format!("{} per {}", count(rate.count), duration(rate.period_ns));
    Some(if has_burst {
        format!("{per}, burst {}", count(rate.burst))
    } else {
        per
    })
}

/// Lists the keys with the most open connections, if a limit counts connections.
fn keys(daemon: &DaemonView, status: &Status) -> Result<Vec<KeyStatus>, ReadError> {
    if status.connections.is_none() {
        return Ok(Vec::new());
    }
    let query = KeyQuery {
        limit: None,
        count: MOST_KEYS_SHOWN,
    };
    Ok((daemon.keys)(&query)?.keys)
}

/// Looks up until when offenders are dropped; `None` for a row that is not an address.
pub(super) fn holds(
    daemon: &DaemonView,
    offenders: &[OffenderStatus],
) -> Result<Vec<Option<SourceBlock>>, ReadError> {
    let holds = offenders.iter().map(|offender| (daemon.block)(offender));
    Ok(holds.collect::<Result<_, _>>()?)
}

/// Returns the newest bans; if there are very many, the newest of a part of them.
fn newest_bans(daemon: &DaemonView) -> Result<Vec<BanStatus>, ReadError> {
    let mut found = Vec::new();
    let mut query = BansQuery::default();
    loop {
        let page = (daemon.bans)(&query)?;
        found.extend(page.bans);
        query.position = page.next;
        if query.position.is_none() || found.len() >= MOST_BANS {
            break;
        }
    }
    found.sort_by_key(|ban| std::cmp::Reverse(ban.since));
    found.truncate(SHOWN as usize);
    Ok(found)
}
