//! Keeps the filter of sources with a standing small.

use std::{convert::Infallible, sync::Arc, time::Duration};

use limiter_datapath::kernel::DatapathError;
use tokio::{
    task::spawn_blocking,
    time::{Instant, MissedTickBehavior, interval_at},
};
use tracing::{error, warn};

use crate::shared_datapath::SharedDatapath;

/// Interval between renewals of the filter, each of which reads the table of known sources: it takes milliseconds, and
/// forgotten sources only cost a look-up in vain.
const INTERVAL: Duration = Duration::from_mins(1);

/// Makes the kernel's filter forget expired sources, once a minute, forever.
pub(crate) async fn forget(datapath: &Arc<SharedDatapath>) -> Infallible {
    let mut ticks = interval_at(Instant::now() + INTERVAL, INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let datapath = Arc::clone(datapath);
        let forgotten = spawn_blocking(move || match datapath.read().known_sources() {
            Ok(sources) => sources.forget_in_filter(),
            Err(DatapathError::NoStanding) => Ok(()),
            Err(error) => Err(error),
        });
        match forgotten.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!("cannot renew the filter of known sources: {error}"),
            Err(error) => error!("renewing the filter of known sources has failed: {error}"),
        }
    }
}
