//! Queues over plain memory.

use std::{cell::RefCell, collections::BTreeMap};

use limiter_common::connection::{
    CountId,
    queue::{OpeningId, Queue, QueueEvent, QueueSettings, QueueTraffic, Queues, Ticket, TicketKey},
};

/// The queues in which clients wait for limits on connections, without a capacity.
#[derive(Debug, Default)]
pub struct MemoryQueues(RefCell<Content>);

#[derive(Debug, Default)]
struct Content {
    queues: BTreeMap<u64, Queue>,
    tickets: BTreeMap<TicketKey, Ticket>,
    keys: BTreeMap<OpeningId, TicketKey>,
    first_tries: BTreeMap<OpeningId, u64>,
    traffic: BTreeMap<u64, QueueTraffic>,
}

impl MemoryQueues {
    /// The counts of events in the queues of the limit with the interned id `limit`.
    #[must_use]
    pub fn traffic(&self, limit: u64) -> QueueTraffic {
        let content = self.0.borrow();
        content.traffic.get(&limit).copied().unwrap_or_default()
    }

    /// The number of tickets.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.borrow().tickets.len()
    }
}

impl Queues for MemoryQueues {
    fn queue(&self, count_id: CountId) -> Queue {
        let content = self.0.borrow();
        content.queues.get(&count_id.0).copied().unwrap_or_default()
    }

    fn next_number(&self, settings: &QueueSettings, count_id: CountId, now_ns: u64) -> Option<u64> {
        let queues = &mut self.0.borrow_mut().queues;
        let queue = queues.entry(count_id.0);
        let queue = queue.or_insert_with(|| Queue::new(settings, now_ns));
        queue.used_ns = now_ns;
        queue.tail += 1;
        Some(queue.tail - 1)
    }

    fn move_up(&self, count_id: CountId, number: u64) {
        let queues = &mut self.0.borrow_mut().queues;
        if let Some(queue) = queues.get_mut(&count_id.0)
            && queue.head == number
        {
            queue.head += 1;
        }
    }

    fn key_of(&self, opening_id: OpeningId) -> Option<TicketKey> {
        self.0.borrow().keys.get(&opening_id).copied()
    }

    fn ticket(&self, key: TicketKey) -> Option<Ticket> {
        self.0.borrow().tickets.get(&key).copied()
    }

    fn set(&self, key: TicketKey, ticket: &Ticket) -> bool {
        let mut content = self.0.borrow_mut();
        content.keys.insert(OpeningId(ticket.opening_id), key);
        content.tickets.insert(key, *ticket);
        true
    }

    fn remove(&self, key: TicketKey, opening_id: OpeningId) -> bool {
        let mut content = self.0.borrow_mut();
        content.keys.remove(&opening_id);
        content.tickets.remove(&key).is_some()
    }

    fn age_of_first_try(&self, opening_id: OpeningId, within_ns: u64, now_ns: u64) -> Option<u64> {
        let first_tries = &mut self.0.borrow_mut().first_tries;
        let before = first_tries.get(&opening_id);
        let age = before.map(|first| now_ns.saturating_sub(*first));
        let age = age.filter(|age| *age <= within_ns);
        if age.is_none() {
            first_tries.insert(opening_id, now_ns);
        }
        age
    }

    fn count(&self, settings: &QueueSettings, event: QueueEvent) {
        let traffic = &mut self.0.borrow_mut().traffic;
        traffic.entry(settings.limit).or_default().events[event as usize] += 1;
    }

    fn count_wait(&self, settings: &QueueSettings, wait_ns: u64) {
        let traffic = &mut self.0.borrow_mut().traffic;
        let traffic = traffic.entry(settings.limit).or_default();
        traffic.waits[QueueTraffic::wait_index(wait_ns)] += 1;
        traffic.waited_ns += wait_ns;
    }
}

#[cfg(test)]
mod tests;
