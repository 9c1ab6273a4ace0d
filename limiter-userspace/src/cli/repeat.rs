//! Commands that run until their user stops them.

use std::{io, time::Duration};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// Runs a command until it ends.
pub(super) fn run(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(command);
    // Do not wait for a daemon that does not answer.
    runtime.shutdown_background();
    ended
}

/// Fetches and shows a value at an interval, until the user stops it or an error occurs.
pub(super) async fn repeat<T: Send + 'static>(
    end: &mut EndSignals,
    every: Duration,
    fetch: impl Fn() -> anyhow::Result<T> + Clone + Send + 'static,
    mut show: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut ticks = interval(every);
    // After a late response, wait a whole interval.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = end.wanted() => return Ok(()),
        }
        let fetched = tokio::select! {
            fetched = spawn_blocking(fetch.clone()) => fetched??,
            () = end.wanted() => return Ok(()),
        };
        show(fetched)?;
    }
}

/// The signals that end a command: Ctrl-C, SIGTERM, and the loss of the terminal.
pub(super) struct EndSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl EndSignals {
    /// Catches these signals from now on, so that they no longer end the process.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
