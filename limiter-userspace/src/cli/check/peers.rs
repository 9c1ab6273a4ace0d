//! The host's own peers with replies that limits count.

use std::io::Write;

use limiter_host::guard::CountedPeer;

/// The most peers to print.
const SHOWN: usize = 10;

/// Prints a line for each peer, and a remedy.
pub(super) fn print(out: &mut impl Write, peers: &[CountedPeer<'_>]) -> anyhow::Result<()> {
    if peers.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\nlimits count the replies of the hosts that this host asks:"
    )?;
    for peer in peers.iter().take(SHOWN) {
        let limits = peer.limits.iter();
        let limits =
            limits.map(|budget| format!("{} {} in {}", budget.limit, budget.rate, budget.cost));
        let limits = limits.collect::<Vec<_>>().join(", ");
        writeln!(
            out,
            "  {} ({} port {}): {limits}",
            peer.address, peer.protocol, peer.port
        )?;
    }
    if let Some(more @ 1..) = peers.len().checked_sub(SHOWN) {
        writeln!(out, "  and {more} more")?;
    }
    writeln!(
        out,
        "  `exclude` of the limit would spare them, and forgers of their addresses"
    )?;
    Ok(())
}
