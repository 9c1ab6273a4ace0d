//! Maps each source of a record to the key of its bucket.

use std::collections::HashMap;

use limiter_common::{address::Address, limit::IdFormat};

use super::record::{Entry, Record};

/// The keys of a record's sources by one id format.
pub(super) struct Keys {
    /// By the source's number; `None`: the source has no key.
    of_source: Vec<Option<u32>>,
    count: usize,
}

impl Keys {
    pub(super) fn of(record: &Record, id: IdFormat) -> Self {
        let mut numbers: HashMap<Option<Address>, u32> = HashMap::new();
        let of_source = record.sources().map(|source| {
            let key = match (id.prefix_length(source.family), id.key_part()) {
                (Some(length), _) => Some(source.masked(length)),
                // One key for all sources.
                (None, Some(_)) => None,
                // The limit is for another family.
                (None, None) => return None,
            };
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            Some(*numbers.entry(key).or_insert(next))
        });
        let of_source = of_source.collect();
        Self {
            of_source,
            count: numbers.len(),
        }
    }

    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// Returns the index of an entry's key, below the count.
    pub(super) fn of_entry(&self, entry: &Entry) -> Option<usize> {
        let key = self.of_source.get(entry.source as usize)?;
        key.map(|key| key as usize)
    }
}
