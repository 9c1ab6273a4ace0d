//! A ticket: the place in line of a client that found no room.

use crate::connection::Place;

/// A connection that is being opened, under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Flow(pub u64);

/// Names a ticket: whose queue it is in, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct TicketKey {
    /// The [`Place`] where the owner's connections are counted.
    pub place: u64,
    /// Lower numbers are further ahead.
    pub number: u64,
}

impl TicketKey {
    /// Returns whose queue it is in.
    #[must_use]
    pub const fn place(&self) -> Place {
        Place(self.place)
    }
}

/// A ticket. It consists of plain numbers. All times are nanoseconds of the decision's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ticket {
    /// The [`Flow`] that it belongs to.
    pub flow: u64,
    /// When its client first tried.
    pub first_ns: u64,
    /// When its client last tried.
    pub last_ns: u64,
    /// How long after that the client tries again at the latest, or has given up.
    pub patience_ns: u64,
}

/// The slack added to twice the time between two tries: a client's clock may be late by that.
const SLACK_NS: u64 = 1_000_000_000;

impl Flow {
    /// Returns the number of a connection under the limit of that interned id. `connection`: the keyed
    /// hash of its [ends](crate::connection::Ends::hash).
    #[must_use]
    #[inline(always)]
    pub const fn new(connection: u64, limit: u64) -> Self {
        Self(connection ^ limit)
    }
}

impl Ticket {
    /// Returns the ticket of a client that tries again now, `age_ns` after its first try.
    #[must_use]
    #[inline(always)]
    pub const fn new(flow: Flow, age_ns: u64, now_ns: u64) -> Self {
        let first_ns = now_ns.saturating_sub(age_ns);
        Self {
            flow: flow.0,
            first_ns,
            last_ns: first_ns,
            patience_ns: 0,
        }
        .tried_again(now_ns)
    }

    /// Returns the ticket after another try. The time-out of a retransmission at most doubles each
    /// time (RFC 6298, section 5.5). The same packet may be judged twice.
    #[must_use]
    #[inline(always)]
    pub const fn tried_again(&self, now_ns: u64) -> Self {
        let between_ns = now_ns.saturating_sub(self.last_ns);
        if between_ns == 0 {
            return *self;
        }
        Self {
            last_ns: now_ns,
            patience_ns: 2 * between_ns + SLACK_NS,
            ..*self
        }
    }

    /// Returns whether the client has given up, or the ticket is older than `max_age_ns`, if that is
    /// not 0.
    #[must_use]
    #[inline(always)]
    pub const fn is_expired(&self, max_age_ns: u64, now_ns: u64) -> bool {
        let gave_up = now_ns > self.last_ns.saturating_add(self.patience_ns);
        let is_too_old = max_age_ns != 0 && now_ns > self.first_ns.saturating_add(max_age_ns);
        gave_up || is_too_old
    }
}
