//! Waiting in line: clients that a limit on connections has no room for, in the order of their arrival.
//!
//! A packet cannot be kept, so a client's own retransmissions keep its position in line. Its first SYN is
//! recorded among the [first tries](crate::standing::FirstTries) and dropped; the second SYN proves that a
//! client waits, and takes a [`Ticket`]. Tickets have consecutive numbers from the queue's head to its tail.
//! A client is let in when there is more room than tickets ahead of its own: so each ticket ahead reserves a
//! slot, for as long as its client goes on trying. A client without a ticket stands behind all tickets.
//!
//! A ticket ends when the network stack reports its connection established, or when it expires. The next
//! client removes expired tickets at the head, a few at a time.
//!
//! CPUs share queues without a lock. If two of them take or remove tickets at the same moment, one client may
//! be let in before another that arrived at nearly the same time; nothing worse happens, since the count of
//! open connections bounds both.

mod ticket;
mod traffic;
mod turn;

pub use self::{
    ticket::{OpeningId, Ticket, TicketKey},
    traffic::{QueueEvent, QueueTraffic, WAITS},
    turn::Turn,
};
use super::CountId;
pub use crate::limit::QueueSettings;

/// The most tickets of one queue.
pub const MOST_TICKETS: u64 = 1 << 15;

/// The number of lines of the memory of first tries, a power of two: 16 MiB. At a million forged first
/// tries a second it recognises nearly all retries after one second.
pub const FIRST_TRY_LINES: u32 = 1 << 18;

/// The number of tickets at the head that each packet and each sweep checks.
pub const CHECKED_TICKETS: u64 = 16;

/// The earliest time of a client's second try, in nanoseconds: TCP's first time-out is a second, and lower
/// only where an administrator chose so. An earlier SYN proves nothing: a forger who does not see responses
/// can send it at once.
const SOONEST_RETRY_NS: u64 = 400_000_000;

/// The latest time of a second try, in nanoseconds: first tries are remembered for this long.
const LATEST_RETRY_NS: u64 = crate::standing::Settings::LONGEST_RETRY_NS;

/// A queue: the numbers of the tickets in it. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Queue {
    /// The number of the first ticket.
    pub head: u64,
    /// The number of the next ticket.
    pub tail: u64,
    /// The interned id of the limit.
    pub limit: u64,
    /// The time at which a ticket was last taken, in nanoseconds.
    pub used_ns: u64,
}

impl Queue {
    /// The time without new tickets after which a queue may be removed, in nanoseconds: longer than any CPU
    /// takes to add one.
    const UNUSED_NS: u64 = 60_000_000_000;

    /// Makes an empty queue. Its ticket numbers start at the time, so they never repeat an earlier queue's.
    #[must_use]
    #[inline(always)]
    pub const fn new(settings: &QueueSettings, now_ns: u64) -> Self {
        Self {
            head: now_ns,
            tail: now_ns,
            limit: settings.limit,
            used_ns: now_ns,
        }
    }

    /// Whether the queue is empty and no client is about to join it.
    #[must_use]
    #[inline(always)]
    pub const fn is_unused(&self, now_ns: u64) -> bool {
        self.head == self.tail && now_ns > self.used_ns.saturating_add(Self::UNUSED_NS)
    }
}

/// The queues of a limit's keys.
pub trait Queues {
    /// Returns the queue under a count id, or an empty one.
    fn queue(&self, count_id: CountId) -> Queue;

    /// Takes the next number of the queue under a count id, and makes the queue [anew](Queue::new) if needed.
    /// `None`: there is no room for the queue.
    fn next_number(&self, settings: &QueueSettings, count_id: CountId, now_ns: u64) -> Option<u64>;

    /// Moves the head of the queue under a count id behind the ticket of that number, if it is the head.
    fn move_up(&self, count_id: CountId, number: u64);

    /// Returns the key of a connection's ticket.
    fn key_of(&self, opening_id: OpeningId) -> Option<TicketKey>;

    /// Returns a ticket.
    fn ticket(&self, key: TicketKey) -> Option<Ticket>;

    /// Adds or replaces a ticket; returns false if there is no room.
    fn set(&self, key: TicketKey, ticket: &Ticket) -> bool;

    /// Removes a ticket; returns whether it was there.
    fn remove(&self, key: TicketKey, opening_id: OpeningId) -> bool;

    /// Returns the time since a connection was first tried, in nanoseconds, if at most `within_ns`; otherwise
    /// records this as the first try.
    fn age_of_first_try(&self, opening_id: OpeningId, within_ns: u64, now_ns: u64) -> Option<u64>;

    /// Calls [`is_gone`].
    fn is_gone(&self, settings: &QueueSettings, key: TicketKey, now_ns: u64) -> bool
    where
        Self: Sized,
    {
        is_gone(self, settings, key, now_ns)
    }

    /// Calls [`ahead`].
    fn ahead(&self, settings: &QueueSettings, count_id: CountId, number: u64, now_ns: u64) -> u64
    where
        Self: Sized,
    {
        ahead(self, settings, count_id, number, now_ns)
    }

    /// Calls [`take_ticket`].
    fn take_ticket(
        &self,
        settings: &QueueSettings,
        count_id: CountId,
        opening_id: OpeningId,
        age_ns: u64,
        now_ns: u64,
    ) -> bool
    where
        Self: Sized,
    {
        take_ticket(self, settings, count_id, opening_id, age_ns, now_ns)
    }

    /// Returns the value, and hides from the kernel's verifier its facts about it.
    fn opaque(&self, value: u64) -> u64 {
        value
    }

