//! What is asked where no daemon answers: what is pinned says it, or does it. That nothing is pinned
//! is only said by whoever was able to look, and where nothing of ours is attached.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use limiter_datapath::kernel::{
    Datapath,
    interface::{self, Owner},
    pins::{Pins, PinsError},
};

use super::{args::ReadArgs, conversation::adopt};
use crate::{
    control::client::{self, ClientError},
    protocol::{Answer, Request},
};

/// How long another limiter may hold what is pinned: a daemon that starts has it before it
/// answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried again meanwhile.
const PACE: Duration = Duration::from_millis(100);

impl ReadArgs {
    /// What is pinned; `None`: nothing is, and nothing enforces.
    pub(super) fn pins(&self) -> anyhow::Result<Option<Pins>> {
        let found = Pins::look(&self.pin)?;
        if found.is_none() {
            self.nothing_enforces()?;
        }
        Ok(found)
    }

    /// Fails if a program of ours is attached, or one that may be ours.
    fn nothing_enforces(&self) -> anyhow::Result<()> {
        let mut ours = Vec::new();
        let mut unknown = Vec::new();
        for interface in interface::list_now()? {
            match (interface.owner(), interface.xdp_program) {
                (Owner::Limiter, _) => ours.push(interface.name),
                (Owner::Unknown, Some((id, _))) => {
                    unknown.push(format!("{} has an XDP program (id {id})", interface.name));
                }
                _ => {}
            }
        }
        let (socket, pin) = (self.control.socket.display(), self.pin.display());
        let is_visible = Pins::can_be_seen(&self.pin)?;
        let nobody = if is_visible {
            format!("no daemon answers at {socket}, and nothing is pinned in {pin}")
        } else {
            format!(
                "no daemon answers at {socket}, and {pin} is not in a BPF filesystem, so that nobody \
                 can see what is pinned"
            )
        };
        if !ours.is_empty() {
            let remedy = if is_visible {
                "name the socket of its daemon with --socket, or where it is pinned with --pin"
            } else {
                "run this where the BPF filesystem is mounted that it is pinned in (nsenter --target 1 \
                 --mount limiter …)"
            };
            bail!(
                "{nobody}; but the limiter is attached to {}: {remedy}",
                ours.join(", ")
            );
        }
        if !unknown.is_empty() {
            bail!(
                "{nobody}; but {}, and only root can tell whose: run as root (sudo limiter …)",
                unknown.join(", ")
            );
        }
        Ok(())
    }

    /// The answer of the daemon, or what is done in its place to what is pinned.
    pub(super) fn change(
        &self,
        request: &Request,
        pinned: impl Fn(&Datapath) -> anyhow::Result<Answer>,
    ) -> anyhow::Result<Answer> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let not_running = match client::ask(&self.control.socket, request.clone()) {
                Err(error @ ClientError::NotRunning(_)) => error,
                answer => return Ok(answer?),
            };
            if self.pins()?.is_none() {
                return Err(not_running.into());
            }
            match Pins::take(&self.pin) {
                Err(PinsError::InUse(_)) if Instant::now() < deadline => thread::sleep(PACE),
                Err(PinsError::InUse(directory)) => bail!(
                    "a limiter that does not answer at {} has what is pinned in {}: name its socket \
                     with --socket",
                    self.control.socket.display(),
                    directory.display()
                ),
                Err(error) => return Err(error.into()),
                Ok(pins) => {
                    let datapath = adopt(pins, not_running)?;
                    return match pinned(&datapath)? {
                        Answer::Error(error) => Err(ClientError::Refused(error).into()),
                        answer => Ok(answer),
                    };
                }
            }
        }
    }

    /// The answer of the daemon, which nothing else can give.
    pub(super) fn ask_daemon(&self, request: Request) -> anyhow::Result<Answer> {
        match client::ask(&self.control.socket, request) {
            Err(error @ ClientError::NotRunning(_)) => match self.pins()? {
                Some(pins) => bail!(
                    "no daemon is running, and it takes one to do that: what is pinned in {} is \
                     enforced all the same, and `limiter run --pin` takes it over",
                    pins.directory().display()
                ),
                None => Err(error.into()),
            },
            answer => Ok(answer?),
        }
    }
}
