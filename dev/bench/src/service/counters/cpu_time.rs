//! How a CPU spent its time.

use crate::{float::to_f64, service::growth::growing};

growing! {
    /// How a CPU spent its time, in the kernel's ticks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) struct CpuTime {
        all: u64,
        stolen: u64,
    }
}

impl CpuTime {
    /// Reads a line of /proc/stat: user, nice, system, idle, iowait, irq, softirq, steal; guests'
    /// times are part of the first two.
    pub(super) fn of(stat: &str, cpu: usize) -> Option<Self> {
        let name = format!("cpu{cpu}");
        let mut lines = stat.lines().map(str::split_whitespace);
        let numbers = lines.find_map(|mut words| (words.next()? == name).then_some(words))?;
        let times: Option<Vec<u64>> = numbers.take(8).map(|word| word.parse().ok()).collect();
        let times = times?;
        Some(Self {
            all: times.iter().sum(),
            stolen: *times.get(7)?,
        })
    }

    /// Returns the percentage of time in which the host ran another guest on the CPU.
    pub(crate) fn stolen(&self) -> f64 {
        to_f64(self.stolen) * 100.0 / to_f64(self.all.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::growth::MonotonicCounter as _;

    #[test]
    fn reads_how_a_cpu_spent_its_time() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let after =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 2 3 4 41 5 1 1 51 8 8\ncpu1 1 1 1 1 1 1 1 1 1 1\n";
        let [before, later] = [before, after].map(|stat| CpuTime::of(stat, 0).unwrap());
        let stolen = later.since(&before).stolen();
        assert_eq!(stolen.to_bits(), 50.0_f64.to_bits());
        assert_eq!(CpuTime::of(after, 2), None);
    }
}
