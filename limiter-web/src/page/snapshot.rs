//! The data of the overview, read at most once a second and shared by all visitors.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_common::{limit::Cost, reason::Reason};
use limiter_daemon::{Daemon, IncidentLine, SourceBlock, automatic::Outcome};
use limiter_datapath::kernel::{DatapathError, wall_clock_now};
use limiter_policy::policy::{Limit, Mode, Rate, id_text};
use limiter_protocol::{
    Failure, FleetStatus, Grouping, KeyQuery, KeyStatus, LimitExplanation, LimitStatus,
    OffenderList, OffenderQuery, OffenderStatus, Status, StatusQuery,
    bans::{BanStatus, BansQuery},
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
    /// The daemon does not answer.
    #[error("cannot read the page's data: {0}")]
    Refused(Failure),
    /// The kernel does not answer.
    #[error("cannot read the page's data: {0}")]
    Datapath(#[from] DatapathError),
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Refused(failure)
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
    daemon: Arc<Daemon>,
    recorder: Arc<Recorder>,
    last: ShortCache<Arc<Snapshot>, ReadError>,
}

impl Snapshots {
    pub(super) fn new(daemon: Arc<Daemon>, recorder: Arc<Recorder>) -> Self {
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
        let status = self.daemon.query(&StatusQuery)?;
        let query = OffenderQuery {
            limit: None,
            within_ns: u64::try_from(NOW.as_nanos()).ok(),
            by: Grouping::Address,
            count: SHOWN,
        };
        let offenders = match self.daemon.query(&query) {
            Err(Failure(why)) => Err(why),
            Ok(list) => {
                let holds = holds(&self.daemon, &list.offenders)?;
                Ok(Offenders { list, holds })
            }
        };
        let mut incidents = self.daemon.incidents();
        incidents.reverse();
        Ok(Snapshot {
            at: wall_clock_now(),
            rates: self.rates(),
            offenders,
            bans: newest_bans(&self.daemon)?,
            limits: self.limits(&status)?,
            keys: keys(&self.daemon, &status)?,
            incidents,
            fleet: self.daemon.fleet_status(),
            status: *status,
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

    fn limits(&self, status: &Status) -> Result<Vec<LimitRow>, DatapathError> {
        let mut per_second = self.recorder.state().rates.of_limits();
        let mut left = BTreeMap::<String, Vec<LimitExplanation>>::new();
        for limit in self.daemon.totals()? {
            left.entry(limit.limit.clone()).or_default().push(limit);
        }
        let datapath = self.daemon.datapath();
        let outcomes = self.daemon.automatic_bans();
        let limits = datapath.manifest().policy.limits.iter();
        Ok(limits
            .filter_map(|limit| {
                let mut counts = format!(
                    "{} by {}",
                    limit.cost.name(),
                    id_text(limit.id_format, limit.per_name)
                );
                if !limit.matching.is_everything() {
                    counts = format!("{counts}: {}", limit.matching);
                }
                Some(LimitRow {
                    counts,
                    rate: limit.default.map(|rate| describe_rate(limit, rate)),
                    // A reload in between may have removed the limit.
                    status: status.limits.get(&limit.name)?.clone(),
                    per_second: per_second.remove(&limit.name),
                    left: left.remove(&limit.name).unwrap_or_default(),
                    bans: (limit.ban.is_some()).then(|| {
                        [Outcome::Banned, Outcome::WouldBan]
                            .map(|outcome| outcomes.of(limit.id, outcome))
                    }),
                    name: limit.name.clone(),
                })
            })
            .collect())
    }
}

impl LimitRow {
    /// Whether it does less than enforce.
    pub(super) fn only_observes(&self) -> bool {
        self.status.mode != Mode::Enforce
    }
}

/// Returns the rate of a key without an override, in words.
fn describe_rate(limit: &Limit, rate: Rate) -> String {
    let burst = count(rate.burst);
    if limit.cost == Cost::Connections {
        return format!("{burst} open at once");
    }
    let per = format!("{} per {}", count(rate.count), duration(rate.period_ns));
    if limit.strategy.has_burst() {
        format!("{per}, burst {burst}")
    } else {
        per
    }
}

/// Lists the keys with the most open connections, if a limit counts connections.
fn keys(daemon: &Daemon, status: &Status) -> Result<Vec<KeyStatus>, ReadError> {
    if status.connections.is_none() {
        return Ok(Vec::new());
    }
    let query = KeyQuery {
        limit: None,
        count: MOST_KEYS_SHOWN,
    };
    Ok(daemon.query(&query)?.keys)
}

/// Looks up until when offenders are dropped; `None` for a row that is not an address.
pub(super) fn holds(
    daemon: &Daemon,
    offenders: &[OffenderStatus],
) -> Result<Vec<Option<SourceBlock>>, DatapathError> {
    let hold = |offender: &OffenderStatus| {
        let address = offender.id.parse::<IpAddr>().ok();
        let hold = address.map(|address| daemon.hold(address, &offender.limit));
        hold.transpose()
    };
    offenders.iter().map(hold).collect()
}

/// Returns the newest bans; if there are very many, the newest of a part of them.
fn newest_bans(daemon: &Daemon) -> Result<Vec<BanStatus>, ReadError> {
    let mut found = Vec::new();
    let mut query = BansQuery::default();
    loop {
        let page = daemon.query(&query)?;
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
