//! Incidents: somebody begins to be dropped, and is dropped no more. They are events of the log.
//!
//! The limits' counters tell whether anything was dropped; only then are the offenders read, and
//! so seldom that a flood does not make it cost more than a hundredth of a CPU. What is told of
//! them is decided in [`tracker`], from what is read and the time.

mod event;
mod lines;
mod tracker;

use std::{convert::Infallible, time::Duration};

use limiter_common::limit::LimitId;
use tracing::warn;

use self::{event::Event, tracker::Incidents};
use super::Daemon;
use crate::{
    config::Offenders,
    datapath::{DatapathError, monotonic_now},
};

/// For how long somebody must not have been dropped, so that the incident has ended.
pub const QUIET: Duration = Duration::from_secs(30);

/// How long it takes at least from one look to the next.
const PAUSE: Duration = Duration::from_secs(1);

/// How long it takes at most, whatever a look costs.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// A look's share of the time: one part in so many.
const SHARE: u32 = 100;

/// Logs incidents, forever.
pub(super) async fn watch(daemon: &Daemon, quiet: Duration) -> Infallible {
    let mut incidents = Incidents::new(quiet, monotonic_now());
    loop {
        let begun = cpu_time();
        let pause = match look(daemon, &mut incidents) {
            Ok(events) => {
                let datapath = daemon.datapath();
                for event in events {
                    event.log(&datapath.manifest().policy);
                }
                pause_after(cpu_time().saturating_sub(begun))
            }
            Err(error) => {
                warn!("cannot tell who is dropped: {error}");
                LONGEST_PAUSE
            }
        };
        tokio::time::sleep(pause).await;
    }
}

fn look(daemon: &Daemon, incidents: &mut Incidents) -> Result<Vec<Event>, DatapathError> {
    let datapath = daemon.datapath();
    let now_ns = monotonic_now();
    let limits = datapath.manifest().policy.limits.iter();
    let dropped = limits
        .map(|limit| Ok((limit.id, datapath.limit_traffic(limit.id)?.dropped.packets)))
        .collect::<Result<Vec<(LimitId, u64)>, DatapathError>>()?;
    let recorded = (incidents.is_news(&dropped) && datapath.settings().offenders != Offenders::OFF)
        .then(|| datapath.offenders())
        .transpose()?;
    Ok(incidents.observe(now_ns, &dropped, recorded.as_ref()))
}

fn pause_after(look: Duration) -> Duration {
    look.saturating_mul(SHARE - 1).clamp(PAUSE, LONGEST_PAUSE)
}

/// What this thread has had of a CPU. On a host that is flooded a look takes much longer than
/// that: it waits for the packets.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec of our own; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or_default();
    Duration::new(time.tv_sec.unsigned_abs(), nanoseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_takes_no_more_than_its_share() {
        for (look_ms, pause_ms) in [(0, 1_000), (5, 1_000), (30, 2_970), (5_000, 60_000)] {
            let pause = pause_after(Duration::from_millis(look_ms));
            assert_eq!(pause, Duration::from_millis(pause_ms), "{look_ms} ms");
        }
    }
}
