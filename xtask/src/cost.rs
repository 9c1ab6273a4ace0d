//! The cost of a piece of work: wall time and CPU time.

use std::{
    fmt,
    time::{Duration, Instant},
};

use anyhow::Result;
use nix::sys::{
    resource::{Usage, UsageWho, getrusage},
    time::TimeVal,
};

/// The cost of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// The wall time.
    pub(crate) wall: Duration,
    /// The CPU time of this process, and of the processes that it waited for.
    pub(crate) cpu: Duration,
}

/// Measures a cost from its creation on.
pub(crate) struct Stopwatch {
    start: Instant,
    cpu: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> Result<Self> {
        Ok(Self {
            start: Instant::now(),
            cpu: cpu()?,
        })
    }

    pub(crate) fn read(&self) -> Result<Cost> {
        Ok(Cost {
            wall: self.start.elapsed(),
            cpu: cpu()?.saturating_sub(self.cpu),
        })
    }
}

fn cpu() -> Result<Duration> {
    let of = |usage: Usage| duration(usage.user_time()) + duration(usage.system_time());
    Ok(of(getrusage(UsageWho::RUSAGE_SELF)?) + of(getrusage(UsageWho::RUSAGE_CHILDREN)?))
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or_default();
    let microseconds = u64::try_from(time.tv_usec()).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(microseconds)
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (wall, cpu) = (self.wall.as_secs(), self.cpu.as_secs());
        write!(f, "{} min {} s ({cpu} s of CPU time)", wall / 60, wall % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_cpu_time_of_a_child_that_has_ended() {
        let stopwatch = Stopwatch::start().unwrap();
        let spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
        let status = std::process::Command::new("sh").args(["-c", spin]).status();
        assert!(status.unwrap().success());
        let cost = stopwatch.read().unwrap();
        assert!(cost.cpu > Duration::ZERO && cost.wall > Duration::ZERO);
    }

    #[test]
    fn shows_minutes() {
        let cost = Cost {
            wall: Duration::from_secs(130),
            cpu: Duration::from_secs(200),
        };
        assert_eq!(cost.to_string(), "2 min 10 s (200 s of CPU time)");
    }
}
