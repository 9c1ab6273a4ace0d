//! The flows that are being read, of which the oldest give way.

use std::{collections::HashMap, mem};

use crate::flow::Flow;

/// No place.
const NONE: u32 = u32::MAX;

/// The flows that are kept, in the order in which they began.
#[derive(Debug)]
pub(crate) struct Table<V> {
    places: HashMap<Flow, u32>,
    /// The largest capacity of that: its memory is never given back, but what it says of its capacity
    /// is less while places are marked as removed.
    capacity: usize,
    slots: Vec<Slot<V>>,
    /// The first of the slots without a flow, which are a list by `after`.
    free: u32,
    oldest: u32,
    newest: u32,
}

#[derive(Debug)]
struct Slot<V> {
    /// `None`: it is free.
    kept: Option<(Flow, V)>,
    begun_ns: u64,
    /// The places of the flows that began before and after this one.
    before: u32,
    after: u32,
}

impl<V> Table<V> {
    pub(crate) fn new() -> Self {
        Self {
            places: HashMap::new(),
            capacity: 0,
            slots: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn contains(&self, flow: &Flow) -> bool {
        self.places.contains_key(flow)
    }

    /// Returns what is kept of a flow.
    pub(crate) fn get(&self, flow: &Flow) -> Option<&V> {
        let place = *self.places.get(flow)?;
        let kept = self.slots.get(place as usize)?.kept.as_ref();
        kept.map(|(_, value)| value)
    }

    /// Returns the same, to be changed.
    pub(crate) fn get_mut(&mut self, flow: &Flow) -> Option<&mut V> {
        let place = *self.places.get(flow)?;
        let kept = self.slots.get_mut(place as usize)?.kept.as_mut();
        kept.map(|(_, value)| value)
    }

    /// Returns every flow with what is kept of it.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Flow, &V)> {
        let kept = self.slots.iter().filter_map(|slot| slot.kept.as_ref());
        kept.map(|(flow, value)| (flow, value))
    }

    /// Returns the flow that began first, with its time.
    pub(crate) fn oldest(&self) -> Option<(Flow, u64)> {
        let slot = self.slots.get(self.oldest as usize)?;
        slot.kept.as_ref().map(|(flow, _)| (*flow, slot.begun_ns))
    }

    /// Adds a flow that is not there.
    pub(crate) fn insert(&mut self, flow: Flow, begun_ns: u64, value: V) {
        let slot = Slot {
            kept: Some((flow, value)),
            begun_ns,
            before: self.newest,
            after: NONE,
        };
        let place = if let Some(free) = self.slots.get_mut(self.free as usize) {
            let place = self.free;
            self.free = free.after;
            *free = slot;
            place
        } else {
            // There are fewer than 2^32: the settings say how many.
            let place = u32::try_from(self.slots.len()).unwrap_or(NONE);
            self.slots.push(slot);
            place
        };
        match self.slots.get_mut(self.newest as usize) {
            Some(newest) => newest.after = place,
            None => self.oldest = place,
        }
        self.newest = place;
        self.places.insert(flow, place);
        self.capacity = self.capacity.max(self.places.capacity());
    }

    /// Removes a flow.
    pub(crate) fn remove(&mut self, flow: &Flow) -> Option<V> {
        let place = self.places.remove(flow)?;
        let slot = self.slots.get_mut(place as usize)?;
        let (_, value) = slot.kept.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.after = mem::replace(&mut self.free, place);
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.after = after,
            None => self.oldest = after,
        }
        match self.slots.get_mut(after as usize) {
            Some(slot) => slot.before = before,
            None => self.newest = before,
        }
        Some(value)
    }

    /// Returns the memory that the table itself has allocated, in bytes, without what the values have.
    pub(crate) fn memory(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot<V>>();
        slots + hash_table(self.capacity, size_of::<(Flow, u32)>())
    }
}

/// Returns the memory of one of the standard library's hash tables: a power of two of places, of which
/// an eighth stays free, each with a byte of its own, and 16 bytes more.
fn hash_table(capacity: usize, entry: usize) -> usize {
    let places = match capacity {
        0 => return 0,
        1..8 => (capacity + 1).next_power_of_two(),
        _ => capacity / 7 * 8,
    };
    (places * entry).next_multiple_of(16) + places + 16
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::flow::Protocol;

    fn flow(number: u16) -> Flow {
        Flow {
            client: Ipv4Addr::new(192, 0, 2, 1).into(),
            server: Ipv4Addr::new(192, 0, 2, 2).into(),
            client_port: number,
            server_port: 443,
            protocol: Protocol::Tcp,
        }
    }

    /// Empties the table from its oldest flow on.
    fn drained(table: &mut Table<u16>) -> Vec<u16> {
        let mut values = Vec::new();
        while let Some((flow, begun_ns)) = table.oldest() {
            values.push(table.remove(&flow).unwrap());
            assert_eq!(begun_ns, u64::from(flow.client_port));
        }
        values
    }

    #[test]
    fn the_oldest_is_found_whatever_was_removed() {
        let mut table = Table::new();
        for _ in 0..3 {
            for number in 0..6 {
                table.insert(flow(number), number.into(), number);
            }
            for number in [0, 3, 5] {
                assert_eq!(table.remove(&flow(number)), Some(number));
                assert_eq!(table.remove(&flow(number)), None);
            }
            table.insert(flow(9), 9, 9);
            assert_eq!(table.len(), 4);
            *table.get_mut(&flow(4)).unwrap() = 40;
            assert_eq!(drained(&mut table), [1, 2, 40, 9]);
            assert!(table.get_mut(&flow(4)).is_none());
        }
        // The slots were used again.
        assert_eq!(table.slots.len(), 6);
    }
}
