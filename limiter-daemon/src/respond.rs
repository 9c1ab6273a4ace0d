//! Answers the requests of the control channel.

use std::sync::Arc;

use limiter_datapath::kernel::{Datapath, monotonic_now, wall_clock_now};
use limiter_fleet::rollout::RolloutError;
use limiter_protocol::{
    AcceptList, AcceptedFiles, Call, Confirm, ConfirmedPolicy, Detach, EndPush, Explain, Failure,
    FleetQuery, KeyQuery, KnownSourceQuery, LiftBans, ListsQuery, OffenderQuery, PolicyQuery,
    PushProgress, RefundQuery, Reload, Request, ResetQuery, RolloutPlan, RolloutStatus,
    SievesQuery, StatusQuery, TestLists,
    bans::{BanChanges, BansQuery},
    control::server::Reply,
    known::{KnownChanges, KnownQuery},
};
use tokio::task::spawn_blocking;

use super::{
    bans, busy_keys, confirm,
    explain::explain,
    fleet::{Fleet, NoFleet},
    known, offenders, reset,
    shared::Daemon,
    sieves,
    status::status,
};

/// A request that needs only the maps, so that it is answered from pinned maps where no daemon runs.
pub trait MapCall: Call {
    /// Answers the request. `daemon`: `None` if none runs.
    fn respond(
        &self,
        datapath: &Datapath,
        daemon: Option<&Daemon>,
    ) -> Result<Self::Response, Failure>;
}

pub(super) async fn answer(daemon: Arc<Daemon>, request: Request) -> Reply {
    match request {
        Request::Status(call) => from_maps(daemon, call).await,
        Request::Explain(call) => from_maps(daemon, call).await,
        Request::Offenders(call) => from_maps(daemon, call).await,
        Request::Connections(call) => from_maps(daemon, call).await,
        Request::Bans(call) => from_maps(daemon, call).await,
        Request::Known(call) => from_maps(daemon, call).await,
        Request::KnownSource(call) => from_maps(daemon, call).await,
        Request::Lists(call) => from_maps(daemon, call).await,
        Request::TestLists(call) => from_maps(daemon, call).await,
        Request::Sieves(call) => from_maps(daemon, call).await,
        Request::Policy(call) => from_maps(daemon, call).await,
        Request::Reset(call) => from_maps(daemon, call).await,
        Request::Refund(call) => from_maps(daemon, call).await,
        Request::Fleet(FleetQuery) => {
            let status = daemon.fleet_status().ok_or(NoFleet);
            Reply::to::<FleetQuery>(status.map(Box::new))
        }
        Request::ChangeBans(changes) => {
            Reply::to::<BanChanges>(bans::change(&daemon, changes).await)
        }
        Request::LiftBans(LiftBans { origin }) => {
            Reply::to::<LiftBans>(bans::lift_all(&daemon, origin).await)
        }
        Request::ChangeKnown(changes) => {
            Reply::to::<KnownChanges>(known::change(&daemon, changes).await)
        }
        Request::AcceptList(accept) => {
            let accepted = daemon.enforcement.reloads.accept(accept).await;
            Reply::to::<AcceptList>(accepted.map(|files| AcceptedFiles { files }))
        }
        Request::Push(plan) => {
            Reply::to::<RolloutPlan>(rollout(&daemon, |fleet| fleet.begin_rollout(plan)))
        }
        Request::PushProgress(PushProgress) => {
            Reply::to::<PushProgress>(rollout(&daemon, |fleet| {
                fleet.rollouts().status(monotonic_now())
            }))
        }
        Request::EndPush(EndPush { keep }) => Reply::to::<EndPush>(rollout(&daemon, |fleet| {
            fleet.rollouts().end(keep, monotonic_now())
        })),
        Request::Reload(Reload) => Reply::to::<Reload>(daemon.enforcement.reloads.reload().await),
        Request::Confirm(Confirm) => {
            let confirmed = confirm::confirm(&daemon.enforcement).await;
            Reply::to::<Confirm>(confirmed.map(|generation| ConfirmedPolicy { generation }))
        }
        // The daemon ends once the response is sent.
        Request::Detach(Detach) => Reply::to::<Detach>(Ok::<_, Failure>(())),
    }
}

/// Answers on another thread: large maps take long to read, and a change of the policy may hold the lock.
async fn from_maps<C: MapCall>(daemon: Arc<Daemon>, call: C) -> Reply {
    let result = spawn_blocking(move || daemon.query(&call)).await;
    let failed = |error| Err(Failure(format!("answering has failed: {error}")));
    Reply::to::<C>(result.unwrap_or_else(failed))
}

/// Answers a request about a rollout that begins here.
fn rollout(
    daemon: &Daemon,
    query: impl FnOnce(&Fleet) -> Result<RolloutStatus, RolloutError>,
) -> Result<RolloutStatus, Failure> {
    let fleet = daemon.fleet.as_ref().ok_or(NoFleet)?;
    Ok(query(fleet)?)
}

impl MapCall for StatusQuery {
    fn respond(
        &self,
        datapath: &Datapath,
        daemon: Option<&Daemon>,
    ) -> Result<Self::Response, Failure> {
        Ok(Box::new(status(datapath, daemon)?))
    }
}

impl MapCall for Explain {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(Box::new(explain(datapath, self)?))
    }
}

impl MapCall for OffenderQuery {
    fn respond(
        &self,
        datapath: &Datapath,
        daemon: Option<&Daemon>,
    ) -> Result<Self::Response, Failure> {
        let texts = daemon.map(|daemon| &*daemon.texts);
        Ok(offenders::list(datapath, texts, self)?)
    }
}

impl MapCall for KeyQuery {
    fn respond(
        &self,
        datapath: &Datapath,
        daemon: Option<&Daemon>,
    ) -> Result<Self::Response, Failure> {
        let busy = daemon.map(|daemon| &daemon.busy_keys);
        Ok(busy_keys::list(datapath, busy, self)?)
    }
}

impl MapCall for BansQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(bans::page(datapath, self)?)
    }
}

impl MapCall for KnownQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(known::list(datapath, *self)?)
    }
}

impl MapCall for KnownSourceQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(known::of_address(datapath, self.address)?)
    }
}

impl MapCall for ListsQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(datapath.manifest().list_statuses(wall_clock_now()))
    }
}

impl MapCall for TestLists {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(datapath.manifest().policy.findings(self.asked))
    }
}

impl MapCall for SievesQuery {
    fn respond(
        &self,
        datapath: &Datapath,
        daemon: Option<&Daemon>,
    ) -> Result<Self::Response, Failure> {
        let measured = daemon.map(Daemon::pressures).unwrap_or_default();
        Ok(sieves::list(datapath, self.name.as_deref(), &measured)?)
    }
}

impl MapCall for PolicyQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(Box::new(datapath.manifest().policy.clone()))
    }
}

impl MapCall for ResetQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(reset::reset(datapath, self)?)
    }
}

impl MapCall for RefundQuery {
    fn respond(&self, datapath: &Datapath, _: Option<&Daemon>) -> Result<Self::Response, Failure> {
        Ok(reset::refund(datapath, self)?)
    }
}
