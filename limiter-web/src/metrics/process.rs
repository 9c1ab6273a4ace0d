//! The resources of the daemon's process, under the metric names that Prometheus gives to any process.

use std::{fmt, fs};

use limiter_report::numbers::Kind;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter},
};
use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
};

use super::plain;

struct Figures {
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    open_descriptors: usize,
    /// `None`: any number.
    most_descriptors: Option<u64>,
    /// Seconds since 1970.
    start_seconds: u64,
}

impl Figures {
    /// Reads the figures; `None`: without `/proc` or a free descriptor.
    fn read() -> Option<Self> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let descriptors = fs::read_dir("/proc/self/fd").ok()?.count();
        let mut figures = Self::of_stat(&stat, &system)?;
        // One descriptor is the directory's, open while it is read.
        figures.open_descriptors = descriptors.saturating_sub(1);
        figures.most_descriptors = getrlimit(Resource::Nofile).current;
        Some(figures)
    }

    /// Parses `/proc/self/stat` and `/proc/stat`; proc_pid_stat(5) numbers the fields.
    fn of_stat(stat: &str, system: &str) -> Option<Self> {
        // The second field, the program's name, may have spaces and parentheses.
        let (_, behind_name) = stat.rsplit_once(')')?;
        let fields: Vec<_> = behind_name.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let mut lines = system.lines();
        let boot = lines.find_map(|line| line.strip_prefix("btime "))?;
        let ticks = clock_ticks_per_second();
        #[expect(
            clippy::cast_precision_loss,
            reason = "ticks of years fit in the 52 bits of a fraction"
        )]
        let cpu_seconds = (field(14)? + field(15)?) as f64 / ticks as f64;
        Some(Self {
            cpu_seconds,
            resident_bytes: field(24)? * page_size() as u64,
            virtual_bytes: field(23)?,
            open_descriptors: 0,
            most_descriptors: None,
            start_seconds: boot.trim().parse::<u64>().ok()? + field(22)? / ticks,
        })
    }
}

/// Encodes the figures; none without `/proc` or a free descriptor, since the packet metrics matter more.
pub(super) fn encode(encoder: &mut DescriptorEncoder) -> fmt::Result {
    let Some(figures) = Figures::read() else {
        return Ok(());
    };
    ConstCounter::new(figures.cpu_seconds).encode(encoder.encode_descriptor(
        "process_cpu_seconds",
        "CPU time of the daemon, in seconds",
        None,
        MetricType::Counter,
    )?)?;
    let gauges = [
        (
            "process_resident_memory_bytes",
            "Memory of the daemon that is in use",
            Some(figures.resident_bytes),
        ),
        (
            "process_virtual_memory_bytes",
            "Address space of the daemon",
            Some(figures.virtual_bytes),
        ),
        (
            "process_open_fds",
            "Open file descriptors of the daemon",
            Some(figures.open_descriptors as u64),
        ),
        (
            "process_max_fds",
            "File descriptors that the daemon may have open",
            figures.most_descriptors,
        ),
        (
            "process_start_time_seconds",
            "When the daemon started, in seconds since 1970",
            Some(figures.start_seconds),
        ),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            plain::encode(name, help, Kind::Gauge, value, encoder)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_moves_no_field() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194560 900 0 0 0 250 150 0 0 20 0 7 0 1000 \
            73400320 2048 18446744073709551615";
        let figures = Figures::of_stat(stat, "cpu 1 2 3\nbtime 1700000000\nprocesses 9\n").unwrap();
        let ticks = clock_ticks_per_second();
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let cpu_seconds = 400.0 / ticks as f64;
        assert!((figures.cpu_seconds - cpu_seconds).abs() < 1e-9);
        assert_eq!(figures.virtual_bytes, 73_400_320);
        assert_eq!(figures.resident_bytes, 2048 * page_size() as u64);
        assert_eq!(figures.start_seconds, 1_700_000_000 + 1000 / ticks);
        assert!(Figures::of_stat("42 (a) S 1", "btime 1").is_none());
    }

    #[test]
    fn the_kernel_reports_this_process() {
        let figures = Figures::read().unwrap();
        assert!(figures.resident_bytes > 0 && figures.virtual_bytes >= figures.resident_bytes);
        assert!(figures.open_descriptors >= 3);
    }
}
