//! A node was away, or the store was lost: afterwards all know everything again.

use anyhow::{Result, ensure};

use super::{
    bans_of,
    sources::{self, client, fleet, known, wait_for_entries},
    store::Store,
    wait_for, wait_until,
};
use crate::wait;

/// A returning node catches up on changes by others. Cut off, it goes on alone, and informs the others later.
#[test]
fn a_node_that_was_away_knows_what_it_missed() -> Result<()> {
    let mut fleet = fleet(&["a", "b"], "")?;
    let [a, b] = &mut fleet.nodes[..] else {
        unreachable!()
    };
    let (gone, stays, new) = (client(1), client(2), client(3));
    for prefix in ["192.0.2.1", "192.0.2.2"] {
        a.show(&["ban", prefix, "--for", "1h"])?;
        wait_for(b, prefix, 1)?;
    }
    for source in [&gone, &stays] {
        a.show(&["trust", source, "--for", "1h"])?;
        sources::wait_for(b, source, "fleet")?;
    }
    b.terminate()?;
    a.show(&["unban", "192.0.2.1"])?;
    a.show(&["ban", "192.0.2.3", "--for", "1h"])?;
    a.show(&["untrust", &gone])?;
    a.show(&["trust", &new, "--for", "1h"])?;
    b.restart()?;
    for (prefix, bans) in [("192.0.2.3", 1), ("192.0.2.1", 0), ("192.0.2.2", 1)] {
        wait_for(b, prefix, bans)?;
    }
    for (source, why) in [(&new, "fleet"), (&gone, "nothing"), (&stays, "fleet")] {
        sources::wait_for(b, source, why)?;
    }
    let reported = wait_until(b, |status| status["connected"] == true)?;
    ensure!(
        reported["sent"] == 0,
        "updates of others were sent again: {reported:#}"
    );

    fleet.store.set_link(2, "down")?;
    b.show(&["unban", "192.0.2.2"])?;
    b.show(&["ban", "192.0.2.4", "--for", "1h"])?;
    a.show(&["ban", "192.0.2.5", "--for", "1h"])?;
    a.show(&["untrust", &new])?;
    a.show(&["trust", &gone, "--for", "1h"])?;
    wait_until(b, |status| {
        status["connected"] == false
            && status["unsent"] == 2
            && status["sources"]["error"].is_string()
    })?;
    ensure!(bans_of(b, "192.0.2.4")?.len() == 1 && bans_of(b, "192.0.2.3")?.len() == 1);
    ensure!(known(b, &new)?["why"] == "fleet");
    fleet.store.set_link(2, "up")?;
    wait_for(b, "192.0.2.5", 1)?;
    wait_for(a, "192.0.2.4", 1)?;
    wait_for(a, "192.0.2.2", 0)?;
    sources::wait_for(b, &gone, "fleet")?;
    sources::wait_for(b, &new, "nothing")?;
    fleet.stop()
}

/// The nodes fill an empty store, and need none to go on. A node that starts then learns everything.
#[test]
fn a_store_that_was_lost_is_filled_again() -> Result<()> {
    let mut fleet = fleet(&["a", "b"], "")?;
    let [a, b] = &mut fleet.nodes[..] else {
        unreachable!()
    };
    let source = client(1);
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    a.show(&["trust", &source, "--for", "1h"])?;
    b.show(&["ban", "192.0.2.2", "--for", "1h"])?;
    wait_for(b, "192.0.2.1", 1)?;
    wait_for(a, "192.0.2.2", 1)?;
    sources::wait_for(b, &source, "fleet")?;
    fleet.store.kill()?;
    wait_until(a, |status| status["connected"] == false)?;
    b.show(&["ban", "192.0.2.3", "--for", "1h"])?;
    b.show(&["unban", "192.0.2.1"])?;
    ensure!(bans_of(a, "192.0.2.2")?.len() == 1);
    fleet.store.run()?;
    wait_for(a, "192.0.2.3", 1)?;
    wait_for(a, "192.0.2.1", 0)?;
    let wait_until_filled = |store: &Store| {
        wait(|| Ok(store.command(&["hlen", "limiter:{edge}:bans"])?.trim() == "3"))?;
        wait_for_entries(store)
    };
    wait_until_filled(&fleet.store)?;
    // The store loses its data while it runs, and the nodes notice.
    fleet.store.command(&["flushall"])?;
    wait_until_filled(&fleet.store)?;
    for node in [&*a, &*b] {
        ensure!(bans_of(node, "192.0.2.2")?.len() == 1);
    }
    ensure!(known(b, &source)?["why"] == "fleet");
    b.terminate()?;
    fleet.store.kill()?;
    fleet.store.run()?;
    b.restart()?;
    sources::wait_for(b, &source, "fleet")?;
    wait_until_filled(&fleet.store)?;
    fleet.stop()
}
