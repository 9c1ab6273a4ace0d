//! The metrics of the standing of sources.

use std::fmt;

use limiter_common::{reason::Action, standing::Standing};
use limiter_protocol::{
    StandingStatus, StandingTraffic, counted_name,
    web::{KnownSources, Measurements},
};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::plain::gauge_of;

/// Encodes the sources and their traffic, under a policy that uses standing.
pub(super) fn encode(measurements: &Measurements, encoder: &mut DescriptorEncoder) -> fmt::Result {
    if let Some(standing) = &measurements.status.standing {
        status(standing, encoder)?;
    }
    if let Some(known) = &measurements.known_sources {
        sources(known, encoder)?;
    }
    Ok(())
}

fn status(status: &StandingStatus, encoder: &mut DescriptorEncoder) -> fmt::Result {
    traffic(
        status,
        encoder,
        "limiter_standing_packets",
        "Packets of sources of each standing that each limit with reserves passed, dropped, or \
         would have dropped if it enforced",
        |traffic| {
            [
                traffic.passed_packets,
                traffic.dropped_packets,
                traffic.would_drop_packets,
            ]
        },
    )?;
    traffic(
        status,
        encoder,
        "limiter_standing_bytes",
        "Bytes of these packets, from the Ethernet header on",
        |traffic| {
            [
                traffic.passed_bytes,
                traffic.dropped_bytes,
                traffic.would_drop_bytes,
            ]
        },
    )?;
    let mut family = encoder.encode_descriptor(
        "limiter_dns_cookies",
        "Queries that reserves would have refused, by the state of their DNS cookies",
        None,
        MetricType::Counter,
    )?;
    for (check, number) in &status.dns_cookies {
        let labels = [("result", check.as_str())];
        ConstCounter::new(*number).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Encodes the `numbers` of packets that passed, were dropped, and would have been dropped.
fn traffic(
    status: &StandingStatus,
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    numbers: impl Fn(&StandingTraffic) -> [u64; 3],
) -> fmt::Result {
    let decisions = [Action::Pass.name(), Action::Drop.name(), "would_drop"];
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (limit, of_each) in &status.limits {
        for traffic in of_each {
            for (decision, number) in decisions.into_iter().zip(numbers(traffic)) {
                let labels = [
                    ("limit", limit.as_str()),
                    ("standing", counted_name(traffic.standing)),
                    ("decision", decision),
                ];
                ConstCounter::new(number).encode(family.encode_family(&labels)?)?;
            }
        }
    }
    Ok(())
}

fn sources(known: &KnownSources, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let mut family = encoder.encode_descriptor(
        "limiter_known_sources",
        "Sources in the table of known sources by standing; sources that came too seldom are \
         unknown",
        None,
        MetricType::Gauge,
    )?;
    for (standing, number) in Standing::ALL.iter().zip(known.by_standing) {
        let labels = [("standing", standing.name())];
        ConstGauge::new(gauge_of(number)).encode(family.encode_family(&labels)?)?;
    }
    ConstGauge::new(known.age.as_secs_f64()).encode(encoder.encode_descriptor(
        "limiter_known_sources_age_seconds",
        "How old these numbers are, at most ten seconds: a large table is not counted at each scrape",
        None,
        MetricType::Gauge,
    )?)
}
