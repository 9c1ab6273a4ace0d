//! The number of packets to send, their rate, and their time limit.

use std::{
    io,
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crate::clock::monotonic_ns;

/// The longest sleep, which bounds the delay until a stop is noticed.
const NAP: Duration = Duration::from_millis(20);

/// The extra time for a steady load to catch up, so that its count is exact even on a busy machine.
const GRACE: Duration = Duration::from_secs(2);

/// The shortest interval without a packet that counts as a pause.
const PAUSE: Duration = Duration::from_millis(10);

/// The time for the receiver to empty a full veth ring.
const RING_PAUSE: Duration = Duration::from_micros(20);

/// The number of packets to send, their rate, and their time limit.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    interval: Duration,
    duration: Duration,
    most: u64,
}

impl Load {
    /// Makes a load of `per_second` packets, evenly spaced, the last before the duration is over. A delayed
    /// sender catches up, and has two more seconds to do so.
    #[must_use]
    pub fn steady(per_second: NonZeroU32, duration: Duration) -> Self {
        Self {
            interval: Duration::from_secs(1) / per_second.get(),
            ..Self::saturating(duration)
        }
    }

    /// Makes a load at the sender's maximum rate.
    #[must_use]
    pub fn saturating(duration: Duration) -> Self {
        Self {
            interval: Duration::ZERO,
            duration,
            most: u64::MAX,
        }
    }

    /// Bounds the load to this many packets.
    #[must_use]
    pub fn at_most(self, packets: u64) -> Self {
        Self {
            most: packets,
            ..self
        }
    }

    /// Returns the time limit of the load, even if its count is not reached.
    fn time_limit(&self) -> Duration {
        match self.interval {
            Duration::ZERO => self.duration,
            _ => self.duration + GRACE,
        }
    }

    /// Calls `deliver` with 0, 1, 2, … at the load's rate; repeats a call if the ring is full.
    pub(crate) fn drive(
        &self,
        progress: &Progress,
        mut deliver: impl FnMut(u64) -> io::Result<()>,
    ) -> io::Result<SendReport> {
        let start = Instant::now();
        let first_ns = monotonic_ns();
        let mut sent = SendReport {
            packets: 0,
            first_ns,
            last_ns: first_ns,
            paused: Duration::ZERO,
        };
        let mut due = Duration::ZERO;
        while sent.packets < self.most && !progress.is_stopped() {
            let elapsed = start.elapsed();
            if due >= self.duration || elapsed >= self.time_limit() {
                break;
            }
            let early = due.saturating_sub(elapsed);
            if !early.is_zero() {
                thread::sleep(early.min(NAP));
                continue;
            }
            match deliver(sent.packets) {
                Ok(()) => {
                    let now_ns = monotonic_ns();
                    let since = Duration::from_nanos(now_ns - sent.last_ns);
                    if since >= PAUSE {
                        sent.paused += since;
                    }
                    sent.last_ns = now_ns;
                    sent.packets += 1;
                    progress.count();
                    due += self.interval;
                }
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    thread::sleep(RING_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(sent)
    }
}

/// The packets sent, and the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendReport {
    /// The number of packets, frames or connections tried.
    pub packets: u64,
    /// [`monotonic_ns`] just before the first was sent.
    pub first_ns: u64,
    /// [`monotonic_ns`] just after the last was sent.
    pub last_ns: u64,
    /// The total of pauses of 10 ms or more, during which the sender did not saturate: a busy
    /// machine causes them.
    pub paused: Duration,
}

/// A handle on a running load, for any thread: follows its progress, and can end it.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    shared: Arc<LoadState>,
}

#[derive(Debug, Default)]
struct LoadState {
    sent: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    /// Returns the number of packets sent so far, over all loads of this handle.
    #[must_use]
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Ends the load soon, and every later one of this handle at once.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    fn count(&self) {
        self.shared.sent.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_bounded_in_count() {
        let load = Load::saturating(Duration::from_mins(1)).at_most(3);
        let mut seen = Vec::new();
        let sent = load.drive(&Progress::default(), |number| {
            seen.push(number);
            Ok(())
        });
        assert_eq!(sent.unwrap().packets, 3);
        assert_eq!(seen, [0, 1, 2]);
    }

    #[test]
    fn a_rate_and_a_duration_make_a_count() {
        let rate = NonZeroU32::new(100).unwrap();
        let load = Load::steady(rate, Duration::from_millis(250));
        let sent = load.drive(&Progress::default(), |_| Ok(())).unwrap();
        assert_eq!(sent.packets, 25);
        assert!(sent.last_ns - sent.first_ns >= 239_000_000, "{sent:?}");
    }

    #[test]
    fn tries_again_what_the_ring_did_not_take() {
        let mut calls = 0;
        let load = Load::saturating(Duration::from_mins(1)).at_most(2);
        let sent = load.drive(&Progress::default(), |_| {
            calls += 1;
            match calls {
                2 => Err(io::Error::from_raw_os_error(libc::ENOBUFS)),
                _ => Ok(()),
            }
        });
        assert_eq!((sent.unwrap().packets, calls), (2, 3));
    }

    #[test]
    fn stops_when_told() {
        let progress = Progress::default();
        progress.stop();
        let load = Load::saturating(Duration::from_mins(1));
        assert_eq!(load.drive(&progress, |_| Ok(())).unwrap().packets, 0);
    }
}
