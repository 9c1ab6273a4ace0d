//! Computes rates from counts.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    time::{Duration, Instant},
};

use ipnet::IpNet;
use limiter_common::{
    reason::{Action, Reason},
    standing::Standing,
};
use limiter_protocol::{
    AutomaticRate, ConnectionsStatus, Grouping, InterfaceStatus, KeyStatus, LimitStatus,
    OffenderStatus, ShortageStatus, StandingStatus, StandingTraffic, Status,
};
use serde::{Serialize, Serializer};

use super::{
    limits::{self, LimitCounts, LimitRates},
    rise::per_second,
    snapshot::Snapshot,
};

/// The counts of a snapshot and how fast they rise.
#[derive(Debug, Serialize)]
pub(super) struct Sample {
    /// The document has parts of it.
    #[serde(flatten, serialize_with = "parts")]
    pub(super) status: Box<Status>,
    /// How the offenders are grouped.
    pub(super) by: Grouping,
    /// Packets that passed, per second; `None`: not known yet.
    pub(super) passed_packets_per_second: Option<f64>,
    /// Packets that were dropped for any reason, per second; `None`: not known yet.
    pub(super) dropped_packets_per_second: Option<f64>,
    /// The traffic of each limit.
    pub(super) limits: BTreeMap<String, LimitRates>,
    /// The keys with the most open connections.
    pub(super) keys: Vec<KeyStatus>,
    /// Answers to refused packets per second, by limit and kind; `None`: not known yet.
    pub(super) answers_per_second: BTreeMap<String, BTreeMap<String, Option<f64>>>,
    /// The traffic of sources of each standing; `None`: no limit uses standing.
    pub(super) standing: Option<StandingRates>,
    /// Whether the offenders' drops are lower bounds.
    pub(super) lower_bound: bool,
    /// How many offenders are remembered in all.
    pub(super) remembered: u64,
    /// How many offenders were forgotten for lack of room.
    pub(super) forgotten: u64,
    /// Drops that were not recorded for lack of allowance.
    pub(super) skipped: u64,
    /// The offenders that the daemon returned.
    pub(super) offenders: Vec<Row>,
}

/// Serializes the parts of a status that the document has.
fn parts<S: Serializer>(status: &Status, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Parts<'s> {
        interfaces: &'s [InterfaceStatus],
        /// The connections that limits count; `None`: no limit counts them.
        connections: Option<&'s ConnectionsStatus>,
        /// Automatic rates, by limit.
        automatic: BTreeMap<&'s str, &'s AutomaticRate>,
    }
    let parts = Parts {
        interfaces: &status.interfaces,
        connections: status.connections.as_ref(),
        automatic: automatic(status).collect(),
    };
    parts.serialize(serializer)
}

/// Returns the automatic rates, by limit.
pub(super) fn automatic(status: &Status) -> impl Iterator<Item = (&str, &AutomaticRate)> {
    let limits = status.limits.iter();
    limits.filter_map(|(limit, status)| Some((limit.as_str(), status.automatic.as_ref()?)))
}

/// A source that one limit dropped, and the rate of its drops.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) offender: OffenderStatus,
    /// Drops per second since the previous snapshot; `None`: not known yet.
    pub(super) drops_per_second: Option<f64>,
    /// The addresses of the row; `None`: its id is not an address or a range.
    #[serde(skip)]
    pub(super) addresses: Option<IpNet>,
}

/// The traffic of sources of each standing at the limits with a reserve.
#[derive(Debug, Serialize)]
pub(super) struct StandingRates {
    /// The present shortage; `None`: there is none.
    pub(super) shortage: Option<ShortageStatus>,
    /// From the highest standing to the lowest, by limit.
    pub(super) limits: BTreeMap<String, Vec<StandingRate>>,
}

/// The traffic of sources of one standing at a limit.
#[derive(Debug, Serialize)]
pub(super) struct StandingRate {
    /// The standing; `None`: it was not looked up.
    pub(super) standing: Option<Standing>,
    /// Packets that passed, per second; `None`: not known yet.
    pub(super) passed_packets_per_second: Option<f64>,
    /// Packets that the limit dropped, or would have if it enforced, per second; `None`: not known
    /// yet.
    pub(super) refused_packets_per_second: Option<f64>,
}

