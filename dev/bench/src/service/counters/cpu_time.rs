//! How a CPU spent its time.

use crate::{lane::to_f64, service::growth::growing};

growing! {
    /// How a CPU spent its time, in the kernel's ticks.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(in crate::service) struct CpuTime {
        all: u64,
        idle: u64,
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
            idle: times.get(3)? + times.get(4)?,
            stolen: *times.get(7)?,
        })
    }

    /// Returns the percentages of time in which the CPU had nothing to do, and in which the host
    /// ran something else on it.
    pub(in crate::service) fn idle_and_stolen(&self) -> [f64; 2] {
        let percent = |part| to_f64(part) * 100.0 / to_f64(self.all.max(1));
        [percent(self.idle), percent(self.stolen)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::growth::Grows as _;

    #[test]
    fn reads_how_a_cpu_spent_its_time() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let after =
            "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 2 3 4 41 5 1 1 51 8 8\ncpu1 1 1 1 1 1 1 1 1 1 1\n";
        let [before, later] = [before, after].map(|stat| CpuTime::of(stat, 0).unwrap());
        assert_eq!(
            later.since(&before).idle_and_stolen().map(f64::to_bits),
            [44.0, 50.0].map(f64::to_bits)
        );
        assert_eq!(CpuTime::of(after, 2), None);
    }
}
