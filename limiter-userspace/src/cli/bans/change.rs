//! Changes bans through the daemon or, if none runs, in the pinned maps.

use anyhow::bail;
use limiter_datapath::kernel::Datapath;
use limiter_policy::policy::bans::Origin;

use crate::{
    cli::args::ReadArgs,
    daemon,
    guard::{GuardProbe, ProtectedAddresses},
    protocol::{
        Answer, Request,
        bans::{BanChanges, BanResults},
    },
};

pub(super) fn change(read: &ReadArgs, wanted: &BanChanges) -> anyhow::Result<BanResults> {
    let pinned = |datapath: &Datapath| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut probe = GuardProbe::default();
        let protected = runtime.block_on(ProtectedAddresses::ask(&mut probe));
        let protected = protected.map(|protected| protected.with(wanted.session));
        Ok(daemon::change_pinned(datapath, protected, wanted))
    };
    match read.change(&Request::ChangeBans(wanted.clone()), pinned)? {
        Answer::BansChanged(changed) if changed.outcomes.len() == wanted.changes.len() => {
            Ok(changed)
        }
        _ => bail!("the daemon gave an unexpected answer"),
    }
}

/// Lifts all bans, or all of an origin; returns how many were in force.
pub(super) fn lift_all(read: &ReadArgs, origin: Option<&Origin>) -> anyhow::Result<u64> {
    let lift = |datapath: &Datapath| Ok(daemon::lift_pinned(datapath, origin));
    let origin = origin.cloned();
    match read.change(&Request::LiftBans { origin }, lift)? {
        Answer::BansLifted { lifted } => Ok(lifted),
        _ => bail!("the daemon gave an unexpected answer"),
    }
}