/// Keeps the previous counts.
#[derive(Debug, Default)]
pub(super) struct Rates {
    before: Option<CounterReading>,
}

impl Rates {
    /// Returns a snapshot's rates since the previous one.
    pub(super) fn advance(&mut self, snapshot: Snapshot) -> Sample {
        let now = CounterReading::of(&snapshot);
        let since = self.before.as_ref().map(|before| SnapshotInterval {
            before,
            elapsed: now.at.saturating_duration_since(before.at),
        });
        let total = |count: fn(&CounterReading) -> u64| since.as_ref()?.total(&now, count);
        let standing = |status: &StandingStatus| StandingRates {
            shortage: status.shortage.clone(),
            limits: (status.limits.iter())
                .map(|(limit, traffic)| {
                    let rate = |traffic| StandingRate::new(limit, traffic, since.as_ref());
                    let rates = traffic.iter().map(rate).collect();
                    (limit.clone(), rates)
                })
                .collect(),
        };
        let answers = |(limit, status): (&String, &LimitStatus)| {
            let of_kind = status.answers.iter().map(|(answer, sent)| {
                let rate = since
                    .as_ref()
                    .and_then(|since| since.answers(limit, answer, *sent));
                (answer.clone(), rate)
            });
            let of_kind: BTreeMap<_, _> = of_kind.collect();
            (!of_kind.is_empty()).then(|| (limit.clone(), of_kind))
        };
        let by = snapshot.by;
        let row = |offender: OffenderStatus| Row {
            drops_per_second: since.as_ref().and_then(|since| since.drops(&offender)),
            // A name may look like an address.
            addresses: addresses(&offender.id).filter(|_| by != Grouping::Name),
            offender,
        };
        let sample = Sample {
            passed_packets_per_second: total(|counts| counts.passed),
            dropped_packets_per_second: total(|counts| counts.dropped),
            limits: limits::rates(
                &snapshot.status.limits,
                since
                    .as_ref()
                    .map(|since| (&since.before.limits, since.elapsed)),
            ),
            keys: snapshot.keys,
            answers_per_second: (snapshot.status.limits.iter())
                .filter_map(answers)
                .collect(),
            standing: snapshot.status.standing.as_ref().map(standing),
            by,
            lower_bound: snapshot.list.lower_bound,
            remembered: snapshot.list.remembered,
            forgotten: snapshot.list.forgotten,
            skipped: snapshot.list.skipped,
            offenders: snapshot.list.offenders.into_iter().map(row).collect(),
            status: snapshot.status,
        };
        self.before = Some(now);
        sample
    }
}

#[derive(Debug)]
struct CounterReading {
    at: Instant,
    /// Packets that passed.
    passed: u64,
    /// Packets that were dropped.
    dropped: u64,
    /// Packets that passed and were refused, by limit.
    limits: LimitCounts,
    /// Drops by limit and id.
    drops: HashMap<(String, String), u64>,
    /// Packets that passed and that were refused, by limit and standing.
    standings: HashMap<(String, Option<Standing>), [u64; 2]>,
    /// Sent answers, by limit and kind.
    answers: HashMap<(String, String), u64>,
}

impl CounterReading {
    fn of(snapshot: &Snapshot) -> Self {
        let drops = snapshot.list.offenders.iter();
        let drops = drops.map(|offender| (key(offender), offender.drops));
        let limits = snapshot.status.standing.iter();
        let limits = limits.flat_map(|standing| &standing.limits);
        let standings = limits.flat_map(|(limit, traffic)| {
            let of_each = traffic.iter();
            of_each.map(|traffic| ((limit.clone(), traffic.standing), outcomes(traffic)))
        });
        let of_limits = snapshot.status.limits.iter();
        let answers = of_limits.flat_map(|(limit, status)| {
            let of_kind = status.answers.iter();
            of_kind.map(|(answer, sent)| ((limit.clone(), answer.clone()), *sent))
        });
        Self {
            at: snapshot.at,
            passed: packets(&snapshot.status, Action::Pass),
            dropped: packets(&snapshot.status, Action::Drop),
            limits: limits::counts(&snapshot.status.limits),
            drops: drops.collect(),
            standings: standings.collect(),
            answers: answers.collect(),
        }
    }
}

