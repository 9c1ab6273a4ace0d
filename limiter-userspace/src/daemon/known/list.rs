//! Answers who is known.

use std::{cmp::Reverse, collections::BinaryHeap, net::IpAddr};

use limiter_common::standing::{Kind, Record, SourceId, Standing};
use limiter_datapath::kernel::{Datapath, DatapathError};

use super::{
    handshakes::unseen,
    tell::{Teller, listed},
};
use crate::{
    daemon::listed::proven_by,
    protocol::known::{KnownList, KnownQuery, MAX_SHOWN, SourceStatus},
};

/// Counts the known sources, and describes the newest. Reads the whole table.
pub(in crate::daemon) fn list(
    datapath: &Datapath,
    query: &KnownQuery,
) -> Result<KnownList, DatapathError> {
    let known = datapath.known_sources()?;
    let teller = Teller::new(known.moment()?);
    let mut counts = [0; Standing::COUNT];
    let mut vouched = 0;
    let mut newest = Newest::new(query.limit.min(MAX_SHOWN));
    for (source, record) in known.all() {
        // What is over stays in the table until it is replaced.
        if record.rank(&teller.at) == 0 {
            continue;
        }
        counts[record.standing(&teller.at) as usize] += 1;
        vouched += u64::from(record.kind() == Kind::Vouched);
        newest.add(teller.age(record), source, record);
    }
    let standings = Standing::ALL.iter().zip(counts);
    let settings = datapath.manifest().policy.standing.as_ref();
    Ok(KnownList {
        capacity: settings.map_or(known.settings().lines, |settings| settings.capacity),
        standings: standings
            .map(|(standing, count)| (standing.name().to_owned(), count))
            .collect(),
        vouched,
        shortage: teller.shortage(),
        handshakes_unseen: unseen(datapath),
        newest: newest
            .into_sorted()
            .map(|(source, record)| teller.tell(source, record))
            .collect(),
    })
}

/// Describes the source of an address.
pub(in crate::daemon) fn of_address(
    datapath: &Datapath,
    address: IpAddr,
) -> Result<SourceStatus, DatapathError> {
    let known = datapath.known_sources()?;
    let teller = Teller::new(known.moment()?);
    let source = known.source(address);
    let told = teller.tell(source, known.record(source));
    Ok(
        match proven_by(&datapath.manifest().policy, address.into()) {
            Some(list) => listed(list, told, address),
            None => told,
        },
    )
}

/// The youngest of many records, in bounded memory.
struct Newest {
    most: usize,
    /// By age, the oldest on top; the source makes the order the same each time.
    heap: BinaryHeap<(u32, u64, Reverse<u64>)>,
}

impl Newest {
    fn new(most: usize) -> Self {
        Self {
            most,
            heap: BinaryHeap::new(),
        }
    }

    fn add(&mut self, age: u32, source: SourceId, record: Record) {
        self.heap.push((age, source.0, Reverse(record.0)));
        if self.heap.len() > self.most {
            self.heap.pop();
        }
    }

    fn into_sorted(self) -> impl Iterator<Item = (SourceId, Record)> {
        let sorted = self.heap.into_sorted_vec().into_iter();
        sorted.map(|(_, source, Reverse(record))| (SourceId(source), Record(record)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_youngest_come_first_and_the_oldest_go() {
        let mut newest = Newest::new(3);
        for age in [5, 2, 9, 4, 2, 7] {
            newest.add(age, SourceId(u64::from(age) + 100), Record(age.into()));
        }
        let ages: Vec<_> = newest.into_sorted().map(|(_, record)| record.0).collect();
        assert_eq!(ages, [2, 2, 4]);
        let mut none = Newest::new(0);
        none.add(1, SourceId(1), Record(1));
        assert_eq!(none.into_sorted().count(), 0);
    }
}
