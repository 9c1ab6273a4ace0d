//! Logs incidents: a source, or a name that packets ask for, begins to be dropped, and later is dropped no more.
//!
//! The offenders are read only if the limits' counters have moved, and so rarely that even a flood costs no more than
//! a hundredth of a CPU. From them and the time, [`tracker`] decides which lines to log.

mod event;
mod lines;
mod recent;
mod tracker;

use std::{convert::Infallible, sync::Arc, time::Duration};

use limiter_common::limit::LimitId;
use limiter_datapath::kernel::{DatapathError, monotonic_now, wall_clock_now};
use limiter_policy::config::Offenders;
use limiter_protocol::web::IncidentLine;
use tokio::task::spawn_blocking;
use tracing::{error, warn};

pub(super) use self::recent::RecentIncidents;
use self::{event::Event, tracker::Incidents};
use super::{
    pace::{LONGEST_PAUSE, cpu_time, pause_after},
    shared_datapath::SharedDatapath,
    texts::Texts,
};

/// How long a source must go without a drop for its incident to end.
pub const QUIET: Duration = Duration::from_secs(30);

/// The shortest pause between two polls.
const PAUSE: Duration = Duration::from_secs(1);

/// Polls may take 1 / `CPU_DIVISOR` of the time.
const CPU_DIVISOR: u32 = 100;

/// Logs incidents, forever.
pub(super) async fn watch(
    datapath: &Arc<SharedDatapath>,
    texts: &Arc<Texts>,
    recent: &Arc<RecentIncidents>,
    quiet: Duration,
) -> Infallible {
    let mut incidents = Incidents::new(quiet, monotonic_now());
    loop {
        let (datapath, texts, recent) =
            (Arc::clone(datapath), Arc::clone(texts), Arc::clone(recent));
        let polled = spawn_blocking(move || round(&datapath, &texts, &recent, incidents));
        let pause;
        (incidents, pause) = polled.await.unwrap_or_else(|error| {
            error!("logging who is dropped has failed and starts over: {error}");
            (Incidents::new(quiet, monotonic_now()), LONGEST_PAUSE)
        });
        tokio::time::sleep(pause).await;
    }
}

/// Polls once; also returns the pause until the next poll.
fn round(
    datapath: &SharedDatapath,
    texts: &Texts,
    recent: &RecentIncidents,
    mut incidents: Incidents,
) -> (Incidents, Duration) {
    let begun = cpu_time();
    let pause = match poll(datapath, &mut incidents) {
        Ok(events) => {
            let datapath = datapath.read();
            if events.iter().any(Event::is_of_name) {
                // The first refused packets of an incident may have brought the text of their name.
                texts.read(&datapath);
            }
            for event in events {
                let text = event.log(&datapath, texts);
                recent.add(IncidentLine {
                    at: wall_clock_now(),
                    began: event.is_beginning(),
                    text,
                });
            }
            pause_after(cpu_time().saturating_sub(begun), CPU_DIVISOR, PAUSE)
        }
        Err(error) => {
            warn!("cannot tell who is dropped: {error}");
            LONGEST_PAUSE
        }
    };
    (incidents, pause)
}

fn poll(datapath: &SharedDatapath, incidents: &mut Incidents) -> Result<Vec<Event>, DatapathError> {
    let datapath = datapath.read();
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
