//! How the machine's CPUs spend their time.

use std::collections::BTreeMap;

/// A CPU is full if less than this part of its time is left: queues grow before all is gone.
const PART_LEFT: u64 = 16;

/// The time that each CPU has spent since the machine started, by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTimes(BTreeMap<usize, CpuTime>);

/// Times in ticks, mostly hundredths of a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuTime {
    /// All time, except time taken by another virtual machine.
    all: u64,
    /// Idle, or for programs of a low priority (nice above 0), which give way.
    left: u64,
    /// In the kernel, where packets are received, by a program, a thread or an interrupt.
    kernel: u64,
}

impl CpuTimes {
    /// Reads the text of /proc/stat.
    pub(super) fn parse(stat: &str) -> Self {
        Self(stat.lines().filter_map(of_line).collect())
    }

    /// Returns whether a CPU has had next to no time left since `before`, mostly for the kernel's work. Programs that
    /// compute give way to packets, so they fill no CPU.
    pub(super) fn is_full(&self, cpu: usize, before: &Self) -> bool {
        let (Some(now), Some(before)) = (self.0.get(&cpu), before.0.get(&cpu)) else {
            return false;
        };
        // The kernel's idle times may fall by a tick.
        let since = |time: fn(&CpuTime) -> u64| time(now).saturating_sub(time(before));
        let (all, left) = (since(|time| time.all), since(|time| time.left));
        let kernel = since(|time| time.kernel);
        left * PART_LEFT < all && kernel * 2 >= all - left.min(all)
    }
}

/// Reads the line of one CPU.
fn of_line(line: &str) -> Option<(usize, CpuTime)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let mut next = || words.next()?.parse().ok();
    // Guests' times, after these, are part of the first two.
    let [user, nice, system, idle, iowait, irq, softirq]: [u64; 7] = [
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
        next()?,
    ];
    let (left, kernel) = (nice + idle + iowait, system + irq + softirq);
    let all = user + left + kernel;
    Some((cpu, CpuTime { all, left, kernel }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::HostFiles;

    #[test]
    fn a_cpu_is_full_of_the_kernels_work() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\n\
                      cpu0 1 1 1 90 9 1 1 1 7 7\n\
                      cpu2 1 1 1 90 9 1 1 1 7 7\nintr 5 6\n";
        let before = CpuTimes::parse(before);
        let is_full = |line: &str, cpu| CpuTimes::parse(line).is_full(cpu, &before);
        for (line, full) in [
            ("cpu0 1 1 1 90 9 1 1 1 7 7", false),
            // 17 ticks, one of them idle, and 16.
            ("cpu0 1 1 17 91 9 1 1 1 7 7", true),
            ("cpu0 1 1 16 91 9 1 1 1 7 7", false),
            ("cpu0 1 1 16 90 10 1 1 1 7 7", false),
            // Interrupts, and idle times that fall.
            ("cpu0 1 1 1 90 9 9 9 1 7 7", true),
            ("cpu0 1 1 1 89 9 9 9 1 7 7", true),
            // Half of it computes, or more.
            ("cpu0 9 1 5 90 9 3 3 1 7 7", true),
            ("cpu0 10 1 5 90 9 3 3 1 7 7", false),
            // A program of a low priority uses the time that is left.
            ("cpu0 1 2 17 90 9 1 1 1 7 7", true),
            ("cpu0 1 3 16 90 9 1 1 1 7 7", false),
            // Another virtual machine had the CPU.
            ("cpu0 1 1 1 90 9 1 1 26 7 7", false),
            ("cpu0 1 1 9 90 9 1 1 26 7 7", true),
            // Another CPU, and one that has just come.
            ("cpu2 1 1 26 90 9 1 1 1 7 7", false),
        ] {
            assert_eq!(is_full(line, 0), full, "{line}");
        }
        assert!(is_full("cpu2 1 1 26 90 9 1 1 1 7 7", 2));
        assert!(!is_full("cpu1 1 1 26 90 9 1 1 1 7 7", 1));
        assert_eq!(CpuTimes::parse("cpu0 1 2"), CpuTimes::default());
    }

    #[test]
    fn this_machines_cpus() {
        let times = HostFiles::open().unwrap().cpus().unwrap();
        let has_worked = |time: &CpuTime| time.kernel > 0 && time.all > time.left + time.kernel;
        assert!(times.0.values().any(has_worked), "{times:?}");
    }
}
