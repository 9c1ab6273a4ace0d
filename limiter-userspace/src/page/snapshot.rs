//! What all visitors see: read at most once a second, whoever asks.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_common::{limit::Cost, reason::Reason};
use limiter_datapath::kernel::{DatapathError, wall_clock_now};
use limiter_policy::policy::{Limit, Mode, Rate, id_text};
use thiserror::Error;

use super::{rates::LimitRate, recorder::Recorder};
use crate::{
    cli::render::{count, duration},
    daemon::{Daemon, Hold, IncidentNote, automatic::Outcome},
    fresh::Fresh,
    protocol::{
        Answer, FleetStatus, Grouping, LimitExplanation, LimitStatus, OffenderList, OffenderQuery,
        OffenderStatus, OwnerQuery, OwnerStatus, Request, Status,
        bans::{BanStatus, BansPage, BansQuery},
    },
};

/// Who was dropped in so long is dropped now.
const NOW: Duration = Duration::from_mins(1);

/// How many sources and bans the overview shows.
const SHOWN: u32 = 20;

/// How many owners of open connections it shows, of all limits together.
const MOST_OWNERS_SHOWN: u32 = 100;

/// Of so many bans at least the newest are shown.
const MOST_BANS: usize = 5_000;

/// The page shows nothing.
#[derive(Debug, Error)]
pub(super) enum ReadError {
    /// The daemon does not answer.
    #[error("cannot read the page's data: {0}")]
    Refused(String),
    /// The kernel does not.
    #[error("cannot read the page's data: {0}")]
    Datapath(#[from] DatapathError),
}

/// What the overview shows.
pub(super) struct Snapshot {
    pub(super) at: Timestamp,
    pub(super) status: Status,
    /// Packets per second by reason.
    pub(super) rates: BTreeMap<&'static str, f64>,
    /// Who is dropped most, of those that are dropped now, or why that is not known.
    pub(super) offenders: Result<Offenders, String>,
    /// The newest bans.
    pub(super) bans: Vec<BanStatus>,
    pub(super) limits: Vec<LimitRow>,
    /// Those who have the most connections open.
    pub(super) owners: Vec<OwnerStatus>,
    /// The newest first.
    pub(super) incidents: Vec<IncidentNote>,
    /// What is known of the fleet; `None`: the host is alone.
    pub(super) fleet: Option<FleetStatus>,
}

/// Sources that are dropped.
pub(super) struct Offenders {
    pub(super) list: OffenderList,
    /// Why and until when, for each that is listed and is an address.
    pub(super) holds: Vec<Option<Hold>>,
}

/// A limit.
pub(super) struct LimitRow {
    pub(super) name: String,
    /// What it counts, by whom and of which packets.
    pub(super) counts: String,
    /// Its rate; `None`: only ids with an override have one.
    pub(super) rate: Option<String>,
    pub(super) status: LimitStatus,
    /// In packets per second; `None`: not known yet.
    pub(super) per_second: Option<LimitRate>,
    /// What is left for all sources together; empty: each has its own bucket.
    pub(super) left: Vec<LimitExplanation>,
    /// How many sources it has banned, and would have; `None`: it bans nobody.
    pub(super) bans: Option<[u64; 2]>,
}

/// Reads snapshots.
pub(super) struct Snapshots {
    daemon: Arc<Daemon>,
    recorder: Arc<Recorder>,
    last: Fresh<Arc<Snapshot>, ReadError>,
}

impl Snapshots {
    pub(super) fn new(daemon: Arc<Daemon>, recorder: Arc<Recorder>) -> Self {
        Self {
            daemon,
            recorder,
            last: Fresh::new(),
        }
    }

    /// Returns a snapshot that is at most a second old.
    pub(super) fn newest(&self) -> Result<Arc<Snapshot>, Arc<ReadError>> {
        (self.last).or_make(Instant::now, || self.read().map(Arc::new))
    }

    fn read(&self) -> Result<Snapshot, ReadError> {
        let Answer::Status(status) = ask(&self.daemon, &Request::Status)? else {
            return Err(unexpected());
        };
        let query = OffenderQuery {
            limit: None,
            within_ns: u64::try_from(NOW.as_nanos()).ok(),
            by: Grouping::Address,
            count: SHOWN,
        };
        let offenders = match offenders(&self.daemon, query) {
            Err(ReadError::Refused(why)) => Err(why),
            offenders => {
                let list = offenders?;
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
            owners: owners(&self.daemon, &status)?,
            incidents,
            fleet: self.daemon.fleet_status(),
            status: *status,
        })
    }

    fn rates(&self) -> BTreeMap<&'static str, f64> {
        let recorded = self.recorder.recorded();
        let newest = recorded.history.seconds().slots().next_back();
        let reasons = Reason::ALL.iter().enumerate();
        newest.map_or_else(BTreeMap::new, |slot| {
            let rates = reasons.map(|(number, reason)| (reason.name(), slot.rate(number)));
            rates.collect()
        })
    }

    fn limits(&self, status: &Status) -> Result<Vec<LimitRow>, DatapathError> {
        let mut per_second = self.recorder.recorded().rates.of_limits();
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
                    rate: limit.default.map(|rate| told(limit, rate)),
                    // A reload may have come in between.
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

/// Says how much a limit grants an owner without an override.
fn told(limit: &Limit, rate: Rate) -> String {
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

/// Asks the daemon.
pub(super) fn ask(daemon: &Daemon, request: &Request) -> Result<Answer, ReadError> {
    match daemon.look(request) {
        Answer::Error(why) => Err(ReadError::Refused(why)),
        answer => Ok(answer),
    }
}

/// Never happens: the daemon answers what it was asked.
pub(super) fn unexpected() -> ReadError {
    ReadError::Refused("the daemon gave an unexpected answer".to_owned())
}

/// Lists offenders.
pub(super) fn offenders(daemon: &Daemon, query: OffenderQuery) -> Result<OffenderList, ReadError> {
    match ask(daemon, &Request::Offenders(query))? {
        Answer::Offenders(list) => Ok(list),
        _ => Err(unexpected()),
    }
}

/// Lists those who have the most connections open, if a limit counts any.
fn owners(daemon: &Daemon, status: &Status) -> Result<Vec<OwnerStatus>, ReadError> {
    if status.connections.is_none() {
        return Ok(Vec::new());
    }
    let query = OwnerQuery {
        limit: None,
        count: MOST_OWNERS_SHOWN,
    };
    match ask(daemon, &Request::Connections(query))? {
        Answer::Connections(list) => Ok(list.owners),
        _ => Err(unexpected()),
    }
}

/// Finds until when offenders are dropped, if they are addresses.
pub(super) fn holds(
    daemon: &Daemon,
    offenders: &[OffenderStatus],
) -> Result<Vec<Option<Hold>>, DatapathError> {
    let hold = |offender: &OffenderStatus| {
        let address = offender.id.parse::<IpAddr>().ok();
        let hold = address.map(|address| daemon.hold(address, &offender.limit));
        hold.transpose()
    };
    offenders.iter().map(hold).collect()
}

/// Reads some bans.
pub(super) fn bans(daemon: &Daemon, query: BansQuery) -> Result<BansPage, ReadError> {
    match ask(daemon, &Request::Bans(query))? {
        Answer::Bans(page) => Ok(page),
        _ => Err(unexpected()),
    }
}

/// Returns the newest bans; if there are very many, of a part of them.
fn newest_bans(daemon: &Daemon) -> Result<Vec<BanStatus>, ReadError> {
    let mut found = Vec::new();
    let mut query = BansQuery::default();
    loop {
        let page = bans(daemon, query.clone())?;
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
