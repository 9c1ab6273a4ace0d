//! The machine of the measurement.

use std::{fs, thread};

use jiff::Zoned;
use serde::Serialize;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    pub(crate) date: String,
    /// The number of other processes that ran in the previous minute: the lower, the better the
    /// results.
    pub(crate) load: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpu = read("/proc/cpuinfo")
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, name)| name.trim().to_owned());
        let virtual_machine = read("/proc/cpuinfo").contains(" hypervisor");
        let cpu = cpu.unwrap_or_else(|| "unknown".to_owned());
        Self {
            cpu: if virtual_machine {
                format!("{cpu} (a virtual machine)")
            } else {
                cpu
            },
            cpus: thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            date: Zoned::now().strftime("%Y-%m-%d").to_string(),
            load: read("/proc/loadavg")
                .split(' ')
                .next()
                .unwrap_or_default()
                .to_owned(),
        }
    }
}
