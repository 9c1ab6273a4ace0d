//! A session in logind's records: lines of NAME=VALUE. Only root can make logind record a session.

use std::net::IpAddr;

/// Returns the address that a user logged in from; `None`: a local session, a host name, or logged out.
pub(super) fn address(session: &[u8]) -> Option<IpAddr> {
    let field = |name: &str| {
        let mut lines = session.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let is_remote = field("REMOTE") == Some(b"1");
    // After logout, the user's remaining processes keep the session in state "closing": it does not count.
    let is_there = matches!(field("STATE"), Some(b"active" | b"online" | b"opening"));
    if !is_remote || !is_there {
        return None;
    }
    let host = str::from_utf8(field("REMOTE_HOST")?).ok()?;
    // A link-local address is followed by `%` and its interface.
    let address: IpAddr = host.split('%').next()?.parse().ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_over_the_network() {
        let check = |lines: &[u8], expected: Option<&str>| {
            let expected = expected.map(|address| address.parse().unwrap());
            let reported = String::from_utf8_lossy(lines);
            assert_eq!(address(lines), expected, "{reported}");
        };
        let session = |host: &str| {
            format!("UID=0\nSTATE=active\nREMOTE=1\nREMOTE_HOST={host}\nSERVICE=sshd\n")
                .into_bytes()
        };
        check(&session("203.0.113.9"), Some("203.0.113.9"));
        check(&session("::ffff:203.0.113.9"), Some("203.0.113.9"));
        check(&session("fe80::1%eth0"), Some("fe80::1"));
        // The owner of the peer's reverse DNS chooses the name.
        check(&session("203.0.113.9.example.net"), None);
        check(&session(""), None);
        check(b"", None);
        check(b"STATE=active\nREMOTE=0\nREMOTE_HOST=203.0.113.9\n", None);
        check(b"STATE=closing\nREMOTE=1\nREMOTE_HOST=203.0.113.9\n", None);
        check(b"REMOTE=1\nREMOTE_HOST=203.0.113.9\n", None);
        check(b"STATE=active\nREMOTE=1\nREMOTE_HOST=\xff\xfe\n", None);
        check(b"STATE=online\nREMOTE=1\nXREMOTE_HOST=203.0.113.9\n", None);
    }
}
