//! The metrics of the standing of sources.

use std::{fmt, time::Duration};

use limiter_common::{
    cookie::CookieCheck,
    counters::Traffic,
    reason::Action,
    standing::{Standing, Tick},
};
use limiter_daemon::{StandingCount, is_reserving, traffic_by_standing};
use limiter_datapath::kernel::{Datapath, DatapathError, monotonic_now};
use limiter_protocol::counted_name;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::{census::Census, number::gauge_of};

/// The numbers behind the metrics.
pub(super) struct Standings {
    /// The traffic of sources of each standing at each limit with a reserve.
    limits: Vec<(String, Vec<StandingCount>)>,
    /// The number of sources of each standing.
    known: [u64; Standing::COUNT],
    /// The age of these numbers.
    known_age: Duration,
    is_short: bool,
    are_handshakes_recorded: bool,
    /// DNS queries by the result of their cookies.
    cookies: Vec<(CookieCheck, u64)>,
}

impl Standings {
    /// Reads the numbers; `None`: the policy in force uses no standing.
    pub(super) fn read(
        datapath: &Datapath,
        census: &Census<[u64; Standing::COUNT]>,
    ) -> Result<Option<Self>, DatapathError> {
        let sources = match datapath.known_sources() {
            Ok(sources) => sources,
            Err(DatapathError::NoStanding) => return Ok(None),
            Err(error) => return Err(error),
        };
        let limits = datapath.manifest().policy.limits.iter();
        let limits = limits
            .filter(|limit| is_reserving(limit))
            .map(|limit| Ok((limit.name.clone(), traffic_by_standing(datapath, limit.id)?)));
        let (known, known_age) = census.numbers(datapath, || sources.count())?;
        Ok(Some(Self {
            limits: limits.collect::<Result<_, DatapathError>>()?,
            known,
            known_age,
            is_short: sources.shortage()?.holds(Tick::of_ns(monotonic_now())),
            are_handshakes_recorded: datapath.handshake_status().is_ok(),
            cookies: datapath.cookie_checks()?,
        }))
    }

    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        self.traffic(
            encoder,
            "limiter_standing_packets",
            "Packets of sources of each standing that each limit with reserves passed, dropped, or \
             would have dropped if it enforced",
            |traffic| traffic.packets,
        )?;
        self.traffic(
            encoder,
            "limiter_standing_bytes",
            "Bytes of these packets, from the Ethernet header on",
            |traffic| traffic.bytes,
        )?;
        let mut family = encoder.encode_descriptor(
            "limiter_known_sources",
            "Sources in the table of known sources by standing; sources that came too seldom are \
             unknown",
            None,
            MetricType::Gauge,
        )?;
        for (standing, number) in Standing::ALL.iter().zip(self.known) {
            let labels = [("standing", standing.name())];
            let number = gauge_of(number);
            ConstGauge::new(number).encode(family.encode_family(&labels)?)?;
        }
        let age = ConstGauge::new(self.known_age.as_secs_f64());
        age.encode(encoder.encode_descriptor(
            "limiter_known_sources_age_seconds",
            "How old these numbers are, at most ten seconds: a large table is not counted at each scrape",
            None,
            MetricType::Gauge,
        )?)?;
        for (name, help, is_so) in [
            (
                "limiter_shortage",
                "1: within the last minute a limit refused a packet for its reserve",
                self.is_short,
            ),
            (
                "limiter_handshakes_noted",
                "1: handshakes prove sources, or need not; 0: they should, but cannot",
                self.are_handshakes_recorded,
            ),
        ] {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(i64::from(is_so)).encode(descriptor)?;
        }
        let mut family = encoder.encode_descriptor(
            "limiter_dns_cookies",
            "Queries that reserves would have refused, by the state of their DNS cookies",
            None,
            MetricType::Counter,
        )?;
        for (check, number) in &self.cookies {
            let labels = [("result", check.name())];
            ConstCounter::new(*number).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn traffic(
        &self,
        encoder: &mut DescriptorEncoder,
        name: &str,
        help: &str,
        number: impl Fn(&Traffic) -> u64,
    ) -> fmt::Result {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (limit, of_each) in &self.limits {
            for (standing, traffic) in of_each {
                for (decision, traffic) in [
                    (Action::Pass.name(), &traffic.passed),
                    (Action::Drop.name(), &traffic.dropped),
                    ("would_drop", &traffic.would_drop),
                ] {
                    let labels = [
                        ("limit", limit.as_str()),
                        ("standing", counted_name(*standing)),
                        ("decision", decision),
                    ];
                    ConstCounter::new(number(traffic)).encode(family.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
