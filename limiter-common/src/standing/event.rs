//! Events: what happens to a source, and how that changes its record.

use super::{Moment, Record};

/// What happened to a source.
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
    /// Somebody vouches for it until a time of the decisions' clock, in nanoseconds. A time that
    /// has passed changes nothing.
    Vouch {
        /// Until when.
        until_ns: u64,
    },
    /// An operator wants it forgotten.
    Forget,
    /// It had this record before. It has it again, unless more is known of it now.
    Recall {
        /// The record, in ticks of the decisions' clock.
        record: Record,
    },
    /// Other nodes of the fleet say this of it: a [heard](super::Kind::Heard) record, or nothing.
    Heard {
        /// The record, in ticks of the decisions' clock.
        record: Record,
    },
}

impl Event {
    /// Returns the event as a number and its value, for functions that take only numbers.
    #[must_use]
    #[inline(always)]
    pub const fn to_numbers(self) -> (u32, u64) {
        match self {
            Self::Visit => (0, 0),
            Self::Handshake => (1, 0),
            Self::Retry => (2, 0),
            Self::Vouch { until_ns } => (3, until_ns),
            Self::Forget => (4, 0),
            Self::Recall { record } => (5, record.0),
            Self::Cookie => (6, 0),
            Self::Heard { record } => (7, record.0),
        }
    }

    /// Returns the event of a number and its value; that of an unknown number changes nothing.
    #[must_use]
    #[inline(always)]
    pub const fn of_numbers(number: u32, value: u64) -> Self {
        match number {
            0 => Self::Visit,
            1 => Self::Handshake,
            2 => Self::Retry,
            3 => Self::Vouch { until_ns: value },
            4 => Self::Forget,
            5 => Self::Recall {
                record: Record(value),
            },
            6 => Self::Cookie,
            7 => Self::Heard {
                record: Record(value),
            },
            _ => Self::Recall {
                record: Record::NONE,
            },
        }
    }
}

impl Record {
    /// Returns the record after an event.
    #[must_use]
    #[inline(always)]
    pub const fn after(self, event: Event, at: &Moment<'_>) -> Self {
        match event {
            Event::Visit => self.visited(at),
            Event::Handshake if at.settings.handshakes_prove == 0 => self,
            Event::Handshake | Event::Cookie => self.proven(at),
            Event::Retry => self.retried(at),
            Event::Vouch { until_ns } => self.vouched(until_ns, at),
            Event::Forget => Self::NONE,
            Event::Recall { record } => {
                if record.rank(at) > self.rank(at) {
                    record
                } else {
                    self
                }
            }
            Event::Heard { record } => self.heard(record, at),
        }
    }
}
