//! `limiter status --check`: one line for a monitoring system.

use std::{io::Write as _, process::ExitCode};

use limiter_common::reason::{Action, Reason};
use limiter_policy::text::one_line;
use limiter_protocol::{Status, StatusQuery, control::client::ClientError};
use limiter_report::{
    health::{self, Level},
    render::counted,
};

use super::super::{args::ReadArgs, conversation::LostPolicy, output::stdout};

/// The exit code if the status is unknown.
const UNKNOWN: u8 = 3;

pub(super) fn check(read: &ReadArgs) -> ExitCode {
    let (name, code, text) = match read.query(&StatusQuery) {
        Ok(status) => {
            let (level, text) = line(&status);
            (level.name(), level as u8, text)
        }
        Err(error) => {
            let asked = error.downcast_ref();
            let does_not_run = matches!(asked, Some(ClientError::NotRunning(_)));
            if does_not_run || error.is::<LostPolicy>() {
                let level = Level::Critical;
                (level.name(), level as u8, error.to_string())
            } else {
                ("UNKNOWN", UNKNOWN, error.to_string())
            }
        }
    };
    // If stdout is gone, the exit code still tells.
    let _ = writeln!(stdout(), "LIMITER {name}: {}", one_line(&text));
    ExitCode::from(code)
}

/// Returns the worst level, and a line with the warnings or else the policy in force, and with counters behind
/// a bar.
fn line(status: &Status) -> (Level, String) {
    let warnings = health::all(status);
    let worst = warnings.iter().map(|(level, _)| *level).max();
    let reported: Vec<_> = warnings.into_iter().map(|(_, text)| text).collect();
    let reported = if reported.is_empty() {
        format!(
            "{} attached, {}, {}",
            counted(status.interfaces.len(), "interface"),
            counted(status.policy.limits, "limit"),
            counted(
                usize::try_from(u64::from(status.bans.ipv4) + u64::from(status.bans.ipv6))
                    .unwrap_or(usize::MAX),
                "ban"
            ),
        )
    } else {
        // A bar would begin the counters.
        reported.join("; ").replace('|', "/")
    };
    let packets = |action| -> u64 {
        let reasons = Reason::ALL.iter();
        let reasons = reasons.filter(|reason| reason.action(status.policy.malformed) == action);
        let packets = reasons.filter_map(|reason| status.reasons.get(reason.name()));
        packets.sum()
    };
    let (passed, dropped) = (packets(Action::Pass), packets(Action::Drop));
    let text = format!("{reported} | passed={passed}c dropped={dropped}c");
    (worst.unwrap_or(Level::Ok), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_protocol::testing::status;

    #[track_caller]
    fn check_status(change: impl FnOnce(&mut Status), level: Level, text: &str) {
        let mut status = status();
        change(&mut status);
        let found = line(&status);
        assert_eq!((found.0, found.1.as_str()), (level, text));
    }

    #[test]
    fn the_worst_decides() {
        check_status(
            |status| {
                status
                    .reasons
                    .insert(Reason::OverLimit.name().to_owned(), 7);
            },
            Level::Ok,
            "1 interface attached, 1 limit, 0 bans | passed=0c dropped=7c",
        );
        check_status(
            |status| status.daemon = None,
            Level::Warning,
            "no daemon is running: the pinned policy is still enforced | passed=0c dropped=0c",
        );
        check_status(
            |status| status.lost_pin = Some("/sys/fs/bpf/limiter/v0".into()),
            Level::Critical,
            "the pin /sys/fs/bpf/limiter/v0 is gone: the policy in force is no longer pinned, and ends, or drops \
             every packet, with the daemon | passed=0c dropped=0c",
        );
        check_status(
            |status| {
                let capacity = status.bans.settings.capacity;
                (status.bans.ipv4, status.bans.ipv6) = (capacity - 1, 1);
            },
            Level::Warning,
            "there is no room for more than 524288 bans: raise `bans: {capacity: …}`, or lift some | \
             passed=0c dropped=0c",
        );
        check_status(
            |status| {
                status.interfaces[0].attached = false;
                let daemon = status.daemon.as_mut().unwrap();
                daemon.guard.error = Some("a | b".to_owned());
            },
            Level::Critical,
            "eth0 is not attached: the interface has vanished; the guard is blind: a / b | \
             passed=0c dropped=0c",
        );
    }
}
