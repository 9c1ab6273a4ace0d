//! The replay as JSON lines: an object for each packet, then the summary.

use std::{collections::BTreeMap, io::Write};

use limiter_common::{
    answer::Answer,
    reason::{Action, Reason},
    standing::Standing,
};
use limiter_offline::replay::{ReplayedBans, ReplayedPacket, Summary, limit_indices};
use limiter_policy::policy::{KeyNames, Mode, Policy, bucket_id};
use serde::{Serialize, Serializer};

use super::{
    at_end::FinalState, automatic, bans::Bans, connections::Connections, sieves::SieveEnd,
    standing::ProofCounts,
};

#[derive(Serialize)]
struct Packet<'a> {
    n: u64,
    t_ns: i64,
    verdict: &'static str,
    reason: &'static str,
    limit: Option<&'a str>,
    id: Option<String>,
    remaining: Option<u64>,
    retry_in_ns: Option<u64>,
    reset_in_ns: Option<u64>,
    /// The answer sent back, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<&'static str>,
    /// The standing of its source, if it was looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    standing: Option<Standing>,
    /// The observing limits that would have dropped it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    would_drop: Vec<&'a str>,
}

/// Writes a packet. `names`: the names of the key of its bucket.
pub(super) fn packet(
    out: &mut impl Write,
    policy: &Policy,
    names: &KeyNames<'_>,
    packet: &ReplayedPacket,
) -> anyhow::Result<()> {
    let strictest = packet.strictest.as_ref();
    let name = |limit_index: u32| Some(policy.limits.get(limit_index as usize)?.name.as_str());
    let line = Packet {
        n: packet.number,
        t_ns: packet.t_ns,
        verdict: packet.action.name(),
        reason: packet.verdict.reason.name(),
        limit: strictest
            .map_or(packet.verdict.refused_by(), |strictest| {
                Some(strictest.limit_index)
            })
            .and_then(name),
        id: strictest.map(|strictest| bucket_id(&strictest.key, names)),
        remaining: strictest.map(|strictest| strictest.report.remaining),
        retry_in_ns: strictest.and_then(|strictest| strictest.report.retry_in_ns),
        reset_in_ns: strictest.map(|strictest| strictest.report.reset_in_ns),
        answer: match packet.verdict.answer() {
            Answer::Drop => None,
            answer => Some(answer.name()),
        },
        standing: packet.verdict.standing(),
        would_drop: limit_indices(packet.verdict.would_drop)
            .filter_map(name)
            .collect(),
    };
    write_line(out, &line)
}

#[derive(Serialize)]
struct LastLine<'a> {
    summary: ReplaySummary<'a>,
}

#[derive(Serialize)]
struct ReplaySummary<'a> {
    packets: u64,
    passed: u64,
    dropped: u64,
    by_reason: ByReason<'a>,
    by_limit: ByLimit<'a>,
    /// The number of sent answers, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    answered: BTreeMap<&'static str, u64>,
    /// The assumed automatic rates, in tokens a second.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    automatic_rates: BTreeMap<&'a str, u64>,
    /// Present if limits ban.
    #[serde(skip_serializing_if = "Option::is_none")]
    bans: Option<Bans<'a>>,
    /// Present if limits use standing.
    #[serde(skip_serializing_if = "Option::is_none")]
    by_standing: Option<ByStanding<'a>>,
    /// The proofs of sources; present if limits use standing.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_by: Option<Proofs>,
    /// Present if limits count connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    connections: Option<Connections>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sieves: Vec<SieveEnd<'a>>,
    /// Present if there are sieves.
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
}

/// All reasons, including unused ones, in the order of their table.
struct ByReason<'a>(&'a Summary);

impl Serialize for ByReason<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let packets = |reason: &Reason| (reason.name(), self.0.reason(*reason).packets);
        serializer.collect_map(Reason::ALL.iter().map(packets))
    }
}

/// All limits in the order of their ids.
struct ByLimit<'a>(&'a Policy, &'a Summary);

/// Every standing, from the highest to the lowest.
struct ByStanding<'a>(&'a Summary);

#[derive(Serialize)]
struct StandingCounts {
    passed: u64,
    dropped: u64,
}

impl Serialize for ByStanding<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let standings = Standing::ALL.iter().zip(self.0.standings());
        serializer.collect_map(standings.map(|(standing, traffic)| {
            let counts = StandingCounts {
                passed: traffic.passed.packets,
                dropped: traffic.dropped.packets,
            };
            (standing.name(), counts)
        }))
    }
}

#[derive(Serialize)]
struct Proofs {
    assumed_prefixes: usize,
    handshakes: u64,
    /// Handshakes that clients began and did not complete, which prove no source.
    handshakes_not_completed: u64,
    /// Handshakes without the server's segments in the capture.
    handshakes_without_answer: u64,
    /// Present if the policy checks DNS cookies.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_dns_cookies: Option<u64>,
}

#[derive(Serialize)]
struct LimitCounts {
    passed: u64,
    dropped: u64,
    /// Present if the limit observes.
    #[serde(skip_serializing_if = "Option::is_none")]
    would_drop: Option<u64>,
}

impl Serialize for ByLimit<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let limits = self.0.limits.iter().zip(self.1.limits());
        serializer.collect_map(limits.map(|(limit, traffic)| {
            let counts = LimitCounts {
                passed: traffic.passed.packets,
                dropped: traffic.dropped.packets,
                would_drop: (limit.mode == Mode::Observe).then_some(traffic.would_drop.packets),
            };
            (&limit.name, counts)
        }))
    }
}

pub(super) fn summary(
    out: &mut impl Write,
    policy: &Policy,
    summary: &Summary,
    bans: Option<ReplayedBans<'_>>,
    at_end: &FinalState,
    known: ProofCounts,
) -> anyhow::Result<()> {
    let uses_standing = policy.uses_standing();
    let at = &at_end.sieves;
    let (passed, dropped) = (
        summary.of(Action::Pass).packets,
        summary.of(Action::Drop).packets,
    );
    let line = LastLine {
        summary: ReplaySummary {
            packets: passed + dropped,
            passed,
            dropped,
            by_reason: ByReason(summary),
            by_limit: ByLimit(policy, summary),
            answered: (summary.answered())
                .map(|(answer, number)| (answer.name(), number))
                .collect(),
            automatic_rates: automatic::rates(policy),
            bans: bans.map(|bans| Bans::new(policy, bans)),
            by_standing: uses_standing.then_some(ByStanding(summary)),
            known_by: uses_standing.then_some(Proofs {
                assumed_prefixes: known.assumed.known,
                handshakes: known.handshakes.completed,
                handshakes_not_completed: (known.handshakes.begun)
                    .saturating_sub(known.handshakes.completed),
                handshakes_without_answer: known.handshakes.assumed,
                valid_dns_cookies: known.valid_cookies,
            }),
            connections: at_end.connections.map(Into::into),
            sieves: (at.sieves.iter())
                .map(|sieve| SieveEnd::new(policy, sieve))
                .collect(),
            cpus: (!at.sieves.is_empty()).then_some(at.cpus),
        },
    };
    write_line(out, &line)
}

fn write_line(out: &mut impl Write, line: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string(line)?;
    writeln!(out, "{text}")?;
    Ok(())
}
