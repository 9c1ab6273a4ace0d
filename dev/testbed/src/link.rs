//! One end of the veth pair: its name, its hardware address, and the settings that make it quiet.

use std::{
    fmt::Write as _,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use ipnet::IpNet;
use nix::{ifaddrs::getifaddrs, net::if_::InterfaceFlags};

use crate::namespace::Namespace;

/// The hardware address of the client's end.
pub const CLIENT_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

/// The hardware address of the server's end.
pub const SERVER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x02];

/// The time limit until an interface is in use: on a busy machine the kernel removes other namespaces first.
const LONGEST_START: Duration = Duration::from_secs(30);

/// One end of the pair.
pub(crate) struct End<'a> {
    pub(crate) namespace: &'a Namespace,
    pub(crate) interface: &'static str,
    pub(crate) mac: [u8; 6],
    pub(crate) addresses: &'a [IpNet],
}

impl End<'_> {
    /// Gives the interface its addresses, and for each address of the other end a route and a permanent
    /// neighbour entry. Brings it up.
    pub(crate) fn bring_up(&self, other: &End<'_>) -> Result<()> {
        self.relax()?;
        self.namespace.ip_batch(&self.commands(other))
    }

    /// Waits until the network stack can send through the interface.
    pub(crate) fn wait_until_in_use(&self) -> Result<()> {
        let begun = Instant::now();
        while !self.is_in_use()? {
            ensure!(
                begun.elapsed() < LONGEST_START,
                "{} does not come up",
                self.interface
            );
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn is_in_use(&self) -> Result<bool> {
        self.namespace.enter(|| {
            let addresses = getifaddrs().context("cannot list the interfaces")?;
            let mut own = addresses.filter(|address| address.interface_name == self.interface);
            Ok(own.any(|address| address.flags.contains(InterfaceFlags::IFF_RUNNING)))
        })
    }

    /// Enables IPv6, accepts all sources, and disables duplicate address detection and router
    /// advertisements.
    fn relax(&self) -> Result<()> {
        let interface = self.interface;
        let settings = [
            (format!("ipv6/conf/{interface}/disable_ipv6"), "0"),
            (format!("ipv6/conf/{interface}/accept_dad"), "0"),
            (format!("ipv6/conf/{interface}/accept_ra"), "0"),
            (format!("ipv4/conf/{interface}/rp_filter"), "0"),
            ("ipv4/conf/all/rp_filter".to_owned(), "0"),
        ];
        self.namespace.enter(|| {
            settings
                .iter()
                .try_for_each(|(setting, value)| set(setting, value))
        })
    }

    fn commands(&self, other: &End<'_>) -> String {
        let interface = self.interface;
        let mac = mac(self.mac);
        // Without a link-local address there is no router solicitation. Without ARP there is no duplicate
        // address detection and no solicited-node group, and therefore no multicast listener report.
        let mut commands = format!(
            "link set {interface} address {mac} arp off addrgenmode none\nlink set {interface} up\n"
        );
        for address in self.addresses {
            let nodad = if address.addr().is_ipv6() {
                "nodad"
            } else {
                ""
            };
            push(
                &mut commands,
                format_args!("addr add {address} dev {interface} {nodad}"),
            );
        }
        let neighbour = self::mac(other.mac);
        for address in other.addresses.iter().map(IpNet::addr) {
            push(
                &mut commands,
                format_args!("route replace {} dev {interface}", IpNet::from(address)),
            );
            push(
                &mut commands,
                format_args!(
                    "neighbour replace {address} lladdr {neighbour} dev {interface} nud permanent"
                ),
            );
        }
        commands
    }
}

fn push(commands: &mut String, command: std::fmt::Arguments<'_>) {
    writeln!(commands, "{command}").expect("a string takes all");
}

fn mac(bytes: [u8; 6]) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

fn set(setting: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net").join(setting);
    fs::write(&path, value).with_context(|| format!("cannot set {} to {value}", path.display()))
}
