//! The rules for sources' standing, and the limits that use standing.

mod forged;
mod reserve;

use std::fmt;

use limiter_common::{
    address::Family,
    standing::{Settings, Tick},
};
use serde::{Deserialize, Serialize};

pub use self::{
    forged::{ExhaustibleLimit, FORGED_SOURCES, SourceBound},
    reserve::{Reserve, ReserveSize, Step},
};
use super::{Limit, Mode};
use crate::text;

/// The rules for sources' standing. Times are in nanoseconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingSettings {
    /// The most known sources at once.
    pub capacity: u32,
    /// The number of leading bits of an IPv6 address that are one source, at most 64.
    pub ipv6_prefix: u8,
    /// The time that a source is remembered after its last visit.
    pub remember_ns: u64,
    /// The age before a shortage that a source's standing must have, or else it is fresh.
    #[serde(default = "fresh_for_ns")]
    pub fresh_for_ns: u64,
    /// The condition for familiar sources; `None`: never.
    pub visits: Option<Visits>,
    /// The condition for retried sources.
    pub retry: Retry,
    /// The accepted proofs of a source, besides operators.
    pub proven_by: Vec<Proof>,
    /// The lists of proven sources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proven: Vec<String>,
}

/// The condition for familiar sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visits {
    /// The number of separate occasions; at least 1.
    pub count: u8,
    /// The shortest time between two occasions, in nanoseconds.
    pub apart_ns: u64,
}

/// The condition for retried sources: a second try within a certain time after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// The shortest such time, in nanoseconds.
    pub after_ns: u64,
    /// The longest such time, in nanoseconds.
    pub within_ns: u64,
}

/// A proof of a source, besides operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// It completed a TCP handshake with this host.
    Handshake,
    /// It is on one of the lists under `proven`.
    List,
}

impl Proof {
    /// Every proof.
    pub const ALL: [Self; 2] = [Self::Handshake, Self::List];

    /// Returns its name in configuration files and output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::List => "list",
        }
    }
}

/// An hour: few botnets wait that long before an attack.
const fn fresh_for_ns() -> u64 {
    3_600_000_000_000
}

impl Default for StandingSettings {
    fn default() -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        Self {
            capacity: 1_000_000,
            ipv6_prefix: 64,
            remember_ns: 30 * 86_400 * SECOND_NS,
            fresh_for_ns: fresh_for_ns(),
            visits: Some(Visits {
                count: 3,
                apart_ns: 60 * SECOND_NS,
            }),
            retry: Retry {
                after_ns: SECOND_NS / 5,
                within_ns: 10 * SECOND_NS,
            },
            proven_by: Proof::ALL.to_vec(),
            proven: Vec::new(),
        }
    }
}

impl StandingSettings {
    /// The lines of the memory of first tries: 32 MiB. It recognises a retry after three seconds at a million
    /// first tries a second.
    const FIRST_TRY_LINES: u32 = 1 << 19;

    /// The visits that a CPU records in a tick of 1.07 s. More look-ups would be a large part of a packet's
    /// cost, and a source that sends so many packets is recorded anyway.
    const RECORDED_VISITS: u64 = 1 << 15;

    /// Returns the number of lines of the table of known sources. Each has four ways, so at most a quarter of
    /// the table is in use, and few lines are full.
    #[must_use]
    pub const fn lines(&self) -> u32 {
        self.capacity.next_power_of_two()
    }

    /// Returns whether a table for one can serve the other.
    #[must_use]
    pub const fn has_table_of(&self, other: &Self) -> bool {
        self.lines() == other.lines() && self.ipv6_prefix == other.ipv6_prefix
    }

    /// Returns the prefix length of a source.
    #[must_use]
    pub const fn prefix(&self, family: Family) -> u8 {
        match family {
            Family::V4 => 32,
            Family::V6 => self.ipv6_prefix,
        }
    }

    /// Returns the settings in the datapath's form.
    #[must_use]
    pub fn compiled(&self) -> Settings {
        let (visits, apart_ns) =
            (self.visits).map_or((0, 0), |visits| (u32::from(visits.count), visits.apart_ns));
        Settings {
            lines: self.lines(),
            first_try_lines: Self::FIRST_TRY_LINES,
            ipv6_prefix: u32::from(self.ipv6_prefix),
            visits,
            apart_ns,
            retry_after_ns: self.retry.after_ns,
            retry_within_ns: self.retry.within_ns,
            remember_ns: self.remember_ns,
            handshakes_prove: u32::from(self.proven_by.contains(&Proof::Handshake)),
            fresh_ticks: Tick::of_ns(self.fresh_for_ns).0,
            recorded_visits: Self::RECORDED_VISITS,
        }
    }

