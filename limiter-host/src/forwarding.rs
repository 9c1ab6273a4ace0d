//! Whether this host forwards packets to others.

use std::fs;

/// The settings by which the network namespace forwards packets of each family: 0 for not.
pub const SETTINGS: [(&str, &str); 2] = [
    ("net.ipv4.ip_forward", "/proc/sys/net/ipv4/ip_forward"),
    (
        "net.ipv6.conf.all.forwarding",
        "/proc/sys/net/ipv6/conf/all/forwarding",
    ),
];

/// Returns the name of a setting by which this thread's network namespace forwards; `None`: it does not.
#[must_use]
pub fn setting() -> Option<&'static str> {
    let is_on = |path: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() != "0");
    let mut settings = SETTINGS.into_iter();
    settings.find(|(_, path)| is_on(path)).map(|(name, _)| name)
}
