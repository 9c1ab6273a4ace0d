//! Warnings about the packets behind a suggestion.

use limiter_policy::text::{count, period};

use super::{
    drops::ratio,
    observer::{MOST_SERVICES, Observation, ServiceTraffic},
    peaks::windows,
    proposal::{ServiceProposal, Suggestion},
    service::Service,
};

const SECOND_NS: u64 = 1_000_000_000;

/// A shorter capture misses the peaks of an hour or a day.
const SHORT_NS: u64 = 60 * SECOND_NS;

/// With fewer sources, the next one may behave differently.
const FEW_SOURCES: u64 = 20;

/// A second may be a flood if it has this many times the packets of the median second, and at least this many
/// packets.
const JUMP: u64 = 10;
const JUMP_PACKETS: u64 = 1000;

/// This many sources with next to no packets each may be forged.
const CROWD: usize = 1000;

/// The largest expected ratio between the fractions that the halves drop.
const FACTOR: f64 = 2.0;

/// With fewer dropped packets, their fraction means nothing.
const TELLING_DROPS: u64 = 50;

/// Returns the reasons not to rely on a suggestion.
#[must_use]
pub fn warnings(observed: &Observation, suggestion: &Suggestion) -> Vec<String> {
    let mut warnings = Vec::new();
    if suggestion.duration_ns < SHORT_NS {
        warnings.push(format!(
            "only {} were seen, so the peaks of an hour or a day are missing: watch for longer",
            period(suggestion.duration_ns)
        ));
    }
    warnings.extend(of_ways(observed));
    for proposed in &suggestion.services {
        if let Some(seen) = observed.services.get(&proposed.service)
            && !proposed.limits.is_empty()
        {
            warnings.extend(of_service(proposed, seen));
        }
    }
    if suggestion.left_out > 0 {
        warnings.push(format!(
            "{} limits of the least busy services are left out, as a configuration has no room for \
             them: name services with --service",
            suggestion.left_out
        ));
    }
    warnings
}

fn of_ways(observed: &Observation) -> Vec<String> {
    let ways = &observed.ways;
    let mut warnings = Vec::new();
    if !observed.two_way && ways.to_services > 0 {
        warnings.push(
            "no packet that this host sends was seen, so which ports it serves is a guess: capture \
             both directions, or name services with --service"
                .to_owned(),
        );
    }
    if ways.beyond > 0 {
        warnings.push(format!(
            "{} packets went to more than {MOST_SERVICES} services, and do not count: name services \
             with --service",
            count(ways.beyond)
        ));
    }
    if ways.merged > 0 {
        warnings.push(format!(
            "{} frames are longer than the link's packets: the card or the kernel put several \
             together, and each counts as that many; for exact counts `ethtool -K INTERFACE gro \
             off` before you watch",
            count(ways.merged)
        ));
    }
    if ways.out_of_time > 0 {
        warnings.push(format!(
            "{} packets are more than a year from the first, and do not count",
            count(ways.out_of_time)
        ));
    }
    warnings
}

fn of_service(proposed: &ServiceProposal, seen: &ServiceTraffic) -> Vec<String> {
    let service = proposed.service;
    let mut warnings = Vec::new();
    if proposed.sources < FEW_SOURCES {
        warnings.push(format!(
            "{service}: only {} sources were seen: the next one may send more",
            proposed.sources
        ));
    }
    warnings.extend(jump(service, seen));
    warnings.extend(crowd(service, seen));
    if let Some(limit) = proposed.limits.iter().find(|limit| {
        limit.holdout.is_some_and(|halves| {
            let (learned, tested) = (halves.learned.fraction(), halves.tested.fraction());
            let dropped = halves.learned.dropped.max(halves.tested.dropped);
            dropped >= TELLING_DROPS && tested > FACTOR * learned
        })
    }) {
        warnings.push(format!(
            "{service}: the second half of the time is busier than the first: {} would drop more \
             than twice as much of it: watch for longer",
            limit.name
        ));
    }
    warnings
}

/// Warns of a second with far more packets than most.
fn jump(service: Service, seen: &ServiceTraffic) -> Option<String> {
    let windows = windows(seen.total.entries(), SECOND_NS.cast_signed());
    let (highest_at, highest) = windows.iter().max_by_key(|(_, packets)| **packets)?;
    let (first, last) = (windows.keys().next()?, windows.keys().next_back()?);
    let seconds = usize::try_from(last.abs_diff(*first))
        .ok()?
        .saturating_add(1);
    let mut packets: Vec<_> = windows.values().copied().collect();
    packets.sort_unstable();
    // Sorted, seconds without packets would come first.
    let empty = seconds.saturating_sub(packets.len());
    let median = (seconds / 2).checked_sub(empty);
    let median = median.and_then(|at| packets.get(at)).copied().unwrap_or(0);
    (*highest >= JUMP_PACKETS && *highest > JUMP * median).then(|| {
        format!(
            "{service}: {} packets came in second {highest_at}, {} in most others: if that was a \
             flood, use packets of a time without it, or the limits will admit it",
            count(*highest),
            count(median)
        )
    })
}

/// Warns of many sources that send next to nothing each, or never finish a connection.
fn crowd(service: Service, seen: &ServiceTraffic) -> Option<String> {
    let mut sources = vec![(0_u64, 0_u64); seen.sources.sources().len()];
    for entry in seen.sources.entries() {
        let (packets, connections) = sources.get_mut(entry.source as usize)?;
        *packets += u64::from(entry.sent.packets);
        *connections += u64::from(entry.sent.connections);
    }
    let all: u64 = sources.iter().map(|(packets, _)| packets).sum();
    let is_vain = |(packets, connections): &&(u64, u64)| {
        if service.is_tcp() {
            packets == connections
        } else {
            *packets == 1
        }
    };
    let vain = sources.iter().filter(is_vain);
    let of_vain: u64 = vain.clone().map(|(packets, _)| packets).sum();
    let habit = if service.is_tcp() {
        "only began connections and went on with none"
    } else {
        "sent one packet each"
    };
    (vain.clone().count() >= CROWD && of_vain * 2 > all).then(|| {
        format!(
            "{service}: {} of {} sources {habit}, {:.0} % of its packets: if they are forged or \
             scan, use packets of a time without them",
            count(vain.count() as u64),
            count(sources.len() as u64),
            100.0 * ratio(of_vain, all)
        )
    })
}
