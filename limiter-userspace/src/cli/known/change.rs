//! Changes known sources through the daemon or, if none runs, in the pinned maps.

use limiter_daemon as daemon;
use limiter_policy::text::short;
use limiter_protocol::{
    control::client::ClientError,
    known::{KnownChange, KnownChanges, KnownOutcome, KnownResults},
};

use crate::cli::args::ReadArgs;

pub(super) fn change(read: &ReadArgs, wanted: &KnownChanges) -> anyhow::Result<KnownResults> {
    read.change(wanted, |datapath| {
        let changed = daemon::change_known_pinned(datapath, wanted);
        Ok(changed.map_err(ClientError::from)?)
    })
}

/// Describes the part of a change that was not made; `None`: all of it was.
pub(super) fn undone(change: &KnownChange, outcome: &KnownOutcome) -> Option<String> {
    let prefix = short(change.prefix());
    match outcome {
        KnownOutcome::Refused { reason } => Some(format!("{prefix} is not trusted: {reason}")),
        KnownOutcome::Trusted {
            sources,
            without_room,
            ..
        } if *without_room > 0 => {
            let subject = match (sources, without_room) {
                (0, 1) => "it".to_owned(),
                _ => format!("{without_room} of its sources"),
            };
            Some(format!(
                "{prefix}: there is no room for {subject} beside other trusted sources; raise \
                 `standing: {{capacity: …}}`"
            ))
        }
        _ => None,
    }
}
