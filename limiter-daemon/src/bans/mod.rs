//! Makes, lifts and forgets bans. The kernel's map is the only source of truth; this module changes it and keeps
//! counts of it.

mod ban_index;
mod change;
mod journal;
mod list;
mod new;
mod origin_kind;
mod prefix;
mod saved;
mod shared_bans;
mod table;
mod tally;

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::{error, warn};

pub use self::change::{change_pinned, lift_pinned};
pub(super) use self::{
    ban_index::{BanCounts, Bans},
    change::{change, lift_all},
    journal::JournalEntry,
    list::{count, of_address, page},
    new::{BanError, BanOrigin, NewBan},
    origin_kind::OriginKind,
    saved::{changes, restore, save, save_hits},
    shared_bans::SharedBans,
};

/// Interval between sweeps, each through some thousand bans.
const SWEEP: Duration = Duration::from_secs(1);

/// Forgets ended bans, some thousand a second at most, forever.
pub(super) async fn sweep(bans: &Arc<SharedBans>) -> Infallible {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let bans = Arc::clone(bans);
        let swept = spawn_blocking(move || bans.change(|_, bans| bans.sweep()));
        match swept.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!("cannot forget bans that have ended: {error}"),
            Err(error) => error!("forgetting bans that have ended has failed: {error}"),
        }
    }
}
