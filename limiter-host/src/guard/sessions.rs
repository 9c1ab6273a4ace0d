//! SSH sessions: this process's own, and authenticated ones. A connection alone is no session: its peer may
//! stay at the password prompt for ever.

use std::{
    env,
    fs::{self, File},
    io::Read as _,
    net::IpAddr,
};

use limiter_protocol::bans::Session;

use super::guarded::{GuardReason, GuardedAddress};

/// The most ancestors to search for the session that started this process.
const MOST_PARENTS: usize = 64;

/// The most bytes to read of a process's environment.
const LONGEST_ENVIRONMENT: u64 = 1 << 20;

const CONNECTION: &str = "SSH_CONNECTION";

/// Returns the session that started this process, for a request to the daemon; `None`: there is none.
#[must_use]
pub fn started_from() -> Option<Session> {
    let own = own()?;
    Some(Session { peer: own.address })
}

/// Returns the session that started this process, from the environment that sshd(8) sets. A service has none.
/// sudo does not pass it on, so the search includes this process's ancestors.
pub(super) fn own() -> Option<GuardedAddress> {
    let reported = env::var(CONNECTION).ok();
    reported
        .and_then(|connection| from_environment(&connection))
        .or_else(of_parents)
}

fn of_parents() -> Option<GuardedAddress> {
    let mut process = parent("self")?;
    for _ in 0..MOST_PARENTS {
        if let Some(session) = environment(process).and_then(|text| from_environment(&text)) {
            return Some(session);
        }
        process = parent(&process.to_string()).filter(|parent| *parent > 0)?;
    }
    None
}

/// Returns the variable `SSH_CONNECTION` of a process.
fn environment(process: u32) -> Option<String> {
    let mut bytes = Vec::new();
    let file = File::open(format!("/proc/{process}/environ")).ok()?;
    file.take(LONGEST_ENVIRONMENT)
        .read_to_end(&mut bytes)
        .ok()?;
    let mut variables = bytes.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        variable
            .strip_prefix(CONNECTION.as_bytes())?
            .strip_prefix(b"=")
    })?;
    String::from_utf8(value.to_vec()).ok()
}

fn parent(process: &str) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// Parses the peer's address and port and this machine's, separated by spaces.
pub(super) fn from_environment(connection: &str) -> Option<GuardedAddress> {
    let mut parts = connection.split(' ');
    let mut next = || parts.next();
    let (peer, _, local, port) = (next()?, next()?, next()?, next()?);
    // A link-local address is followed by `%` and its interface.
    let address = |text: &str| text.split('%').next()?.parse().ok();
    Some(session(address(peer)?, address(local)?, port.parse().ok()?))
}

/// Makes a session. A dual-stack socket shows IPv4 peers as IPv6 addresses, but their packets are IPv4.
pub(super) fn session(peer: IpAddr, local: IpAddr, port: u16) -> GuardedAddress {
    GuardedAddress {
        address: peer.to_canonical(),
        why: GuardReason::Ssh {
            local: local.to_canonical(),
            port,
        },
    }
}
