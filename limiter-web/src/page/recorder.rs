//! Reads the counters each second, for the history and for clients that stream events.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use limiter_common::reason::Action;
use limiter_protocol::{Failure, web::DaemonView};
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use tracing::warn;

use super::{
    events,
    history::{History, REASONS},
    rates::Rates,
};

/// The interval of reads.
const TICK: Duration = Duration::from_secs(1);

/// Reads the counters, and keeps the history.
pub(super) struct Recorder {
    daemon: Arc<DaemonView>,
    state: Mutex<RecorderState>,
    /// The newest event.
    events: watch::Sender<Arc<str>>,
}

pub(super) struct RecorderState {
    pub(super) history: History,
    pub(super) rates: Rates,
    /// The verdict on malformed packets.
    pub(super) malformed: Action,
    read_at: Instant,
    has_failed: bool,
}

impl Recorder {
    pub(super) fn new(daemon: Arc<DaemonView>) -> Self {
        Self {
            daemon,
            state: Mutex::new(RecorderState {
                history: History::new(),
                rates: Rates::default(),
                malformed: Action::Drop,
                read_at: Instant::now(),
                has_failed: false,
            }),
            events: watch::Sender::new(Arc::from("")),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, RecorderState> {
        // The numbers stay usable after a panic elsewhere, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn follow(&self) -> watch::Receiver<Arc<str>> {
        self.events.subscribe()
    }

    pub(super) async fn record(&self) -> Infallible {
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let read = self.read();
            let mut recorded = self.state();
            if let (Err(error), false) = (&read, recorded.has_failed) {
                warn!("cannot read the counters for the page: {error}");
            }
            recorded.has_failed = read.is_err();
        }
    }

    fn read(&self) -> Result<(), Failure> {
        let traffic = (self.daemon.traffic)()?;
        let mut counted = [0; REASONS];
        for (counter, packets) in counted.iter_mut().zip(traffic.packets) {
            *counter = packets;
        }
        let now = Instant::now();
        let mut recorded = self.state();
        let elapsed = now.saturating_duration_since(recorded.read_at);
        recorded.read_at = now;
        recorded.malformed = traffic.malformed;
        let at = Timestamp::now().as_second();
        recorded.history.record(at, elapsed, &counted);
        recorded.rates.record(now, traffic.limits);
        if let Some(event) = events::event(&recorded, &counted) {
            self.events.send_replace(event.into());
        }
        Ok(())
    }
}
