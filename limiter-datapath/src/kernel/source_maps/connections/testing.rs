//! Counts for tests, without connections: in the daemon only the network stack causes counts.

use std::{
    cell::RefCell,
    fs, io,
    os::fd::{AsFd as _, AsRawFd as _},
};

use aya::maps::{Array, MapData};
use limiter_common::connection::{
    CountId,
    count::{self, CountTable},
    line::{SLOTS, SlotMatches, Slots as _, line_of, slot_of, word_at},
};

use super::{CONNECTION_COUNTS, ConnectionMaps, Line};
use crate::kernel::{DatapathError, map::error};

/// The counts, with no concurrent writer.
struct ExclusiveCounts<'m> {
    map: RefCell<&'m mut Array<MapData, [u64; SLOTS]>>,
    failed: RefCell<Option<DatapathError>>,
}

impl ExclusiveCounts<'_> {
    fn line(&self, line: u32) -> Line {
        let read = self.map.borrow().get(&line, 0);
        let read = read.map_err(error(CONNECTION_COUNTS));
        Line(self.or_none(read).unwrap_or_default())
    }

    fn set(&self, at: u32, word: u64) {
        let mut line = self.line(line_of(at)).0;
        line[slot_of(at)] = word;
        let set = self.map.borrow_mut().set(line_of(at), line, 0);
        self.or_none(set.map_err(error(CONNECTION_COUNTS)));
    }

    fn or_none<T>(&self, result: Result<T, DatapathError>) -> Option<T> {
        result
            .map_err(|error| *self.failed.borrow_mut() = Some(error))
            .ok()
    }
}

impl CountTable for ExclusiveCounts<'_> {
    fn search(&self, line: u32, count_id: CountId) -> SlotMatches {
        count::search(&self.line(line), count_id)
    }

    fn get(&self, at: u32) -> u64 {
        self.line(line_of(at)).get(slot_of(at))
    }

    fn compare_and_swap(&self, at: u32, seen: u64, wanted: u64) -> bool {
        let holds = self.get(at) == seen;
        if holds {
            self.set(at, wanted);
        }
        holds
    }

    fn count_down(&self, at: u32) -> u64 {
        let word = self.get(at);
        self.set(at, word.wrapping_sub(1));
        word
    }
}

impl ConnectionMaps {
    /// Counts a connection under a count id.
    pub fn add(&mut self, count_id: CountId) -> Result<(), DatapathError> {
        self.change(|counts| {
            counts.add(count_id);
        })
    }

    /// Takes a connection off a count id.
    pub fn take_off(&mut self, count_id: CountId) -> Result<(), DatapathError> {
        self.change(|counts| {
            for line in count_id.lines() {
                let found = counts.search(line, count_id).found;
                if found != 0 {
                    return counts.take_off(word_at(line, found.trailing_zeros()));
                }
            }
        })
    }

    fn change(&mut self, change: impl FnOnce(&ExclusiveCounts<'_>)) -> Result<(), DatapathError> {
        let counts = ExclusiveCounts {
            map: RefCell::new(&mut self.counts.map),
            failed: RefCell::new(None),
        };
        change(&counts);
        counts.failed.into_inner().map_or(Ok(()), Err)
    }

    /// The kernel memory of all maps of connections and their queues, in bytes, as the kernel
    /// accounts for it.
    pub fn memory(&self) -> io::Result<u64> {
        let mut sum = 0;
        for (map, data) in self.maps() {
            let descriptor = data.fd().as_fd().as_raw_fd();
            let info = fs::read_to_string(format!("/proc/self/fdinfo/{descriptor}"))?;
            let bytes = info.lines().find_map(|line| line.strip_prefix("memlock:"));
            let bytes = bytes.and_then(|bytes| bytes.trim().parse::<u64>().ok());
            sum += bytes.ok_or_else(|| io::Error::other(format!("no memory of {map}")))?;
        }
        Ok(sum)
    }
}
