//! The events of a source, and their effects on its record.

use super::{Record, StandingContext};

/// An event of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It sent a packet.
    Visit,
    /// It completed a TCP handshake with this host.
    Handshake,
    /// It sent a query with a valid DNS cookie.
    Cookie,
    /// It came again after it was refused as unknown.
    Retry,
    /// An operator trusts it until a time of the decisions' clock, in nanoseconds. A time that
    /// has passed changes nothing.
    Trust {
        /// The end of the trust.
        until_ns: u64,
    },
    /// An operator wants its record deleted.
    Untrust,
    /// It had this record before, for example before a restart. It has it again, unless the current
    /// record is better.
    Recall {
        /// The record, in ticks of the decisions' clock.
        record: Record,
    },
    /// Other nodes of the fleet report this record: a [reported](super::Kind::Reported) record, or
    /// [`Record::NONE`] to retract.
    Reported {
        /// The record, in ticks of the decisions' clock.
        record: Record,
    },
}

impl Event {
    /// The event as a number and its value, for functions that take only numbers.
    #[must_use]
    #[inline(always)]
    pub const fn to_numbers(self) -> (u32, u64) {
        match self {
            Self::Visit => (0, 0),
            Self::Handshake => (1, 0),
            Self::Retry => (2, 0),
            Self::Trust { until_ns } => (3, until_ns),
            Self::Untrust => (4, 0),
            Self::Recall { record } => (5, record.0),
            Self::Cookie => (6, 0),
            Self::Reported { record } => (7, record.0),
        }
    }

    /// The event with this number and value; an unknown number gives an event without effect.
    #[must_use]
    #[inline(always)]
    pub const fn of_numbers(number: u32, value: u64) -> Self {
        match number {
            0 => Self::Visit,
            1 => Self::Handshake,
            2 => Self::Retry,
            3 => Self::Trust { until_ns: value },
            4 => Self::Untrust,
            5 => Self::Recall {
                record: Record(value),
            },
            6 => Self::Cookie,
            7 => Self::Reported {
                record: Record(value),
            },
            _ => Self::Recall {
                record: Record::NONE,
            },
        }
    }
}

impl Record {
    /// The record after an event.
    #[must_use]
    #[inline(always)]
    pub const fn after(self, event: Event, at: &StandingContext<'_>) -> Self {
        match event {
            Event::Visit => self.visited(at),
            Event::Handshake if at.settings.handshakes_prove == 0 => self,
            Event::Handshake | Event::Cookie => self.proven(at),
            Event::Retry => self.retried(at),
            Event::Trust { until_ns } => self.trusted(until_ns, at),
            Event::Untrust => Self::NONE,
            Event::Recall { record } => {
                if record.rank(at) > self.rank(at) {
                    record
                } else {
                    self
                }
            }
            Event::Reported { record } => self.apply_report(record, at),
        }
    }
}
