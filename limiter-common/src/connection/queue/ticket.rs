//! A ticket: the position in line of a client that found no room.

use crate::connection::CountId;

/// A connection that is being opened, under one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct OpeningId(pub u64);

/// The key of a ticket: its queue's count id, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub struct TicketKey {
    /// The [`CountId`] of its queue, as a number.
    pub count_id: u64,
    /// Lower numbers are further ahead.
    pub number: u64,
}

impl TicketKey {
    /// The count id of its queue.
    #[must_use]
    pub const fn count_id(&self) -> CountId {
        CountId(self.count_id)
    }
}

/// A ticket. It consists of plain numbers. All times are nanoseconds of the decision's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ticket {
    /// The [`OpeningId`] that it belongs to.
    pub opening_id: u64,
    /// The time of the client's first try.
    pub first_ns: u64,
    /// The time of the client's last try.
    pub last_ns: u64,
    /// The time after the last try by which the client tries again, or has given up.
    pub patience_ns: u64,
}

/// The slack added to twice the time between two tries, for late clocks of clients.
const SLACK_NS: u64 = 1_000_000_000;

/// The longest time between two tries, in nanoseconds: Linux sends the last of its six retransmissions of a
/// SYN (`tcp_syn_retries`) 32 s after the one before. Without this bound, a forger could hold a ticket longer
/// and longer by doubling its pauses.
const LONGEST_PAUSE_NS: u64 = 32_000_000_000;

impl OpeningId {
    /// Makes the number of a connection under the limit of that interned id. `connection`: the keyed hash of
    /// its [ends](crate::connection::Ends::hash).
    #[must_use]
    #[inline(always)]
    pub const fn new(connection: u64, limit: u64) -> Self {
        Self(connection ^ limit)
    }
}

impl Ticket {
    /// Makes the ticket of a client that tries again now, `age_ns` after its first try.
    #[must_use]
    #[inline(always)]
    pub const fn new(opening_id: OpeningId, age_ns: u64, now_ns: u64) -> Self {
        let first_ns = now_ns.saturating_sub(age_ns);
        Self {
            opening_id: opening_id.0,
            first_ns,
            last_ns: first_ns,
            patience_ns: 0,
        }
        .tried_again(now_ns)
    }

    /// Returns the ticket after another try. The time-out of a retransmission at most doubles each time (RFC
    /// 6298, section 5.5). The same packet may be judged twice: a try at the same time changes nothing.
    #[must_use]
    #[inline(always)]
    pub const fn tried_again(&self, now_ns: u64) -> Self {
        let between_ns = now_ns.saturating_sub(self.last_ns);
        if between_ns == 0 {
            return *self;
        }
        Self {
            last_ns: now_ns,
            patience_ns: longest_pause_after(between_ns) + SLACK_NS,
            ..*self
        }
    }

    /// Whether the client has given up, or the ticket is older than `max_age_ns`, unless that is 0.
    #[must_use]
    #[inline(always)]
    pub const fn is_expired(&self, max_age_ns: u64, now_ns: u64) -> bool {
        let gave_up = now_ns > self.last_ns.saturating_add(self.patience_ns);
        let is_too_old = max_age_ns != 0 && now_ns > self.first_ns.saturating_add(max_age_ns);
        gave_up || is_too_old
    }
}

/// Returns the longest pause of a client after a pause of `between_ns`.
#[inline(always)]
const fn longest_pause_after(between_ns: u64) -> u64 {
    if between_ns < LONGEST_PAUSE_NS / 2 {
        2 * between_ns
    } else {
        LONGEST_PAUSE_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A client with ever longer pauses holds a ticket no longer than a Linux client pauses.
    #[test]
    fn patience_is_bounded() {
        let mut ticket = Ticket::new(OpeningId(1), 12 * SECOND, 12 * SECOND);
        assert_eq!(ticket.patience_ns, 25 * SECOND);
        for now in [37, 86, 119].map(|second| second * SECOND) {
            ticket = ticket.tried_again(now);
            assert_eq!(ticket.patience_ns, 33 * SECOND);
            assert!(!ticket.is_expired(0, now + 33 * SECOND));
            assert!(ticket.is_expired(0, now + 33 * SECOND + 1));
        }
        ticket = ticket.tried_again(u64::MAX);
        assert_eq!(ticket.patience_ns, 33 * SECOND);
    }

    /// Linux's SYNs, with and without linear time-outs: none comes too late.
    #[test]
    fn clients_of_linux_keep_their_tickets() {
        for tries in [
            &[0, 1, 3, 7, 15, 31, 63][..],
            &[0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67],
        ] {
            let times = tries.iter().map(|second| second * SECOND);
            let mut times = times.skip(1);
            let second = times.next().unwrap_or(0);
            let mut ticket = Ticket::new(OpeningId(1), second, second);
            for now in times {
                assert!(!ticket.is_expired(70 * SECOND, now), "{now}");
                ticket = ticket.tried_again(now);
            }
        }
    }
}
