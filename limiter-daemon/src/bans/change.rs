//! Makes and lifts bans on request.

use std::{sync::Arc, time::Duration};

use ipnet::IpNet;
use limiter_common::ban::Ban;
use limiter_datapath::kernel::{BanMaps, Datapath, DatapathError, monotonic_now};
use limiter_host::guard::{ProbeError, ProtectedAddresses, Refusal};
use limiter_policy::{
    policy::{BanExemption, Policy, bans::Origin},
    text::short,
};
use limiter_protocol::{
    BansLifted, Failure,
    bans::{BanChange, BanChanges, BanOutcome, BanRequest, BanResults, UnbanRequest},
};
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::{
    ban_index::{BanIndex, Bans},
    list::{covering, excluded_by},
    new::{BanError, BanOrigin, NewBan},
    shared_bans::with_bans_of,
};
use crate::{guard::GuardError, shared::Daemon};

/// Why no ban was changed, or not all of them.
#[derive(Debug, thiserror::Error)]
enum ChangeError {
    /// Some bans need force.
    #[error("{}", lines(refused, *others))]
    Refused {
        /// The bans that need force, and why.
        refused: Vec<(IpNet, ForceReason)>,
        /// The number of other changes in the same request.
        others: usize,
    },
    /// The kernel refused.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
}

/// Why a ban needs force.
#[derive(Debug, thiserror::Error)]
enum ForceReason {
    /// A list under `never-ban` has some of its addresses.
    #[error("{0}; --force bans it all the same")]
    NeverBanned(BanExemption),
    /// The guard protects some of its addresses.
    #[error("{0}; --force bans it all the same")]
    Protected(Refusal),
    /// The guard cannot tell which addresses it protects.
    #[error(
        "the guard cannot find the addresses that it must spare: {0}; --force bans it all the same"
    )]
    Unknown(#[source] GuardError),
    /// A list, of this name, excludes it.
    #[error(
        "the list {0} excludes it, so that a ban has no effect; --force keeps the ban for when it \
         is not excluded any more"
    )]
    Excluded(String),
}

/// Formats a line for each ban that needs force, and one for the changes dropped along with them.
fn lines(refused: &[(IpNet, ForceReason)], others: usize) -> String {
    let each = refused.iter();
    let lines = each.map(|(prefix, why)| format!("{} is not banned: {why}", short(*prefix)));
    let rest =
        (others > 0).then(|| "nothing was changed: none of the others is banned either".to_owned());
    lines.chain(rest).collect::<Vec<_>>().join("\n")
}

type ProtectedResult = Result<ProtectedAddresses, GuardError>;

/// Makes and lifts bans, except bans that the guard refuses.
pub(crate) async fn change(
    daemon: &Arc<Daemon>,
    wanted: BanChanges,
) -> Result<BanResults, Failure> {
    let protected = daemon.guard.by_hand(wanted.session).await;
    let daemon = Arc::clone(daemon);
    let changed = spawn_blocking(move || {
        let nothing_stays = daemon.state.is_none() && daemon.datapath().pins().is_none();
        let outcomes = daemon
            .bans
            .change(|datapath, bans| all(datapath, bans, &protected, &wanted))?;
        if wanted.together {
            log(&wanted.changes, &outcomes);
        }
        log_evicted(&outcomes);
        let is_banned = |outcome: &BanOutcome| matches!(outcome, BanOutcome::Banned { .. });
        Ok::<_, ChangeError>(BanResults {
            ends_with_daemon: nothing_stays && outcomes.iter().any(is_banned),
            outcomes,
        })
    });
    match changed.await {
        Ok(changed) => Ok(changed?),
        Err(error) => Err(Failure(format!("changing bans has failed: {error}"))),
    }
}

/// Lifts all bans, or all of an origin, some thousand at a time, so that other changes need not wait for all.
pub(crate) async fn lift_all(
    daemon: &Arc<Daemon>,
    origin: Option<Origin>,
) -> Result<BansLifted, Failure> {
    let daemon = Arc::clone(daemon);
    let lifted = spawn_blocking(move || {
        let (mut lifted, mut position) = (0, None);
        loop {
            let some = daemon
                .bans
                .change(|_, bans| bans.unban_some(position, |_, ban| is_of(origin.as_ref(), ban)));
            let (some, next) = some?;
            lifted += u64::from(some);
            position = next;
            if position.is_none() {
                break;
            }
        }
        match origin {
            None => info!(lifted, "all bans are lifted (bans: {lifted})"),
            Some(origin) => info!(
                lifted,
                origin = origin.as_str(),
                "all bans by {origin} are lifted (bans: {lifted})"
            ),
        }
        Ok::<_, DatapathError>(lifted)
    });
    match lifted.await {
        Ok(lifted) => Ok(BansLifted { lifted: lifted? }),
        Err(error) => Err(Failure(format!("lifting bans has failed: {error}"))),
    }
}

/// Makes and lifts pinned bans while no daemon runs. `protected`: the addresses not to ban, or why they are unknown.
pub fn change_pinned(
    datapath: &Datapath,
    protected: Result<ProtectedAddresses, ProbeError>,
    wanted: &BanChanges,
) -> Result<BanResults, Failure> {
    let protected = protected.map_err(GuardError::from);
    let outcomes = with_bans_of(datapath, &mut BanIndex::default(), |datapath, bans| {
        all(datapath, bans, &protected, wanted)
    })?;
    Ok(BanResults {
        outcomes,
        ends_with_daemon: false,
    })
}

/// Lifts all pinned bans, or all of an origin, while no daemon runs.
pub fn lift_pinned(datapath: &Datapath, origin: Option<&Origin>) -> Result<BansLifted, Failure> {
    let lifted = with_bans_of(datapath, &mut BanIndex::default(), |_, bans| {
        bans.unban_chosen(|_, ban| is_of(origin, ban))
    })?;
    Ok(BansLifted {
        lifted: lifted.into(),
    })
}

