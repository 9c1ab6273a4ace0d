//! Packets that UDP sockets lost, by port.

use std::collections::BTreeMap;

use limiter_policy::policy::PortRange;

/// The positions of words in a socket's line.
const LOCAL: usize = 1;
const INODE: usize = 9;
const DROPS: usize = 12;

/// How many packets each UDP socket has lost since it was opened, for whatever reason: its buffer
/// was full, or the packet's checksum was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketLosses {
    /// The local port and the lost packets of each, by inode.
    sockets: BTreeMap<u64, (u16, u64)>,
}

impl SocketLosses {
    /// Reads the kernel's texts.
    pub(super) fn parse(udp: &str, udp6: &str) -> Self {
        let sockets = udp.lines().chain(udp6.lines()).filter_map(socket);
        Self {
            sockets: sockets.collect(),
        }
    }

    /// Returns whether a socket on one of `ports` has lost more than it had before.
    #[must_use]
    pub fn have_more_on(&self, ports: &[PortRange], before: &Self) -> bool {
        self.sockets.iter().any(|(inode, (port, lost))| {
            let had = before.sockets.get(inode).map_or(0, |(_, lost)| *lost);
            *lost > had && ports.iter().any(|range| range.contains(port))
        })
    }
}

/// Reads a socket's line; `None`: it is the heading.
fn socket(line: &str) -> Option<(u64, (u16, u64))> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (_, port) = words.get(LOCAL)?.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let [inode, lost] = [INODE, DROPS].map(|position| words.get(position)?.parse().ok());
    Some((inode?, (port, lost?)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const HEADING: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                           retrnsmt   uid  timeout inode ref pointer drops\n";

    /// Returns a socket's line.
    pub(in crate::capacity) fn line(port: u16, inode: u64, drops: u64) -> String {
        format!(
            "  123: 0100007F:{port:04X} 00000000:0000 07 00000000:00000000 00:00000000 00000000 \
             0        0 {inode} 2 0000000000000000 {drops}\n"
        )
    }

    #[test]
    fn only_sockets_on_the_ports_count() {
        let losses = |ours, others| {
            let udp = format!("{HEADING}{}", line(53, 71, ours));
            let udp6 = format!("{HEADING}{}", line(4_000, 72, others));
            SocketLosses::parse(&udp, &udp6)
        };
        let before = losses(5, 7);
        let ports = [50..=53, 9_000..=9_000];
        assert!(!losses(5, 7).have_more_on(&ports, &before));
        assert!(!losses(5, 8).have_more_on(&ports, &before));
        assert!(losses(6, 7).have_more_on(&ports, &before));
        assert!(losses(5, 8).have_more_on(&[4_000..=4_000], &before));
        // A socket that was opened since, and one that was closed.
        assert!(before.have_more_on(&ports, &SocketLosses::default()));
        assert!(!SocketLosses::default().have_more_on(&ports, &before));
    }
}
