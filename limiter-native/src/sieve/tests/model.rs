//! A model of Traffic Server's sieve, written from its description, with lists that are searched
//! from end to end.

use std::collections::VecDeque;

use limiter_common::{
    address::Address,
    sieve::{ListedSource, Sieve},
};

/// One shard of a sieve.
pub(super) struct Model {
    sieve: Sieve,
    /// From list 0 on; each list most recently hit first.
    pub(super) lists: Vec<VecDeque<ListedSource>>,
}

impl Model {
    pub(super) fn new(sieve: Sieve) -> Self {
        let lists = (0..=sieve.geometry.list_count).map(|_| VecDeque::new());
        Self {
            lists: lists.collect(),
            sieve,
        }
    }

    /// Counts an arrival; returns the list that the address is in afterwards.
    pub(super) fn hit(&mut self, key: Address, now_ns: u64) -> u32 {
        let entry_list = self.sieve.geometry.list_count as usize;
        let mut listed;
        let mut list;
        if let Some((found, location)) = self.find(&key) {
            listed = self.lists[found].remove(location).expect("it is there");
            let max_age_ns = if found == 0 {
                self.sieve.perma_max_age_ns
            } else {
                self.sieve.max_age_ns
            };
            if max_age_ns > 0 && now_ns - listed.added_ns > max_age_ns {
                listed.count /= 8;
                listed.added_ns = now_ns;
                list = entry_list;
                self.make_room(list);
                self.lists[list].push_front(listed);
            } else {
                listed.count += 1;
                list = found;
                if found < 2 {
                    self.lists[list].push_front(listed);
                } else if self.lists[found - 1].len() < self.capacity(found - 1) {
                    list = found - 1;
                    self.lists[list].push_front(listed);
                } else if self.lists[found - 1].back().expect("full").count <= listed.count {
                    list = found - 1;
                    let other = self.lists[list].pop_back().expect("full");
                    self.lists[list].push_front(listed);
                    self.lists[found].push_front(other);
                } else {
                    self.lists[found].insert(location, listed);
                }
            }
        } else {
            list = entry_list;
            listed = ListedSource {
                key,
                count: 1,
                added_ns: now_ns,
            };
            self.make_room(list);
            self.lists[list].push_front(listed);
        }
        if listed.count > self.sieve.perma_limit && list <= self.sieve.perma_threshold as usize {
            let (found, location) = self.find(&key).expect("it was just put there");
            listed = self.lists[found].remove(location).expect("it is there");
            if found != 0 {
                self.make_room(0);
                listed.added_ns = now_ns;
            }
            self.lists[0].push_front(listed);
            list = 0;
        }
        u32::try_from(list).expect("a list")
    }

    fn find(&self, key: &Address) -> Option<(usize, usize)> {
        self.lists.iter().enumerate().find_map(|(list, entries)| {
            let location = entries.iter().position(|listed| listed.key == *key)?;
            Some((list, location))
        })
    }

    fn make_room(&mut self, list: usize) {
        if self.lists[list].len() >= self.capacity(list) {
            self.lists[list].pop_back();
        }
    }

    /// Calculated independently: each list has half the capacity of the list above; list 0 is as
    /// large as the entry list.
    fn capacity(&self, list: usize) -> usize {
        let mut capacity = (1 << self.sieve.geometry.size) / self.sieve.geometry.shards() as usize;
        if list > 0 {
            for _ in list..self.sieve.geometry.list_count as usize {
                capacity /= 2;
            }
        }
        capacity
    }
}