fn is_of(origin: Option<&Origin>, ban: &Ban) -> bool {
    origin.is_none_or(|origin| origin.has_made(ban))
}

/// Logs bans asked for by hand; a stream would log too much.
fn log(changes: &[BanChange], outcomes: &[BanOutcome]) {
    for (change, outcome) in changes.iter().zip(outcomes) {
        let prefix = short(change.prefix());
        match (change, outcome) {
            (BanChange::Ban(request), BanOutcome::Banned { .. }) => {
                let reason = request.reason.as_str();
                let end = request.for_ns.map_or_else(
                    || "until it is lifted".to_owned(),
                    |ns| format!("for {:?}", Duration::from_nanos(ns)),
                );
                let origin = request.origin.as_str();
                info!(prefix, origin, reason, "{prefix} is banned {end}");
            }
            (_, BanOutcome::Lifted { origins, .. }) => {
                let origins = Origin::list(origins);
                info!(prefix, origins, "the ban of {prefix} is lifted: {origins}");
            }
            _ => {}
        }
    }
}

/// Logs the number of evicted automatic bans: one line for each request, as a stream makes many.
fn log_evicted(outcomes: &[BanOutcome]) {
    let evicted = outcomes.iter().filter(|outcome| {
        let BanOutcome::Banned { in_place_of, .. } = outcome else {
            return false;
        };
        in_place_of.is_some()
    });
    let evicted = evicted.count();
    if evicted > 0 {
        warn!(
            evicted,
            "there is no room for more bans: automatic bans were lifted for bans by hand (bans: \
             {evicted}); raise `bans: {{capacity: …}}`"
        );
    }
}

fn all(
    datapath: &Datapath,
    bans: &mut Bans<'_, BanMaps>,
    protected: &ProtectedResult,
    wanted: &BanChanges,
) -> Result<Vec<BanOutcome>, ChangeError> {
    let policy = &datapath.manifest().policy;
    let refusals: Vec<_> = wanted
        .changes
        .iter()
        .map(|change| match change {
            BanChange::Ban(request) if !wanted.force => refusal(policy, protected, request.prefix),
            _ => None,
        })
        .collect();
    if wanted.together && refusals.iter().any(Option::is_some) {
        let each = refusals.into_iter().zip(&wanted.changes);
        let refused = each.filter_map(|(refusal, change)| Some((change.prefix(), refusal?)));
        let refused: Vec<_> = refused.collect();
        let others = wanted.changes.len() - refused.len();
        return Err(ChangeError::Refused { refused, others });
    }
    let each = wanted.changes.iter().zip(refusals);
    each.map(|(change, refusal)| match (change, refusal) {
        (_, Some(refusal)) => Ok(BanOutcome::Refused {
            reason: refusal.to_string(),
        }),
        (BanChange::Ban(request), None) => ban(policy, bans, request),
        (BanChange::Unban(request), None) => unban(datapath, bans, request),
    })
    .collect()
}

fn refusal(policy: &Policy, protected: &ProtectedResult, prefix: IpNet) -> Option<ForceReason> {
    let guarded = || match protected {
        Ok(protected) => protected.refusal(prefix).map(ForceReason::Protected),
        Err(unavailable) => Some(ForceReason::Unknown(unavailable.clone())),
    };
    let excluded = || excluded_by(policy, prefix).map(ForceReason::Excluded);
    let never = policy.never_banned(prefix).map(ForceReason::NeverBanned);
    never.or_else(guarded).or_else(excluded)
}

fn ban(
    policy: &Policy,
    bans: &mut Bans<'_, BanMaps>,
    request: &BanRequest,
) -> Result<BanOutcome, ChangeError> {
    let new = NewBan {
        prefix: request.prefix,
        for_ns: request.for_ns,
        reason: request.reason.clone(),
        origin: BanOrigin::ByHand(request.origin.clone()),
    };
    let made = if request.keeps_longer {
        bans.lengthen(&new)
    } else {
        bans.ban(&new).map(Some)
    };
    match made {
        Ok(None) => Ok(BanOutcome::Outlasted),
        Ok(Some(banned)) => Ok(BanOutcome::Banned {
            times: banned.ban.times,
            replaced: banned.replaced.is_some(),
            outlasted_by: banned.outlasted_by.as_ref().map(Origin::of),
            excluded_by: excluded_by(policy, request.prefix),
            in_place_of: banned.evicted.map(|(prefix, _)| prefix),
        }),
        Err(BanError::Datapath(error)) => Err(error.into()),
        Err(error) => Ok(BanOutcome::Refused {
            reason: error.to_string(),
        }),
    }
}

fn unban(
    datapath: &Datapath,
    bans: &mut Bans<'_, BanMaps>,
    request: &UnbanRequest,
) -> Result<BanOutcome, ChangeError> {
    let lifted = bans.unban(request.prefix, request.origin.as_ref())?;
    let covering = match datapath.source_maps() {
        Some(maps) => covering(maps.bans(), request.prefix, monotonic_now())?,
        None => Vec::new(),
    };
    let (own, wider): (Vec<_>, Vec<_>) = covering
        .into_iter()
        .partition(|(prefix, _)| *prefix == request.prefix);
    let still_by = own.iter().map(|(_, ban)| Origin::of(ban)).collect();
    let still_in = wider.first().map(|(wider, _)| *wider);
    Ok(if lifted.is_empty() {
        BanOutcome::NotBanned { still_by, still_in }
    } else {
        BanOutcome::Lifted {
            origins: lifted.iter().map(Origin::of).collect(),
            still_by,
            still_in,
        }
    })
}
