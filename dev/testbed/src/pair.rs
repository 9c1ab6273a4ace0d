//! Two namespaces joined by a veth pair.

use std::fs;

use anyhow::{Context as _, Result, ensure};
use ipnet::IpNet;

use crate::{
    link::{CLIENT_MAC, End, SERVER_MAC},
    namespace::Namespace,
};

/// The name of the client's end.
pub const CLIENT_INTERFACE: &str = "client0";

/// The name of the server's end, to which the limiter attaches.
pub const SERVER_INTERFACE: &str = "server0";

/// Two namespaces joined by a veth pair, both ends up and reachable from each other.
#[derive(Debug)]
pub struct Pair {
    /// The source of traffic, through [`CLIENT_INTERFACE`].
    pub client: Namespace,
    /// The destination of traffic, through [`SERVER_INTERFACE`].
    pub server: Namespace,
}

impl Pair {
    /// Makes the two namespaces and gives each end its addresses. Each end reaches the other's addresses,
    /// even if their prefixes overlap.
    pub fn new(client_addresses: &[IpNet], server_addresses: &[IpNet]) -> Result<Self> {
        let pair = Self {
            client: Namespace::new()?,
            server: Namespace::new()?,
        };
        pair.client.ip(&[
            "link",
            "add",
            CLIENT_INTERFACE,
            "type",
            "veth",
            "peer",
            "name",
            SERVER_INTERFACE,
            "netns",
            &pair.server.path(),
        ])?;
        let client = End {
            namespace: &pair.client,
            interface: CLIENT_INTERFACE,
            mac: CLIENT_MAC,
            addresses: client_addresses,
        };
        let server = End {
            namespace: &pair.server,
            interface: SERVER_INTERFACE,
            mac: SERVER_MAC,
            addresses: server_addresses,
        };
        server.bring_up(&client)?;
        client.bring_up(&server)?;
        // The kernel puts the ends into use one after another. An end that is not in use yet loses packets.
        server.wait_until_in_use()?;
        client.wait_until_in_use()?;
        Ok(pair)
    }

    /// Makes the client compute checksums, which a veth pair leaves out. A packet with a wrong checksum gets
    /// no response.
    pub fn compute_checksums(&self) -> Result<()> {
        let output = self
            .client
            .command("ethtool")
            .args(["-K", CLIENT_INTERFACE, "tx", "off"])
            .output()
            .context("cannot run ethtool")?;
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    }

    /// Returns the client's frames that the veth pair lost to a full ring: they never reached the limiter.
    /// Senders repeat the lost frames that the kernel reports (since 6.6).
    pub fn lost(&self) -> Result<u64> {
        device_counter(&self.client, CLIENT_INTERFACE, TRANSMIT_DROPS)
    }

    /// Returns the number of lost frames that a generator of live frames sent. The others are packets of the
    /// client's own network stack.
    pub fn lost_live(&self) -> Result<u64> {
        device_counter(&self.server, SERVER_INTERFACE, RECEIVE_DROPS)
    }

    /// Returns the server's packets that the client's CPU dropped for lack of room in its backlog.
    pub fn lost_answers(&self) -> Result<u64> {
        device_counter(&self.client, CLIENT_INTERFACE, RECEIVE_DROPS)
    }

    /// Returns the frames that reached the server's end, and so the program attached there.
    pub fn received(&self) -> Result<u64> {
        device_counter(&self.server, SERVER_INTERFACE, RECEIVED_PACKETS)
    }
}

/// Columns of net/dev: first eight for "Receive", then the columns for "Transmit".
const RECEIVED_PACKETS: usize = 1;
const RECEIVE_DROPS: usize = 3;
const TRANSMIT_DROPS: usize = 8 + 3;

fn device_counter(namespace: &Namespace, interface: &str, column: usize) -> Result<u64> {
    let devices = namespace
        .enter(|| fs::read_to_string("/proc/thread-self/net/dev").context("cannot read net/dev"))?;
    counter(&devices, interface, column).with_context(|| format!("{interface} is not in net/dev"))
}

fn counter(devices: &str, interface: &str, column: usize) -> Option<u64> {
    devices
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix(interface)?.strip_prefix(':'))
        .find_map(|columns| columns.split_whitespace().nth(column)?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_counters_of_an_interface() {
        let devices = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:       0       0    0    1    0     0          0         0        0       0    0    2    0     0       0          0
client0:    600      11    0    3    0     0          0         0      600      10    0   44    0     0       0          0
";
        assert_eq!(counter(devices, "client0", TRANSMIT_DROPS), Some(44));
        assert_eq!(counter(devices, "client0", RECEIVED_PACKETS), Some(11));
        assert_eq!(counter(devices, "client0", RECEIVE_DROPS), Some(3));
        assert_eq!(counter(devices, "client", TRANSMIT_DROPS), None);
    }
}
