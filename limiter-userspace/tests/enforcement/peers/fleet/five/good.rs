//! Clients with little traffic lose nothing while the fleet is down.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::{
    Five, check_recovery, quiet,
    traffic::{Client, Floods, Watch},
};
use crate::peers::fleet::{shared_limits::wait_for_share, wait_for, wait_until};

/// One node is flooded. The other nodes' clients send less than the minimum share, and lose nothing while the
/// store is slow, stopped or gone, or a daemon stands still. A slow store still works until it is too slow.
#[test]
fn good_clients_lose_nothing_while_the_fleet_is_not_there() -> Result<()> {
    let mut five = Five::by_proxy()?;
    quiet::check(&five.fleet, Duration::from_secs(3))?;
    let (mut watch, mut floods) = (Watch::start(), Floods::none());
    floods.only(&five, &[1])?;
    let good = (2..=5).map(|number| Client::good(&five, number));
    let good = good.collect::<Result<Vec<_>>>()?;
    wait_for_share(five.node(1), |share| share > 900)?;

    five.proxy.delay(Duration::from_millis(50));
    watch.phase(&five, "the store is slow", Duration::from_secs(2))?;
    wait_for_share(five.node(1), |share| share > 900)?;
    let begun = Instant::now();
    five.node(2).show(&["ban", "192.0.2.2", "--for", "1h"])?;
    wait_for(five.node(3), "192.0.2.2", 1)?;
    println!("a ban took {:?} over a slow store", begun.elapsed());

    five.proxy.delay(Duration::from_secs(5));
    wait_for_share(five.node(1), |share| share <= 10)?;
    watch.phase(&five, "it is too slow", Duration::from_secs(4))?;
    wait_until(five.node(3), |status| status["connected"] == false)?;
    five.node(2).show(&["ban", "192.0.2.3", "--for", "1h"])?;
    five.proxy.delay(Duration::ZERO);
    let begun = Instant::now();
    wait_for_share(five.node(1), |share| share > 900)?;
    wait_for(five.node(3), "192.0.2.3", 1)?;
    check_recovery("no longer slow", begun.elapsed())?;

    five.fleet.store.signal(Signal::SIGSTOP)?;
    wait_for_share(five.node(1), |share| share <= 10)?;
    watch.phase(&five, "it is stopped", Duration::from_secs(2))?;
    five.fleet.store.signal(Signal::SIGCONT)?;
    let begun = Instant::now();
    wait_for_share(five.node(1), |share| share > 900)?;
    check_recovery("no longer stopped", begun.elapsed())?;

    five.node(2).signal(Signal::SIGSTOP)?;
    five.fleet.store.kill()?;
    wait_for_share(five.node(1), |share| share <= 10)?;
    watch.phase(&five, "it is gone", Duration::from_secs(2))?;
    five.node(2).signal(Signal::SIGCONT)?;
    thread::sleep(Duration::from_secs(1));
    for client in good {
        ensure!(client.check_all_arrived(&five)? > 0, "nothing was sent");
    }
    floods.only(&five, &[])?;
    watch.finish(five)
}