impl Sample {
    /// Returns the rate of answers of all limits, per second; `None`: not known yet.
    pub(super) fn all_answers_per_second(&self) -> Option<f64> {
        let of_limits = self.answers_per_second.values();
        of_limits.flat_map(BTreeMap::values).copied().sum()
    }
}

impl StandingRate {
    fn new(limit: &str, traffic: &StandingTraffic, since: Option<&SnapshotInterval<'_>>) -> Self {
        let standing = traffic.standing;
        let rates = since.and_then(|since| {
            let key = (limit.to_owned(), standing);
            let before = since.before.standings.get(&key)?;
            let mut pairs = outcomes(traffic).into_iter().zip(before);
            let mut rate = || {
                let (now, before) = pairs.next()?;
                since.per_second(now.checked_sub(*before)?)
            };
            Some([rate(), rate()])
        });
        let [passed, refused] = rates.unwrap_or_default();
        Self {
            standing,
            passed_packets_per_second: passed,
            refused_packets_per_second: refused,
        }
    }
}

/// Returns the number of passed and of refused packets.
const fn outcomes(traffic: &StandingTraffic) -> [u64; 2] {
    let StandingTraffic {
        passed_packets,
        dropped_packets,
        would_drop_packets,
        ..
    } = traffic;
    [*passed_packets, *dropped_packets + *would_drop_packets]
}

/// The time between two snapshots. A count that fell was reset: the daemon restarted, or an offender was
/// forgotten and came back.
struct SnapshotInterval<'c> {
    before: &'c CounterReading,
    elapsed: Duration,
}

impl SnapshotInterval<'_> {
    fn total(&self, now: &CounterReading, count: fn(&CounterReading) -> u64) -> Option<f64> {
        self.per_second(count(now).checked_sub(count(self.before))?)
    }

    fn drops(&self, now: &OffenderStatus) -> Option<f64> {
        let before = self.before.drops.get(&key(now));
        let rose = match before.and_then(|before| now.drops.checked_sub(*before)) {
            Some(rose) => rose,
            // The row is new, so all its drops are.
            None if u128::from(now.first_drop_ago_ns) <= self.elapsed.as_nanos() => now.drops,
            // It existed before, but was not listed because other rows had more drops.
            None => return None,
        };
        self.per_second(rose)
    }

    fn answers(&self, limit: &str, answer: &str, now: u64) -> Option<f64> {
        let key = (limit.to_owned(), answer.to_owned());
        let before = self.before.answers.get(&key)?;
        self.per_second(now.checked_sub(*before)?)
    }

    fn per_second(&self, rose: u64) -> Option<f64> {
        per_second(rose, self.elapsed)
    }
}

fn key(offender: &OffenderStatus) -> (String, String) {
    (offender.dropper(), offender.id.clone())
}

/// Counts the packets with a verdict, over all reasons.
fn packets(status: &Status, wanted: Action) -> u64 {
    let malformed = status.policy.malformed;
    let reasons = Reason::ALL.iter();
    reasons
        .filter(|reason| reason.action(malformed) == wanted)
        .filter_map(|reason| status.reasons.get(reason.name()))
        .sum()
}

/// Parses an id that is an address or a range.
fn addresses(id: &str) -> Option<IpNet> {
    let one = |address: IpAddr| address.into();
    id.parse().or_else(|_| id.parse().map(one)).ok()
}

#[cfg(test)]
mod tests {
    use super::{
        super::testing::{automatic, first_dropped, offender, snapshot},
        *,
    };
    use limiter_protocol::LimitStatus;

    fn rates(sample: &Sample) -> Vec<Option<f64>> {
        let rows = sample.offenders.iter();
        rows.map(|row| row.drops_per_second).collect()
    }

    fn totals(sample: &Sample) -> [Option<f64>; 2] {
        [
            sample.passed_packets_per_second,
            sample.dropped_packets_per_second,
        ]
    }

    #[test]
    fn counts_rise() {
        let mut all = Rates::default();
        let first = all.advance(snapshot(0, [100, 10], [offender("L", "192.0.2.1", 10)]));
        assert_eq!((rates(&first), totals(&first)), (vec![None], [None, None]));

        let offenders = [
            offender("L", "192.0.2.1", 40),
            // Another limit's offenders, first dropped meanwhile and long before.
            first_dropped("M", "192.0.2.1", 30, 1),
            offender("M", "192.0.2.2", 20),
        ];
        let second = all.advance(snapshot(2, [100, 90], offenders));
        assert_eq!(rates(&second), [Some(15.0), Some(15.0), None]);
        assert_eq!(totals(&second), [Some(0.0), Some(40.0)]);
    }

