//! What the daemon's process takes of the machine, under the names that Prometheus gives to that of
//! any process.

use std::fmt;

use procfs::{
    ProcResult, WithCurrentSystemInfo as _, boot_time_secs,
    process::{LimitValue, Process},
    ticks_per_second,
};
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

use super::number::gauge_of;

/// What the kernel reports of a process.
struct Taken {
    cpu_seconds: f64,
    resident_bytes: u64,
    virtual_bytes: u64,
    open_descriptors: usize,
    /// `None`: any number.
    most_descriptors: Option<u64>,
    /// Since 1970.
    start_seconds: u64,
}

impl Taken {
    fn read() -> ProcResult<Self> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let most = process.limits()?.max_open_files.soft_limit;
        let ticks = ticks_per_second();
        #[expect(
            clippy::cast_precision_loss,
            reason = "ticks of years fit in the 52 bits of a fraction"
        )]
        let cpu_seconds = (stat.utime + stat.stime) as f64 / ticks as f64;
        Ok(Self {
            cpu_seconds,
            resident_bytes: stat.rss_bytes().get(),
            virtual_bytes: stat.vsize,
            open_descriptors: process.fd_count()?,
            most_descriptors: match most {
                LimitValue::Value(most) => Some(most),
                LimitValue::Unlimited => None,
            },
            start_seconds: boot_time_secs()? + stat.starttime / ticks,
        })
    }
}

/// Encodes them; nothing if the kernel does not tell, as without `/proc` or a free descriptor:
/// packets matter more.
pub(super) fn encode(encoder: &mut DescriptorEncoder) -> fmt::Result {
    let Ok(taken) = Taken::read() else {
        return Ok(());
    };
    ConstCounter::new(taken.cpu_seconds).encode(encoder.encode_descriptor(
        "process_cpu_seconds",
        "CPU time of the daemon, in seconds",
        None,
        MetricType::Counter,
    )?)?;
    let gauges = [
        (
            "process_resident_memory_bytes",
            "Memory of the daemon that is in use",
            Some(taken.resident_bytes),
        ),
        (
            "process_virtual_memory_bytes",
            "Address space of the daemon",
            Some(taken.virtual_bytes),
        ),
        (
            "process_open_fds",
            "Open file descriptors of the daemon",
            Some(taken.open_descriptors as u64),
        ),
        (
            "process_max_fds",
            "File descriptors that the daemon may have open",
            taken.most_descriptors,
        ),
        (
            "process_start_time_seconds",
            "When the daemon started, in seconds since 1970",
            Some(taken.start_seconds),
        ),
    ];
    for (name, help, value) in gauges {
        if let Some(value) = value {
            let descriptor = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(gauge_of(value)).encode(descriptor)?;
        }
    }
    Ok(())
}
