//! Changes bans through the daemon or, if none runs, in the pinned maps.

use limiter_daemon as daemon;
use limiter_datapath::kernel::Datapath;
use limiter_host::guard::{GuardProbe, ProtectedAddresses};
use limiter_policy::policy::bans::Origin;
use limiter_protocol::{
    LiftBans,
    bans::{BanChanges, BanResults},
    control::client::ClientError,
};

use crate::cli::args::ReadArgs;

pub(super) fn change(read: &ReadArgs, wanted: &BanChanges) -> anyhow::Result<BanResults> {
    let pinned = |datapath: &Datapath| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut probe = GuardProbe::default();
        let protected = runtime.block_on(ProtectedAddresses::query(&mut probe));
        let protected = protected.map(|protected| protected.with(wanted.session));
        let changed = daemon::change_pinned(datapath, protected, wanted);
        Ok(changed.map_err(ClientError::from)?)
    };
    read.change(wanted, pinned)
}

/// Lifts all bans, or all of an origin; returns how many were in force.
pub(super) fn lift_all(read: &ReadArgs, origin: Option<&Origin>) -> anyhow::Result<u64> {
    let lift = |datapath: &Datapath| {
        let lifted = daemon::lift_pinned(datapath, origin);
        Ok(lifted.map_err(ClientError::from)?)
    };
    let origin = origin.cloned();
    Ok(read.change(&LiftBans { origin }, lift)?.lifted)
}
