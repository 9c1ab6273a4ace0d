//! Bans changed by the daemon; or, where none runs, in what is pinned.

use anyhow::bail;
use limiter_datapath::kernel::Datapath;

use crate::{
    cli::args::ReadArgs,
    daemon,
    guard::{Asker, Protected},
    protocol::{
        Answer, Request,
        bans::{BanChanges, BansChanged},
    },
};

/// Makes and lifts bans.
pub(super) fn change(read: &ReadArgs, wanted: &BanChanges) -> anyhow::Result<BansChanged> {
    let pinned = |datapath: &Datapath| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let mut asker = Asker::default();
        let protected = runtime.block_on(Protected::ask(&mut asker));
        let protected = protected
            .map(|protected| protected.with(wanted.session))
            .map_err(|error| error.to_string());
        Ok(daemon::change_pinned(datapath, &protected, wanted))
    };
    match read.change(&Request::ChangeBans(wanted.clone()), pinned)? {
        Answer::BansChanged(changed) if changed.outcomes.len() == wanted.changes.len() => {
            Ok(changed)
        }
        _ => bail!("the daemon answered something else than was asked"),
    }
}

/// Lifts all bans; returns how many held.
pub(super) fn lift_all(read: &ReadArgs) -> anyhow::Result<u64> {
    let lift = |datapath: &Datapath| Ok(daemon::lift_pinned(datapath));
    match read.change(&Request::LiftBans, lift)? {
        Answer::BansLifted { lifted } => Ok(lifted),
        _ => bail!("the daemon answered something else than was asked"),
    }
}
