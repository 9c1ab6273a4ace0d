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
mod shared_ban_index;
mod table;
mod tally;

use std::{convert::Infallible, sync::Arc, time::Duration};

use limiter_datapath::kernel::{BanMaps, Datapath, DatapathError};
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};
use tracing::{error, warn};

use self::shared_ban_index::with_bans_of;
pub(super) use self::{
    ban_index::Bans,
    change::{change, lift_all},
    journal::JournalEntry,
    list::{count, of_address, page},
    new::{BanError, BanOrigin, NewBan},
    saved::{changes, restore, save, save_hits},
    shared_ban_index::SharedBanIndex,
};
pub use self::{
    ban_index::{BanCounts, BanTotals},
    change::{change_pinned, lift_pinned},
    origin_kind::OriginKind,
};
use super::shared::Daemon;

/// Interval between sweeps, each through some thousand bans.
const SWEEP: Duration = Duration::from_secs(1);

impl Daemon {
    /// Gives `act` exclusive access to the bans: no other change and no policy with other maps comes in between.
    /// Packets and requests do not wait.
    pub(super) fn with_bans<T, E: From<DatapathError>>(
        &self,
        act: impl FnOnce(&Datapath, &mut Bans<'_, BanMaps>) -> Result<T, E>,
    ) -> Result<T, E> {
        let datapath = self.datapath();
        let mut ban_index = self.bans.ban_index();
        with_bans_of(&datapath, &mut ban_index, act)
    }
}

/// Forgets ended bans, some thousand a second at most, forever.
pub(super) async fn sweep(daemon: &Arc<Daemon>) -> Infallible {
    let mut ticks = interval(SWEEP);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let daemon = Arc::clone(daemon);
        let swept = spawn_blocking(move || daemon.with_bans(|_, bans| bans.sweep()));
        match swept.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => warn!("cannot forget bans that have ended: {error}"),
            Err(error) => error!("forgetting bans that have ended has failed: {error}"),
        }
    }
}
