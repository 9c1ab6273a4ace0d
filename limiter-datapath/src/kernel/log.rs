//! Forwards the program's log statements to the daemon's log.

use std::io;

use aya_log::EbpfLogger;
use limiter_common::reason::Reason;
use log::{Log, Metadata, Record};
use tokio::{io::unix::AsyncFd, task::JoinHandle};
use tracing::debug;

use super::{error::LogError, instance::Instance};

/// The log target of the verdicts, for filters.
pub const VERDICTS: &str = module_path!();

/// Forwards a program's log until it is dropped.
#[derive(Debug)]
pub struct LogForwarder(JoinHandle<()>);

impl Drop for LogForwarder {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Forwards an instance's log under the name of its interface. The instance must come from the
/// object with log statements.
pub(super) fn forward(instance: &mut Instance, interface: &str) -> Result<LogForwarder, LogError> {
    let verdicts = Verdicts {
        interface: interface.to_owned(),
    };
    let logger = EbpfLogger::init_with_logger(instance.ebpf_mut(), verdicts)?;
    // SAFETY: the logger keeps the same ring buffer descriptor open until it is dropped.
    let mut logger = unsafe { AsyncFd::register(logger) }.map_err(io::Error::from)?;
    Ok(LogForwarder(tokio::spawn(async move {
        while let Ok(mut ready) = logger.readable_mut().await {
            ready.get_inner_mut().flush();
            ready.clear_ready();
        }
    })))
}

/// Turns the verdicts on one interface into events.
struct Verdicts {
    interface: String,
}

impl Log for Verdicts {
    fn enabled(&self, _metadata: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let interface = self.interface.as_str();
        let verdict = with_reason(&record.args().to_string());
        debug!(interface, "{interface}: {verdict}");
    }

    fn flush(&self) {}
}

/// Turns the program's `drop reason=3` into `drop reason=over_limit`: the program has no room for
/// names.
fn with_reason(verdict: &str) -> String {
    let named = verdict.rsplit_once('=').and_then(|(before, number)| {
        let reason = Reason::of_number(number.parse().ok()?)?;
        Some(format!("{before}={}", reason.name()))
    });
    named.unwrap_or_else(|| verdict.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_named() {
        assert_eq!(with_reason("drop reason=3"), "drop reason=over_limit");
        assert_eq!(with_reason("drop reason=4000"), "drop reason=4000");
        assert_eq!(with_reason("something else"), "something else");
    }
}
