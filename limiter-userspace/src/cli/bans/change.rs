//! Bans changed by the daemon; or, where none runs, in what is pinned.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::bail;

use crate::{
    cli::{ReadArgs, adopt},
    control::{
        bans::{BanChanges, BansChanged},
        client::{self, ClientError},
        protocol::{Answer, Request},
    },
    daemon,
    datapath::{
        Datapath,
        pins::{Pins, PinsError},
    },
    guard::{Asker, Protected},
};

/// How long another limiter may hold what is pinned: a daemon that starts has it before it
/// answers.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is tried again meanwhile.
const PACE: Duration = Duration::from_millis(100);

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
    match ask(read, &Request::ChangeBans(wanted.clone()), pinned)? {
        Answer::BansChanged(changed) if changed.outcomes.len() == wanted.changes.len() => {
            Ok(changed)
        }
        _ => bail!("the daemon answered something else than was asked"),
    }
}

/// Lifts all bans; returns how many held.
pub(super) fn lift_all(read: &ReadArgs) -> anyhow::Result<u64> {
    let lift = |datapath: &Datapath| Ok(daemon::lift_pinned(datapath));
    match ask(read, &Request::LiftBans, lift)? {
        Answer::BansLifted { lifted } => Ok(lifted),
        _ => bail!("the daemon answered something else than was asked"),
    }
}

/// The answer of the daemon, or what is done in its place to what is pinned.
fn ask(
    read: &ReadArgs,
    request: &Request,
    pinned: impl Fn(&Datapath) -> anyhow::Result<Answer>,
) -> anyhow::Result<Answer> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let not_running = match client::ask(&read.control.socket, request.clone()) {
            Err(error @ ClientError::NotRunning(_)) => error,
            answer => return Ok(answer?),
        };
        if Pins::look(&read.pin).is_none() {
            return Err(not_running.into());
        }
        match Pins::take(&read.pin) {
            Err(PinsError::InUse(_)) if Instant::now() < deadline => thread::sleep(PACE),
            Err(PinsError::InUse(directory)) => bail!(
                "a limiter that does not answer at {} has what is pinned in {}: name its socket with \
                 --socket",
                read.control.socket.display(),
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
