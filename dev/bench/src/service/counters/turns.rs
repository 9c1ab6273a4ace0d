//! How long threads ran, and how long they waited for a CPU although they were ready.

use std::{fs, ops::Add};

use serde::Serialize;

use crate::{float::to_f64, service::growth::growing};

growing! {
    /// The turns of some threads on a CPU.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub(crate) struct Turns {
        /// Nanoseconds in which they ran.
        ran_ns: u64,
        /// Nanoseconds in which they were ready, but another thread ran.
        waited_ns: u64,
        /// How often they began to run.
        begun: u64,
    }
}

impl Turns {
    /// Returns the nanoseconds of running time per packet.
    pub(crate) fn ran_for_each(&self, packets: u64) -> f64 {
        to_f64(self.ran_ns) / to_f64(packets.max(1))
    }
}

impl Add for Turns {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ran_ns: self.ran_ns + other.ran_ns,
            waited_ns: self.waited_ns + other.waited_ns,
            begun: self.begun + other.begun,
        }
    }
}

/// Returns the turns of a thread; zeros if it has ended, or the kernel does not count them.
pub(super) fn of_thread(thread: i32) -> Turns {
    let schedstat = fs::read_to_string(format!("/proc/{thread}/schedstat"));
    schedstat
        .ok()
        .and_then(|text| read(&text))
        .unwrap_or_default()
}

/// Returns the turns of the first thread of each process.
pub(super) fn of_processes(processes: impl Iterator<Item = i32>) -> Turns {
    processes.map(of_thread).fold(Turns::default(), Turns::add)
}

fn read(schedstat: &str) -> Option<Turns> {
    let mut numbers = schedstat.split_whitespace().map(|word| word.parse().ok());
    Some(Turns {
        ran_ns: numbers.next()??,
        waited_ns: numbers.next()??,
        begun: numbers.next()??,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::growth::MonotonicCounter as _;

    #[test]
    fn reads_what_the_kernel_counts() {
        let turns = read("228789 17 2\n").unwrap();
        assert_eq!(
            (turns.ran_ns, turns.waited_ns, turns.begun),
            (228_789, 17, 2)
        );
        assert_eq!(turns.ran_for_each(228_789).to_bits(), 1.0_f64.to_bits());
        assert_eq!(read("1 2"), None);
        assert_eq!((turns + turns).since(&turns), turns);
        assert_eq!(of_thread(-1), Turns::default());
    }
}