    /// Counts an event in the queues of a limit.
    fn count(&self, settings: &QueueSettings, event: QueueEvent);

    /// Counts a client by its waiting time, in nanoseconds.
    fn count_wait(&self, settings: &QueueSettings, wait_ns: u64);
}

/// Decides whether a client may connect now: if there is more room than clients ahead of it. Otherwise
/// records that it waits.
///
/// `room`: the number of connections that may be opened.
#[inline(always)]
pub fn turn<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    count_id: CountId,
    opening_id: OpeningId,
    room: u64,
    now_ns: u64,
) -> Turn {
    enter_by_ticket(queues, settings, count_id, opening_id, room, now_ns)
        .unwrap_or_else(|| enter_behind(queues, settings, count_id, opening_id, room, now_ns))
}

/// Decides for a client with a ticket; `None`: it has no ticket.
#[inline(always)]
pub fn enter_by_ticket<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    count_id: CountId,
    opening_id: OpeningId,
    room: u64,
    now_ns: u64,
) -> Option<Turn> {
    let key = queues.key_of(opening_id)?;
    if key.count_id != count_id.0 {
        // The limit's id format has changed, or the source's standing.
        queues.remove(key, opening_id);
        return None;
    }
    let ticket = queues.ticket(key)?;
    if ticket.is_expired(settings.max_age_ns, now_ns) {
        expire(queues, settings, key, opening_id);
        return Some(Turn::Never);
    }
    queues.set(key, &ticket.tried_again(now_ns));
    Some(
        if queues.ahead(settings, count_id, key.number, now_ns) < room {
            Turn::Now
        } else {
            Turn::Later
        },
    )
}

/// Decides for a client without a ticket, behind all others.
#[inline(always)]
pub fn enter_behind<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    count_id: CountId,
    opening_id: OpeningId,
    room: u64,
    now_ns: u64,
) -> Turn {
    // A flood of first tries must not cost queue look-ups while there is no room.
    if room != 0 && queues.ahead(settings, count_id, u64::MAX, now_ns) < room {
        return Turn::Now;
    }
    let age_ns = match queues.age_of_first_try(opening_id, LATEST_RETRY_NS, now_ns) {
        Some(age_ns) if age_ns >= SOONEST_RETRY_NS => age_ns,
        _ => return Turn::Later,
    };
    if queues.ahead(settings, count_id, u64::MAX, now_ns) >= settings.size {
        queues.count(settings, QueueEvent::Rejected);
        return Turn::Never;
    }
    if queues.take_ticket(settings, count_id, opening_id, age_ns, now_ns) {
        Turn::Later
    } else {
        Turn::Never
    }
}

/// Gives a client a ticket, `age_ns` nanoseconds after its first try; returns false if there is no room.
#[inline(always)]
pub fn take_ticket<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    count_id: CountId,
    opening_id: OpeningId,
    age_ns: u64,
    now_ns: u64,
) -> bool {
    let ticket = Ticket::new(opening_id, age_ns, now_ns);
    let number = queues.next_number(settings, count_id, now_ns);
    let is_queued = number.is_some_and(|number| {
        let count_id = count_id.0;
        queues.set(TicketKey { count_id, number }, &ticket)
    });
    let event = if is_queued {
        QueueEvent::Queued
    } else {
        QueueEvent::Rejected
    };
    queues.count(settings, event);
    is_queued
}

/// Returns the number of clients in line before the ticket of that number, or of all clients if there is no
/// such ticket. Removes expired tickets at the head.
#[inline(always)]
pub fn ahead<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    count_id: CountId,
    number: u64,
    now_ns: u64,
) -> u64 {
    let Queue { head, tail, .. } = queues.queue(count_id);
    let end = if number < tail { number } else { tail };
    // Opaque, so that the verifier walks each round once.
    let mut gone = queues.opaque(0);
    for step in 0..CHECKED_TICKETS {
        let number = head.wrapping_add(step);
        if number >= end {
            break;
        }
        let key = TicketKey {
            count_id: count_id.0,
            number,
        };
        let is_gone = u64::from(queues.is_gone(settings, key, now_ns));
        if is_gone != 0 && gone == step {
            queues.move_up(count_id, number);
        }
        gone = queues.opaque(gone + is_gone);
    }
    end.saturating_sub(head).saturating_sub(gone)
}

/// Whether there is no ticket with that key any more; removes it if it has expired.
#[inline(always)]
pub fn is_gone<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    key: TicketKey,
    now_ns: u64,
) -> bool {
    let Some(ticket) = queues.ticket(key) else {
        return true;
    };
    let is_expired = ticket.is_expired(settings.max_age_ns, now_ns);
    if is_expired {
        expire(queues, settings, key, OpeningId(ticket.opening_id));
    }
    is_expired
}

#[inline(always)]
fn expire<Q: Queues>(queues: &Q, settings: &QueueSettings, key: TicketKey, opening_id: OpeningId) {
    if queues.remove(key, opening_id) {
        queues.count(settings, QueueEvent::Expired);
    }
}

/// Records that a connection is established; its client may have waited.
#[inline(always)]
pub fn established<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    opening_id: OpeningId,
    now_ns: u64,
) {
    let Some(key) = queues.key_of(opening_id) else {
        return;
    };
    let Some(ticket) = queues.ticket(key) else {
        return;
    };
    if queues.remove(key, opening_id) {
        queues.count(settings, QueueEvent::Resumed);
        queues.count_wait(settings, now_ns.saturating_sub(ticket.first_ns));
    }
}
