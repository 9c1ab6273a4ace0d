//! Nodes report their lag behind the store's stream.

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::{Fleet, wait_for, wait_until};

/// A paused node lags once another node has made a ban, and not before; it catches up when it has read the
/// ban.
#[test]
fn a_node_that_stands_still_is_behind() -> Result<()> {
    let fleet = Fleet::start(&["a", "b"])?;
    let [a, b] = &fleet.nodes[..] else {
        unreachable!()
    };
    // After the first ban both nodes have read everything.
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    for node in [a, b] {
        wait_until(node, |status| {
            ["a", "b"]
                .iter()
                .all(|name| status["nodes"][name]["lag_ns"] == 0)
        })?;
    }
    b.signal(Signal::SIGSTOP)?;
    a.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    let behind = wait_until(a, |status| {
        status["nodes"]["b"]["lag_ns"].as_u64() > Some(0)
    });
    b.signal(Signal::SIGCONT)?;
    let behind = behind?;
    let shown = a.show(&["fleet", "status"])?;
    ensure!(behind["nodes"]["a"]["lag_ns"] == 0, "{behind:#}");
    ensure!(shown.contains("lag"), "{shown}");
    wait_for(b, "192.0.2.2", 1)?;
    wait_until(a, |status| status["nodes"]["b"]["lag_ns"] == 0)?;
    fleet.stop()
}
