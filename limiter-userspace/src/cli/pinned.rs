//! Answers requests from pinned maps if no daemon runs, and applies changes there. A command reports the
//! absence of pins only if it can see the directory and none of the limiter's programs is attached.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;
use limiter_datapath::kernel::{
    Datapath, ProgramHolder, interface,
    pins::{Pins, PinsError},
};
use limiter_protocol::{
    Call,
    control::client::{self, ClientError},
};

use super::{args::ReadArgs, conversation::adopt};

/// How long another process may hold the pins: a starting daemon takes them before it answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// The interval between attempts to take the pins.
const PACE: Duration = Duration::from_millis(100);

impl ReadArgs {
    /// Finds the pins; `None`: there are none, and no program enforces.
    pub(super) fn pins(&self) -> anyhow::Result<Option<Pins>> {
        let found = Pins::find(&self.pin)?;
        if found.is_none() {
            self.nothing_enforces()?;
        }
        Ok(found)
    }

    /// Fails if a program is attached that is, or may be, the limiter's.
    fn nothing_enforces(&self) -> anyhow::Result<()> {
        let mut ours = Vec::new();
        let (mut unknown, mut links) = (Vec::new(), Vec::new());
        for interface in interface::list_now()? {
            match (interface.holder(), interface.xdp_program) {
                (ProgramHolder::Limiter, _) => {
                    links.extend(interface.link_id());
                    ours.push(interface.name);
                }
                (ProgramHolder::Unknown, Some((id, _))) => {
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
                "no daemon answers at {socket}, and {pin} is not in a BPF filesystem, so pins cannot \
                 be seen"
            )
        };
        if !ours.is_empty() {
            let remedy = if is_visible {
                let unlink = links
                    .iter()
                    .map(|link| format!("`bpftool link detach id {link}`"));
                let unlink = unlink.collect::<Vec<_>>().join(", ");
                format!(
                    "name the socket of its daemon with --socket, or its pin directory with --pin; if neither is \
                     left, {unlink} detaches it"
                )
            } else {
                "run this where the BPF filesystem with its pins is mounted (nsenter --target 1 \
                 --mount limiter …)"
                    .to_owned()
            };
            bail!(
                "{nobody}; but the limiter is attached to {}: {remedy}",
                ours.join(", ")
            );
        }
        if !unknown.is_empty() {
            bail!(
                "{nobody}; but {}, and only root can tell whose it is: run as root (sudo limiter …)",
                unknown.join(", ")
            );
        }
        Ok(())
    }

    /// Sends a change to the daemon or, if none runs, makes it in the pinned maps.
    pub(super) fn change<C: Call>(
        &self,
        call: &C,
        pinned: impl Fn(&Datapath) -> anyhow::Result<C::Response>,
    ) -> anyhow::Result<C::Response> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let not_running = match client::send_request(&self.control.socket, call.clone()) {
                Err(error @ ClientError::NotRunning(_)) => error,
                response => return Ok(response?),
            };
            if self.pins()?.is_none() {
                return Err(not_running.into());
            }
            match Pins::take(&self.pin) {
                Err(PinsError::InUse(_)) if Instant::now() < deadline => thread::sleep(PACE),
                Err(PinsError::InUse(directory)) => bail!(
                    "a limiter that does not answer at {} holds the pins in {}: name its socket with \
                     --socket",
                    self.control.socket.display(),
                    directory.display()
                ),
                Err(error) => return Err(error.into()),
                Ok(pins) => return pinned(&adopt(pins, not_running)?),
            }
        }
    }

    /// Sends a request that only a daemon can answer.
    pub(super) fn query_daemon<C: Call>(&self, call: C) -> anyhow::Result<C::Response> {
        match client::send_request(&self.control.socket, call) {
            Err(error @ ClientError::NotRunning(_)) => match self.pins()? {
                Some(pins) => bail!(
                    "no daemon is running, and this needs one: the pins in {} still enforce, and \
                     `limiter run --pin` takes them over",
                    pins.directory().display()
                ),
                None => Err(error.into()),
            },
            response => Ok(response?),
        }
    }
}
