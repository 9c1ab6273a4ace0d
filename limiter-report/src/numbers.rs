//! The numbers of the status without labels, each once: its value, its metric and, where people read it, its words. The
//! terminal, the page and Prometheus show the rows of this table.

use limiter_protocol::{ConnectionsStatus, StandingStatus, StateStatus, Status};

use crate::render::{count, counted};

/// A number of the status.
pub struct Number {
    /// `None`: Prometheus does not get it.
    pub metric: Option<Metric>,
    /// `None`: the status lacks it.
    pub value: fn(&Status) -> Option<u64>,
    words: Option<Words>,
}

/// A number in Prometheus.
pub struct Metric {
    /// Its name, without the ending of counters.
    pub name: &'static str,
    /// Its description.
    pub help: &'static str,
    /// Its type.
    pub kind: Kind,
}

/// The type of a metric.
#[derive(Clone, Copy)]
pub enum Kind {
    /// It rises until the daemon ends.
    Counter,
    /// It rises and falls.
    Gauge,
}

/// A number in words.
struct Words {
    about: Subject,
    text: fn(u64) -> String,
}

/// The thing that a number is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The policy in force.
    Policy,
    /// The buckets.
    Buckets,
    /// The open connections.
    Connections,
}

/// Returns the words for the numbers about a subject.
#[must_use]
pub fn words(status: &Status, subject: Subject) -> String {
    let about = |number: &Number| {
        let words = number.words.as_ref();
        let words = words.filter(|words| words.about == subject)?;
        Some((words.text)((number.value)(status)?))
    };
    let words: Vec<_> = NUMBERS.iter().filter_map(about).collect();
    words.join(", ")
}

/// All of them. A subject's words have their order.
pub const NUMBERS: [Number; 14] = [
    number(|status| Some(status.policy.limits as u64))
        .in_words(Subject::Policy, |limits| things(limits, "limit")),
    number(|status| Some(status.policy.overrides as u64))
        .in_words(Subject::Policy, |overrides| things(overrides, "override")),
    number(|status| Some(seconds(status.policy.loaded_at.as_second()))).gauge(
        "limiter_policy_loaded_timestamp_seconds",
        "When the policy in force was loaded, in seconds since 1970",
    ),
    number(|status| {
        let last = status.daemon.as_ref()?.reloads.last.as_ref();
        Some(last.is_some_and(|last| last.error.is_some()).into())
    })
    .gauge(
        "limiter_last_reload_failed",
        "1: the last reload failed and changed nothing",
    ),
    number(|status| Some(status.buckets.lossy_evictions))
        .counter(
            "limiter_bucket_lossy_evictions",
            "Buckets forgotten in debt for lack of room",
        )
        .in_words(Subject::Buckets, |evictions| {
            format!("{} forgotten while in debt", count(evictions))
        }),
    number(|status| Some(status.bans.settings.capacity.into())).gauge(
        "limiter_bans_capacity",
        "The most bans there is room for",
    ),
    number(|status| Some(status.daemon.as_ref()?.guard.error.is_some().into())).gauge(
        "limiter_guard_blind",
        "1: the guard cannot find the addresses that it must spare, so no source is banned automatically",
    ),
    number(|status| {
        let saved_at = state(status)?.saved_at;
        Some(saved_at.map_or(0, |at| seconds(at.as_second())))
    })
    .gauge(
        "limiter_state_last_save_timestamp_seconds",
        "When the state file was last saved, or needed no saving, in seconds since 1970; 0: not since \
         the start",
    ),
    number(|status| Some(state(status)?.errors)).counter(
        "limiter_state_save_errors",
        "Failed saves of the state file",
    ),
    number(|status| Some(standing(status)?.shortage.is_some().into())).gauge(
        "limiter_shortage",
        "1: within the last minute a limit refused a packet for its reserve",
    ),
    number(|status| Some(standing(status)?.handshakes_error.is_none().into())).gauge(
        "limiter_handshakes_noted",
        "1: handshakes prove sources, or need not; 0: they should, but cannot",
    ),
    number(|status| Some(connections(status)?.counted))
        .gauge(
            "limiter_connections_open",
            "Open TCP connections that limits with cost connections count",
        )
        .in_words(Subject::Connections, |counted| {
            format!("{} open that limits count", count(counted))
        }),
    number(|status| connections(status)?.tracked)
        .gauge(
            "limiter_connections_forwarded",
            "Open TCP connections of these that the host forwards",
        )
        .in_words(Subject::Connections, |forwarded| {
            format!("{} of them forwarded", count(forwarded))
        }),
    number(|status| Some(connections(status)?.uncounted))
        .counter(
            "limiter_connections_uncounted",
            "TCP connections that such a limit did not count for lack of room",
        )
        .in_words(Subject::Connections, |uncounted| {
            format!("{} not counted for lack of room", count(uncounted))
        }),
];

const fn number(value: fn(&Status) -> Option<u64>) -> Number {
    Number {
        metric: None,
        value,
        words: None,
    }
}

impl Number {
    const fn gauge(self, name: &'static str, help: &'static str) -> Self {
        self.metric(name, help, Kind::Gauge)
    }

    const fn counter(self, name: &'static str, help: &'static str) -> Self {
        self.metric(name, help, Kind::Counter)
    }

    const fn metric(self, name: &'static str, help: &'static str, kind: Kind) -> Self {
        let metric = Some(Metric { name, help, kind });
        Self { metric, ..self }
    }

    const fn in_words(self, about: Subject, text: fn(u64) -> String) -> Self {
        let words = Some(Words { about, text });
        Self { words, ..self }
    }
}

fn state(status: &Status) -> Option<&StateStatus> {
    status.daemon.as_ref()?.state.as_ref()
}

const fn standing(status: &Status) -> Option<&StandingStatus> {
    status.standing.as_ref()
}

const fn connections(status: &Status) -> Option<&ConnectionsStatus> {
    status.connections.as_ref()
}

/// Converts seconds since 1970.
fn seconds(seconds: i64) -> u64 {
    u64::try_from(seconds).unwrap_or_default()
}

fn things(number: u64, thing: &str) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), thing)
}
