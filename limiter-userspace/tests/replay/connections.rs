//! A capture does not tell which connections the network stack had open.

use anyhow::Result;
use testbed::{
    Frame,
    capture::{PCAP, Packet},
};

use crate::command::replay;

#[test]
fn a_limit_on_connections_is_refused_unless_it_is_off() -> Result<()> {
    let syn = Frame::new("192.0.2.1".parse()?, "198.51.100.1".parse()?).tcp_syn(9, 443, 1)?;
    let capture = PCAP.write(&[Packet::whole(0, syn)]);
    let limits = |mode| {
        format!(
            "limits:\n  Web: {{id: ipAddress, cost: connections, limit: 5, mode: {mode}}}\n  \
             PacketsPerIPAddress: {{burst: 5, count: 5, period: 1s}}\n"
        )
    };
    let replayed = replay(&limits("enforce"), &capture, false, &[])?;
    assert!(!replayed.success);
    assert!(replayed.stdout.is_empty(), "{}", replayed.stdout);
    let told = "limit Web has cost connections, and a capture does not tell which the network stack \
                had open: replay without it, such as with `mode: off`";
    assert!(replayed.stderr.contains(told), "{}", replayed.stderr);
    assert!(replay(&limits("off"), &capture, false, &[])?.success);
    Ok(())
}
