//! Sends requests to the daemon or, if none runs, answers them from pinned maps.

use std::path::PathBuf;

use anyhow::bail;
use limiter_daemon::MapCall;
use limiter_datapath::kernel::{Adoption, Datapath, interface, pins::Pins, preflight};
use limiter_protocol::control::client::{self, ClientError};

use super::args::ReadArgs;

impl ReadArgs {
    /// Asks the daemon or, if none runs, answers from pinned maps.
    pub(super) fn query<C: MapCall>(&self, call: &C) -> anyhow::Result<C::Response> {
        self.conversation().query(call)
    }

    pub(super) const fn conversation(&self) -> Conversation<'_> {
        Conversation {
            with: self,
            pinned: None,
        }
    }
}

/// A series of requests, answered by the daemon or from pinned maps.
pub(super) struct Conversation<'r> {
    with: &'r ReadArgs,
    /// Set after no daemon answered.
    pinned: Option<Datapath>,
}

impl Conversation<'_> {
    pub(super) fn query<C: MapCall>(&mut self, call: &C) -> anyhow::Result<C::Response> {
        let datapath = match &self.pinned {
            Some(datapath) => datapath,
            None => match client::send_request(&self.with.control.socket, call.clone()) {
                Err(not_running @ ClientError::NotRunning(_)) => {
                    let Some(pins) = self.with.pins()? else {
                        return Err(not_running.into());
                    };
                    self.pinned.insert(adopt(pins, not_running)?)
                }
                response => return Ok(response?),
            },
        };
        respond(datapath, call)
    }
}

/// Answers a request from maps without a daemon.
pub(super) fn respond<C: MapCall>(datapath: &Datapath, call: &C) -> anyhow::Result<C::Response> {
    let response = call.respond(datapath, None);
    Ok(response.map_err(ClientError::from)?)
}

/// Links are pinned, but no policy.
#[derive(Debug, thiserror::Error)]
#[error(
    "the policy is gone whose programs the pins in {0} hold, and they drop every packet: `limiter run --pin` puts \
     one in force, `limiter detach` lets all packets pass"
)]
pub(super) struct LostPolicy(PathBuf);

/// Opens the pins, since no daemon runs.
pub(super) fn adopt(pins: Pins, not_running: ClientError) -> anyhow::Result<Datapath> {
    preflight::check_clocks()?;
    match Datapath::adopt(pins)? {
        Adoption::Links(_, attachments) if attachments.is_empty() => Err(not_running.into()),
        Adoption::Links(pins, _) if pins.other_versions()?.is_empty() => {
            Err(LostPolicy(pins.directory().into()).into())
        }
        Adoption::Links(pins, _) => bail!(
            "the pins in {} enforce a policy that this version of the limiter cannot read: \
             `limiter run --pin` takes them over, `limiter detach` removes them",
            pins.directory().display()
        ),
        Adoption::Datapath(mut datapath, _) => {
            // No daemon follows renamed interfaces, so look them up now.
            datapath.observe(&interface::list_now()?);
            Ok(*datapath)
        }
    }
}
