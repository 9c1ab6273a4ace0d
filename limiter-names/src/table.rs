//! The flows being read; the oldest ones are evicted first.

use std::{collections::HashMap, mem};

use crate::flow::Flow;

/// In place of an index: none.
const NONE: u32 = u32::MAX;

/// Flows in the order in which they began, with a value each.
#[derive(Debug)]
pub(crate) struct Table<V> {
    indices: HashMap<Flow, u32>,
    /// The largest capacity of `indices` so far: its memory is never given back, but its reported capacity is lower
    /// while entries are marked as removed.
    capacity: usize,
    slots: Vec<Slot<V>>,
    /// The first free slot. Free slots form a list by `after`.
    free: u32,
    oldest: u32,
    newest: u32,
}

#[derive(Debug)]
struct Slot<V> {
    /// `None`: the slot is free.
    kept: Option<(Flow, V)>,
    begun_ns: u64,
    /// The indices of the flows that began before and after this one.
    before: u32,
    after: u32,
}

impl<V> Table<V> {
    pub(crate) fn new() -> Self {
        Self {
            indices: HashMap::new(),
            capacity: 0,
            slots: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.indices.len()
    }

    pub(crate) fn contains(&self, flow: &Flow) -> bool {
        self.indices.contains_key(flow)
    }

    pub(crate) fn get(&self, flow: &Flow) -> Option<&V> {
        let index = *self.indices.get(flow)?;
        let kept = self.slots.get(index as usize)?.kept.as_ref();
        kept.map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, flow: &Flow) -> Option<&mut V> {
        let index = *self.indices.get(flow)?;
        let kept = self.slots.get_mut(index as usize)?.kept.as_mut();
        kept.map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Flow, &V)> {
        let kept = self.slots.iter().filter_map(|slot| slot.kept.as_ref());
        kept.map(|(flow, value)| (flow, value))
    }

    /// The flow that began first, with its time.
    pub(crate) fn oldest(&self) -> Option<(Flow, u64)> {
        let slot = self.slots.get(self.oldest as usize)?;
        slot.kept.as_ref().map(|(flow, _)| (*flow, slot.begun_ns))
    }

    /// Adds a missing flow.
    pub(crate) fn insert(&mut self, flow: Flow, begun_ns: u64, value: V) {
        let slot = Slot {
            kept: Some((flow, value)),
            begun_ns,
            before: self.newest,
            after: NONE,
        };
        let index = if let Some(free) = self.slots.get_mut(self.free as usize) {
            let index = self.free;
            self.free = free.after;
            *free = slot;
            index
        } else {
            // The settings bound the number of slots below 2^32.
            let index = u32::try_from(self.slots.len()).unwrap_or(NONE);
            self.slots.push(slot);
            index
        };
        match self.slots.get_mut(self.newest as usize) {
            Some(newest) => newest.after = index,
            None => self.oldest = index,
        }
        self.newest = index;
        self.indices.insert(flow, index);
        self.capacity = self.capacity.max(self.indices.capacity());
    }

    pub(crate) fn remove(&mut self, flow: &Flow) -> Option<V> {
        let index = self.indices.remove(flow)?;
        let slot = self.slots.get_mut(index as usize)?;
        let (_, value) = slot.kept.take()?;
        let (before, after) = (slot.before, slot.after);
        slot.after = mem::replace(&mut self.free, index);
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

    /// The memory that the table itself has allocated, in bytes, without the memory of the values.
    pub(crate) fn memory(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot<V>>();
        slots + hash_table(self.capacity, size_of::<(Flow, u32)>())
    }
}

/// The memory of one of the standard library's hash tables: a power of two of slots, an eighth of them free, each with
/// a control byte, and 16 bytes more.
fn hash_table(capacity: usize, entry: usize) -> usize {
    let slots = match capacity {
        0 => return 0,
        1..8 => (capacity + 1).next_power_of_two(),
        _ => capacity / 7 * 8,
    };
    (slots * entry).next_multiple_of(16) + slots + 16
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

    /// Empties the table, oldest flow first.
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
        // Free slots are used again.
        assert_eq!(table.slots.len(), 6);
    }
}
