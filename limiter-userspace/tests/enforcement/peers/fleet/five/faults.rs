//! All five nodes are flooded while hosts, daemons and the store fail.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use nix::sys::signal::Signal;

use super::{
    Five, NAMES, check_recovery,
    traffic::{Floods, Watch},
};
use crate::peers::fleet::{bans_of, shared_limits::wait_for_share, status, wait_for};

const ALL: [usize; 5] = [1, 2, 3, 4, 5];

/// The two nodes that are cut off, stalled and killed, once they have all.
const TWO: [usize; 2] = [4, 5];

/// After this time no bucket has more than its refill.
const DRAINED: Duration = Duration::from_secs(2);

#[test]
fn five_flooded_nodes_admit_no_more_than_the_limit_says() -> Result<()> {
    let mut five = Five::start()?;
    let (mut watch, mut floods) = (Watch::start(), Floods::none());
    floods.only(&five, &ALL)?;
    thread::sleep(DRAINED);
    watch.reach(&five, "all five want all")?;

    // Cut two nodes off with their leases, while the others want them.
    let_two_hold_all(&five, &mut floods)?;
    five.cut_off(&TWO)?;
    floods.only(&five, &ALL)?;
    five.node(4).show(&["ban", "192.0.2.4", "--for", "1h"])?;
    five.node(1).show(&["ban", "192.0.2.1", "--for", "1h"])?;
    watch.phase(&five, "two are cut off", Duration::from_secs(4))?;
    watch.reach(&five, "the others have all")?;
    ensure!(bans_of(five.node(1), "192.0.2.4")?.is_empty());
    five.cut_off(&[])?;
    let begun = Instant::now();
    let_two_hold_all(&five, &mut floods)?;
    wait_for(five.node(1), "192.0.2.4", 1)?;
    for number in TWO {
        wait_for(five.node(number), "192.0.2.1", 1)?;
    }
    check_recovery("no longer cut off", begun.elapsed())?;

    five.node(5).signal(Signal::SIGSTOP)?;
    floods.only(&five, &ALL)?;
    watch.phase(&five, "a daemon is stopped", Duration::from_secs(4))?;
    five.node(5).signal(Signal::SIGCONT)?;
    watch.phase(&five, "it goes on", Duration::from_secs(2))?;

    let_two_hold_all(&five, &mut floods)?;
    five.node(4).kill()?;
    floods.only(&five, &ALL)?;
    watch.phase(&five, "a daemon is killed", Duration::from_secs(2))?;
    five.node(4).restart()?;
    watch.phase(&five, "it is back", Duration::from_secs(1))?;
    five.node(4).kill()?;
    five.node(4).restart()?;
    watch.phase(&five, "and again", Duration::from_secs(2))?;

    let_two_hold_all(&five, &mut floods)?;
    five.fleet.store.kill()?;
    floods.only(&five, &ALL)?;
    five.node(2).show(&["ban", "192.0.2.2", "--for", "1h"])?;
    watch.phase(&five, "the store is lost", Duration::from_secs(4))?;
    let used = watch.phase(&five, "each has the minimum", Duration::from_secs(2))?;
    ensure!((3..=7).contains(&used), "{used} %");
    five.fleet.store.run()?;
    let begun = Instant::now();
    let_two_hold_all(&five, &mut floods)?;
    for number in ALL {
        wait_for(five.node(number), "192.0.2.2", 1)?;
    }
    check_recovery("the store began empty", begun.elapsed())?;
    let used = watch.phase(
        &five,
        "after all that, two want all",
        Duration::from_secs(4),
    )?;
    ensure!(used >= 85, "{used} %");
    for (number, name) in (1..).zip(NAMES) {
        let status = status(five.node(number))?;
        ensure!(
            status["node"] == name && status["leases_error"].is_null(),
            "{status:#}"
        );
    }
    floods.only(&five, &[])?;
    watch.finish(five)
}

/// Floods two nodes only, and waits until they have nearly all.
fn let_two_hold_all(five: &Five, floods: &mut Floods) -> Result<()> {
    floods.only(five, &TWO)?;
    for number in TWO {
        wait_for_share(&five.fleet.nodes[number - 1], |share| share > 440)?;
    }
    Ok(())
}