    #[test]
    fn a_daemon_that_was_started_again_gives_no_negative_rate() {
        let mut all = Rates::default();
        all.advance(snapshot(0, [100, 50], [offender("L", "192.0.2.1", 50)]));
        let again = [first_dropped("L", "192.0.2.1", 8, 1)];
        let sample = all.advance(snapshot(4, [7, 8], again));
        assert_eq!(
            (rates(&sample), totals(&sample)),
            (vec![Some(2.0)], [None; 2])
        );

        let fell = [offender("L", "192.0.2.1", 7)];
        let sample = all.advance(snapshot(5, [9, 9], fell));
        assert_eq!(rates(&sample), [None]);
        assert_eq!(totals(&sample), [Some(2.0), Some(1.0)]);
    }

    #[test]
    fn automatic_rates_are_in_the_document() {
        let mut snapshot = snapshot(0, [0, 0], []);
        let (all, fixed) = (
            automatic(52_000),
            LimitStatus {
                answers: BTreeMap::new(),
                automatic: None,
                ..automatic(1)
            },
        );
        snapshot.status.limits = [("All".to_owned(), all), ("Fixed".to_owned(), fixed)].into();
        let document = serde_json::to_value(Rates::default().advance(snapshot)).unwrap();
        let expected = serde_json::json!({
            "All": {"rate": 52_000, "floor": 5_000, "ceiling": 1_000_000, "overload": [], "error": null},
        });
        assert_eq!(document["automatic"], expected);
    }

    #[test]
    fn answers_of_each_limit_and_of_all() {
        let at = |second, sent: &[(&str, &[(&str, u64)])]| {
            let mut snapshot = snapshot(second, [0, 0], []);
            let limits = sent.iter().map(|(limit, answers)| {
                let answers = answers.iter();
                let status = LimitStatus {
                    answers: answers
                        .map(|(name, sent)| ((*name).to_owned(), *sent))
                        .collect(),
                    ..automatic(1)
                };
                ((*limit).to_owned(), status)
            });
            snapshot.status.limits = limits.collect();
            snapshot
        };
        let mut all = Rates::default();
        let silent = all.advance(at(0, &[("Silent", &[])]));
        assert!(silent.answers_per_second.is_empty());
        let first = all.advance(at(2, &[("Dns", &[("truncate", 7)])]));
        assert_eq!(first.all_answers_per_second(), None);
        let later = [
            ("Dns", &[("truncate", 11)][..]),
            ("Silent", &[]),
            ("Web", &[("prohibited", 3), ("reset", 4)]),
        ];
        let second = all.advance(at(4, &later));
        // The rate of a new count is unknown, and so is the sum.
        assert_eq!(second.all_answers_per_second(), None);
        let last = [
            ("Dns", &[("truncate", 12)][..]),
            ("Web", &[("prohibited", 3), ("reset", 14)]),
        ];
        let third = all.advance(at(6, &last));
        assert_eq!(third.all_answers_per_second(), Some(5.5));
        let document = serde_json::to_value(third).unwrap();
        let expected = serde_json::json!({
            "Dns": {"truncate": 0.5},
            "Web": {"prohibited": 0.0, "reset": 5.0},
        });
        assert_eq!(document["answers_per_second"], expected);
    }

    #[test]
    fn at_the_same_time_nothing_is_known() {
        let mut all = Rates::default();
        let rows = || [offender("L", "192.0.2.1", 50)];
        all.advance(snapshot(3, [1, 1], rows()));
        let sample = all.advance(snapshot(3, [2, 2], rows()));
        assert_eq!((rates(&sample), totals(&sample)), (vec![None], [None; 2]));
    }

    #[test]
    fn ids_are_addresses_or_ranges() {
        let check = |id: &str, expected: Option<&str>| {
            assert_eq!(addresses(id), expected.map(|text| text.parse().unwrap()));
        };
        check("192.0.2.1", Some("192.0.2.1/32"));
        check("2001:db8::/64", Some("2001:db8::/64"));
        check("eth0", None);
    }
}
