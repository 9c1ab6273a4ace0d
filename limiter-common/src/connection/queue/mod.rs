//! Waiting in line: clients for whose connections a limit has no room, in the order in which they
//! came.
//!
//! A packet cannot be kept, so a client's own retransmissions are its place in line. Its first SYN is
//! noted among the [first tries](crate::standing::FirstTries) and dropped; the second proves that
//! somebody waits, and takes a [`Ticket`]. Tickets have consecutive numbers from the queue's head to
//! its tail. A client is let in when there is more room than tickets ahead of its own: so each of
//! these has a place reserved, for as long as its client goes on trying. A client without a ticket
//! stands behind all of them.
//!
//! A ticket ends when its connection is established, which the network stack says, or when it has
//! expired. Whoever comes next removes those that have expired at the head, some at a time.
//!
//! CPUs share queues without a lock. If two of them take or remove tickets at one moment, one client
//! may be let in before another that came at nearly the same time; nothing worse happens, since the
//! count of open connections bounds them all.

mod ticket;
mod traffic;
mod turn;

pub use self::{
    ticket::{Flow, Ticket, TicketKey},
    traffic::{QueueEvent, QueueTraffic, WAITS},
    turn::Turn,
};
use super::Place;
pub use crate::limit::QueueSettings;

/// The most tickets of one queue.
pub const MOST_TICKETS: u64 = 1 << 15;

/// The number of lines of the memory of first tries, a power of two: 16 MiB. At a million forged first
/// tries a second it recognises nearly all retries after one second.
pub const FIRST_TRY_LINES: u32 = 1 << 18;

/// How many tickets at the head are looked at for each packet, and by each sweep.
pub const LOOKED_AT: u64 = 16;

/// The soonest that a client tries again, in nanoseconds: TCP's first time-out is a second, and lower
/// only where somebody has chosen so. A SYN that comes sooner is no proof: somebody who does not see
/// answers can send it at once.
const SOONEST_RETRY_NS: u64 = 400_000_000;

/// The latest, in nanoseconds: as long as first tries are remembered.
const LATEST_RETRY_NS: u64 = crate::standing::Settings::LONGEST_RETRY_NS;

/// A queue: the numbers of the tickets in it. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Queue {
    /// The first ticket's.
    pub head: u64,
    /// The next ticket's.
    pub tail: u64,
    /// The interned id of the limit.
    pub limit: u64,
    /// When a ticket was last taken, in nanoseconds.
    pub used_ns: u64,
}

impl Queue {
    /// How long nobody takes a ticket of a queue before it may be removed, in nanoseconds: longer than
    /// any CPU takes to add one.
    const UNUSED_NS: u64 = 60_000_000_000;

    /// Returns an empty queue. No queue at the same place had the number of its next ticket.
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

    /// Returns whether nobody is in it, or soon will be.
    #[must_use]
    #[inline(always)]
    pub const fn is_unused(&self, now_ns: u64) -> bool {
        self.head == self.tail && now_ns > self.used_ns.saturating_add(Self::UNUSED_NS)
    }
}

/// The queues of a limit's owners.
pub trait Queues {
    /// Returns the queue at a place; an empty one if there is none.
    fn queue(&self, place: Place) -> Queue;

    /// Returns the next number of the queue at a place, which it makes [anew](Queue::new) if need be;
    /// `None`: there is no room for it.
    fn next_number(&self, settings: &QueueSettings, place: Place, now_ns: u64) -> Option<u64>;

    /// Makes the queue at a place begin behind the ticket of that number, if it begins with it.
    fn move_up(&self, place: Place, number: u64);

    /// Returns the name of a connection's ticket.
    fn key_of(&self, flow: Flow) -> Option<TicketKey>;

    /// Returns a ticket.
    fn ticket(&self, key: TicketKey) -> Option<Ticket>;

    /// Adds or replaces a ticket; returns false if there is no room.
    fn set(&self, key: TicketKey, ticket: &Ticket) -> bool;

    /// Removes a ticket; returns whether it was there.
    fn remove(&self, key: TicketKey, flow: Flow) -> bool;

    /// Returns how long ago a connection was first tried, in nanoseconds, if that is at most
    /// `within_ns`; otherwise notes that this is the first try.
    fn age_of_first_try(&self, flow: Flow, within_ns: u64, now_ns: u64) -> Option<u64>;

    /// Calls [`is_gone`].
    fn is_gone(&self, settings: &QueueSettings, key: TicketKey, now_ns: u64) -> bool
    where
        Self: Sized,
    {
        is_gone(self, settings, key, now_ns)
    }

    /// Calls [`ahead`].
    fn ahead(&self, settings: &QueueSettings, place: Place, number: u64, now_ns: u64) -> u64
    where
        Self: Sized,
    {
        ahead(self, settings, place, number, now_ns)
    }

    /// Calls [`take_ticket`].
    fn take_ticket(
        &self,
        settings: &QueueSettings,
        place: Place,
        flow: Flow,
        age_ns: u64,
        now_ns: u64,
    ) -> bool
    where
        Self: Sized,
    {
        take_ticket(self, settings, place, flow, age_ns, now_ns)
    }

