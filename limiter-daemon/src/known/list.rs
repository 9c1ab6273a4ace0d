//! Lists the known sources for requests.

use std::{cmp::Reverse, collections::BinaryHeap, net::IpAddr};

use limiter_common::standing::{Kind, Record, SourceId, Standing, StandingContext, Tick};
use limiter_datapath::kernel::{Datapath, DatapathError, SourceStanding};
use limiter_protocol::{
    StandingExplanation,
    known::{KnownList, KnownQuery, MAX_SHOWN},
};

use crate::standing::{explain, shortage};

/// Counts the known sources, and describes the newest. Reads the whole table.
pub(crate) fn list(datapath: &Datapath, query: KnownQuery) -> Result<KnownList, DatapathError> {
    let known = datapath.known_sources()?;
    let at = known.standing_context()?;
    let mut counts = [0; Standing::COUNT];
    let mut trusted = 0;
    let mut newest = NewestRecords::new(query.limit.min(MAX_SHOWN));
    for (source, record) in known.all_at(&at) {
        counts[record.standing(&at) as usize] += 1;
        trusted += u64::from(record.kind() == Kind::Trusted);
        newest.add(age(record, &at), source, record);
    }
    let standings = Standing::ALL.iter().zip(counts);
    let settings = datapath.manifest().policy.standing_in_use();
    let settings = settings.ok_or(DatapathError::NoStanding)?;
    let reported = newest.into_sorted().map(|(source, record)| {
        let standing = SourceStanding::of_record(source, record, &at);
        StandingExplanation {
            // The list gives the shortage once for all sources.
            shortage: None,
            ..explain(&standing, settings.ipv6_prefix)
        }
    });
    Ok(KnownList {
        capacity: settings.capacity,
        standings: standings
            .map(|(standing, count)| (standing.name().to_owned(), count))
            .collect(),
        trusted,
        shortage: shortage(at.shortage, at.now),
        handshakes_error: (datapath.handshake_status().err()).map(ToString::to_string),
        newest: reported.collect(),
    })
}

pub(crate) fn of_address(
    datapath: &Datapath,
    address: IpAddr,
) -> Result<StandingExplanation, DatapathError> {
    let settings = datapath.manifest().policy.standing_in_use();
    let standing = datapath.standing_of(address)?.zip(settings);
    let (standing, settings) = standing.ok_or(DatapathError::NoStanding)?;
    Ok(explain(&standing, settings.ipv6_prefix))
}

/// Returns the ticks since a source gained its recorded standing. A trusted source's record lacks that time, so its
/// last visit counts.
const fn age(record: Record, at: &StandingContext<'_>) -> u32 {
    let since = match record.kind() {
        Kind::Nothing | Kind::Trusted => record.last(),
        Kind::Retried => Tick(record.since().wrapping_sub(Record::RETRIED)).kept(),
        Kind::Visited | Kind::Familiar | Kind::Proven | Kind::Reported => record.since(),
    };
    at.now.since_kept(since)
}

/// The newest of many records, in bounded memory.
struct NewestRecords {
    most: usize,
    /// By age, the oldest on top; the source makes the order reproducible.
    heap: BinaryHeap<(u32, u64, Reverse<u64>)>,
}

impl NewestRecords {
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
        let mut newest = NewestRecords::new(3);
        for age in [5, 2, 9, 4, 2, 7] {
            newest.add(age, SourceId(u64::from(age) + 100), Record(age.into()));
        }
        let ages: Vec<_> = newest.into_sorted().map(|(_, record)| record.0).collect();
        assert_eq!(ages, [2, 2, 4]);
        let mut none = NewestRecords::new(0);
        none.add(1, SourceId(1), Record(1));
        assert_eq!(none.into_sorted().count(), 0);
    }
}
