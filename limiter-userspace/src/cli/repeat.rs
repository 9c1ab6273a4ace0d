//! Commands that go on until their user ends them.

use std::{io, time::Duration};

use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// Runs such a command.
pub(super) fn run(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(command);
    // A daemon that does not answer keeps nobody who wants an end.
    runtime.shutdown_background();
    ended
}

/// Fetches something every so often and shows it, until the user wants an end or something fails.
pub(super) async fn repeat<T: Send + 'static>(
    end: &mut End,
    every: Duration,
    fetch: impl Fn() -> anyhow::Result<T> + Clone + Send + 'static,
    mut show: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut ticks = interval(every);
    // After a late answer not two at once.
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

/// Ctrl-C, SIGTERM, or the terminal is gone: each an end as the user wants it.
pub(super) struct End {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl End {
    /// From now on these signals are waited for; they end the process no more.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one of them.
    pub(super) async fn wanted(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
