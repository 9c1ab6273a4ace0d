//! Requests to the daemon, or to what is pinned where none runs.

use anyhow::bail;
use limiter_datapath::kernel::{Adopted, Datapath, interface, pins::Pins};

use super::args::ReadArgs;
use crate::{
    control::client::{self, ClientError},
    daemon,
    protocol::{Answer, Request},
};

impl ReadArgs {
    /// The daemon's answer; or, where none runs and something is pinned, what that says.
    pub(super) fn ask(&self, request: &Request) -> anyhow::Result<Answer> {
        self.conversation().ask(request)
    }

    /// For more than one request.
    pub(super) const fn conversation(&self) -> Conversation<'_> {
        Conversation {
            with: self,
            pinned: None,
        }
    }
}

/// Requests one after another, to the daemon or to what is pinned.
pub(super) struct Conversation<'r> {
    with: &'r ReadArgs,
    /// Once no daemon has answered.
    pinned: Option<Datapath>,
}

impl Conversation<'_> {
    pub(super) fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let datapath = match &self.pinned {
            Some(datapath) => datapath,
            None => match client::ask(&self.with.control.socket, request.clone()) {
                Err(not_running @ ClientError::NotRunning(_)) => {
                    let Some(pins) = self.with.pins()? else {
                        return Err(not_running.into());
                    };
                    self.pinned.insert(adopt(pins, not_running)?)
                }
                answer => return Ok(answer?),
            },
        };
        match daemon::look(datapath, request) {
            Answer::Error(error) => Err(ClientError::Refused(error).into()),
            answer => Ok(answer),
        }
    }
}

/// What is pinned, where no daemon runs.
pub(super) fn adopt(pins: Pins, not_running: ClientError) -> anyhow::Result<Datapath> {
    match Datapath::adopt(pins)? {
        Adopted::Links(_, attachments) if attachments.is_empty() => Err(not_running.into()),
        Adopted::Links(pins, _) => bail!(
            "what is pinned in {} is enforced, but this version of the limiter cannot read it: \
             `limiter run --pin` takes it over, `limiter detach` removes it",
            pins.directory().display()
        ),
        Adopted::Datapath(mut datapath, _) => {
            // No daemon is there to see which interface has which name.
            datapath.observe(&interface::list_now()?);
            Ok(*datapath)
        }
    }
}