    /// Returns the value, and makes the kernel's verifier forget what it knows of it.
    fn opaque(&self, value: u64) -> u64 {
        value
    }

    /// Counts an event in the queues of a limit.
    fn count(&self, settings: &QueueSettings, event: QueueEvent);

    /// Counts a client by how long it waited, in nanoseconds.
    fn count_wait(&self, settings: &QueueSettings, wait_ns: u64);
}

/// Returns whether it is the turn of a client that tries to connect now: it is if there is more room
/// than clients ahead of it. If not, notes that it waits.
///
/// `room`: how many connections may be opened.
#[inline(always)]
pub fn turn<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    place: Place,
    flow: Flow,
    room: u64,
    now_ns: u64,
) -> Turn {
    enter_by_ticket(queues, settings, place, flow, room, now_ns)
        .unwrap_or_else(|| enter_behind(queues, settings, place, flow, room, now_ns))
}

/// Does so for a client with a ticket; `None`: it has none.
#[inline(always)]
pub fn enter_by_ticket<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    place: Place,
    flow: Flow,
    room: u64,
    now_ns: u64,
) -> Option<Turn> {
    let key = queues.key_of(flow)?;
    if key.place != place.0 {
        // The limit's id format has changed, or what is known of the source.
        queues.remove(key, flow);
        return None;
    }
    let ticket = queues.ticket(key)?;
    if ticket.is_expired(settings.max_age_ns, now_ns) {
        expire(queues, settings, key, flow);
        return Some(Turn::Never);
    }
    queues.set(key, &ticket.tried_again(now_ns));
    Some(
        if queues.ahead(settings, place, key.number, now_ns) < room {
            Turn::Now
        } else {
            Turn::Later
        },
    )
}

/// Does so for a client without a ticket, behind all others.
#[inline(always)]
pub fn enter_behind<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    place: Place,
    flow: Flow,
    room: u64,
    now_ns: u64,
) -> Turn {
    // Whoever sends first tries alone does not have the queue looked at while there is no room.
    if room != 0 && queues.ahead(settings, place, u64::MAX, now_ns) < room {
        return Turn::Now;
    }
    let age_ns = match queues.age_of_first_try(flow, LATEST_RETRY_NS, now_ns) {
        Some(age_ns) if age_ns >= SOONEST_RETRY_NS => age_ns,
        _ => return Turn::Later,
    };
    if queues.ahead(settings, place, u64::MAX, now_ns) >= settings.size {
        queues.count(settings, QueueEvent::Rejected);
        return Turn::Never;
    }
    if queues.take_ticket(settings, place, flow, age_ns, now_ns) {
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
    place: Place,
    flow: Flow,
    age_ns: u64,
    now_ns: u64,
) -> bool {
    let ticket = Ticket::new(flow, age_ns, now_ns);
    let number = queues.next_number(settings, place, now_ns);
    let is_queued = number.is_some_and(|number| {
        let place = place.0;
        queues.set(TicketKey { place, number }, &ticket)
    });
    let event = if is_queued {
        QueueEvent::Queued
    } else {
        QueueEvent::Rejected
    };
    queues.count(settings, event);
    is_queued
}

/// Returns how many clients are in line before the ticket of that number, if there is such a ticket,
/// and otherwise all. It removes expired tickets at the head.
#[inline(always)]
pub fn ahead<Q: Queues>(
    queues: &Q,
    settings: &QueueSettings,
    place: Place,
    number: u64,
    now_ns: u64,
) -> u64 {
    let Queue { head, tail, .. } = queues.queue(place);
    let end = if number < tail { number } else { tail };
    // Not known to the verifier, which so walks each round once.
    let mut gone = queues.opaque(0);
    for step in 0..LOOKED_AT {
        let number = head.wrapping_add(step);
        if number >= end {
            break;
        }
        let key = TicketKey {
            place: place.0,
            number,
        };
        let is_gone = u64::from(queues.is_gone(settings, key, now_ns));
        if is_gone != 0 && gone == step {
            queues.move_up(place, number);
        }
        gone = queues.opaque(gone + is_gone);
    }
    end.saturating_sub(head).saturating_sub(gone)
}

/// Returns whether there is no ticket of that name any more; removes it if it has expired.
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
        expire(queues, settings, key, Flow(ticket.flow));
    }
    is_expired
}

#[inline(always)]
fn expire<Q: Queues>(queues: &Q, settings: &QueueSettings, key: TicketKey, flow: Flow) {
    if queues.remove(key, flow) {
        queues.count(settings, QueueEvent::Expired);
    }
}

/// Notes that a connection is established, whose client may have waited.
#[inline(always)]
pub fn established<Q: Queues>(queues: &Q, settings: &QueueSettings, flow: Flow, now_ns: u64) {
    let Some(key) = queues.key_of(flow) else {
        return;
    };
    let Some(ticket) = queues.ticket(key) else {
        return;
    };
    if queues.remove(key, flow) {
        queues.count(settings, QueueEvent::Resumed);
        queues.count_wait(settings, now_ns.saturating_sub(ticket.first_ns));
    }
}