    /// Returns each field's name and value, as in a configuration file.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, String); 8] {
        let proofs: Vec<&str> = self.proven_by.iter().map(|proof| proof.name()).collect();
        let Retry {
            after_ns,
            within_ns,
        } = self.retry;
        let (after, within) = (text::period(after_ns), text::period(within_ns));
        [
            ("capacity", self.capacity.to_string()),
            ("ipv6-prefix", self.ipv6_prefix.to_string()),
            ("remember", text::period(self.remember_ns)),
            ("fresh-for", text::period(self.fresh_for_ns)),
            (
                "visits",
                self.visits.map_or_else(
                    || "off".to_owned(),
                    |Visits { count, apart_ns }| {
                        format!("{{count: {count}, apart: {}}}", text::period(apart_ns))
                    },
                ),
            ),
            ("retry", format!("{{after: {after}, within: {within}}}")),
            ("proven-by", format!("[{}]", proofs.join(", "))),
            ("proven", format!("[{}]", self.proven.join(", "))),
        ]
    }
}

/// Formats the section as in a configuration file.
impl fmt::Display for StandingSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields();
        let given = fields.iter().filter(|(_, value)| value != "[]");
        let given: Vec<String> = given
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        write!(formatter, "{{{}}}", given.join(", "))
    }
}

impl Limit {
    /// Returns whether it keeps a part of its buckets for sources of a higher standing.
    #[must_use]
    pub fn reserves(&self) -> bool {
        self.mode != Mode::Off && self.reserve.is_some()
    }

    /// Returns whether it needs to know the standing of sources.
    #[must_use]
    pub fn uses_standing(&self) -> bool {
        self.mode != Mode::Off
            && (self.reserve.is_some()
                || !self.matching.standing.is_empty()
                || self
                    .answers()
                    .is_some_and(|deny| deny.depends_on_standing())
                || self.ban.is_some_and(|ban| ban.only.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_four_slots_for_each_source() {
        let check = |capacity, lines| {
            let settings = StandingSettings {
                capacity,
                ..StandingSettings::default()
            };
            assert_eq!(settings.compiled().lines, lines, "{capacity}");
        };
        check(1024, 1024);
        check(1025, 2048);
        check(1_000_000, 1 << 20);
        check(1 << 24, 1 << 24);
    }

    #[test]
    fn what_the_datapath_reads() {
        let defaults = StandingSettings::default();
        let compiled = defaults.compiled();
        let expected = Settings {
            lines: 1 << 20,
            first_try_lines: 1 << 19,
            ipv6_prefix: 64,
            visits: 3,
            apart_ns: 60_000_000_000,
            retry_after_ns: 200_000_000,
            retry_within_ns: 10_000_000_000,
            remember_ns: 2_592_000_000_000_000,
            handshakes_prove: 1,
            fresh_ticks: 3_352,
            recorded_visits: 32_768,
        };
        assert_eq!(compiled, expected);
        let strict = StandingSettings {
            visits: None,
            proven_by: vec![Proof::List],
            ..defaults
        };
        let compiled = strict.compiled();
        assert_eq!((compiled.visits, compiled.handshakes_prove), (0, 0));
        assert!(
            compiled.lines > 0,
            "or the datapath would take it for unused"
        );
    }

    #[test]
    fn shown_as_configured() {
        let check = |settings: &StandingSettings, shown: &str| {
            assert_eq!(settings.to_string(), shown);
            let json = serde_json::to_string(settings).unwrap();
            let read: StandingSettings = serde_json::from_str(&json).unwrap();
            assert_eq!(read, *settings, "{json}");
        };
        let defaults = StandingSettings::default();
        check(
            &defaults,
            "{capacity: 1000000, ipv6-prefix: 64, remember: 720h, fresh-for: 1h, \
             visits: {count: 3, apart: 1m}, retry: {after: 200ms, within: 10s}, proven-by: [handshake, list]}",
        );
        check(
            &StandingSettings {
                capacity: 2048,
                visits: None,
                proven_by: vec![Proof::List],
                proven: vec!["office".to_owned(), "partners".to_owned()],
                ..defaults
            },
            "{capacity: 2048, ipv6-prefix: 64, remember: 720h, fresh-for: 1h, visits: off, \
             retry: {after: 200ms, within: 10s}, proven-by: [list], proven: [office, partners]}",
        );
    }
}
