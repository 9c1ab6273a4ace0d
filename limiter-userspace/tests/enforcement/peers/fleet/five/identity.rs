//! Nodes' keys and names.

use std::{thread, time::Duration};

use anyhow::{Result, ensure};
use testbed::Limiter;

use crate::{
    peers::PASSES,
    peers::fleet::{
        Fleet, configuration, start, status, store::Store, wait_for, wait_until, write_secret,
    },
};

pub(in super::super) const OLD: &str =
    "9ca35d1c0f2ae4a1b20a6e5d08cdb6d2a4f0d6f6f0b9b1a7f5a2f1c6f3e0d9b8";
pub(in super::super) const NEW: &str =
    "1f2e3d4c5b6a79880918273645546372819fae0dbcca9b8d7e6f50413223140f";

/// The log line of a daemon that has read its keys.
pub(in super::super) const KEYS_READ: &str = "the fleet's keys are those in the file";

/// By the steps of docs/fleet.md, one node after the other: all nodes understand each other at each moment,
/// and a later node knows the earlier bans.
#[test]
fn a_key_changes_while_daemons_run() -> Result<()> {
    let store = Store::start(3)?;
    let names = ["a", "b", "c"];
    let key_file = |name: &str| store.directory().join(format!("{name}.key"));
    let begin = |number: usize, keys: &[&str]| -> Result<Limiter> {
        let name = names[number - 1];
        write_secret(&key_file(name), &keys.join("\n"))?;
        let text = configuration(&store, number, (name, &names), PASSES, "");
        start(
            &store,
            number,
            &text.replace("/fleet.key", &format!("/{name}.key")),
        )
    };
    let (a, b) = (begin(1, &[OLD])?, begin(2, &[OLD])?);
    a.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(&b, "192.0.2.1", 1)?;
    let mut number = 0;
    for (read, keys) in (1..).zip([&[OLD, NEW][..], &[NEW, OLD], &[NEW]]) {
        for name in ["a", "b"] {
            write_secret(&key_file(name), &keys.join("\n"))?;
        }
        // Each node reads the file within five seconds; in between, their keys differ.
        loop {
            let has_read = [a.log()?, b.log()?].map(|log| log.matches(KEYS_READ).count() >= read);
            for (from, to) in [(&a, &b), (&b, &a)] {
                let prefix = format!("198.51.100.{number}");
                from.show(&["ban", &prefix, "--for", "1h"])?;
                wait_for(to, &prefix, 1)?;
                number += 1;
            }
            if has_read == [true; 2] {
                break;
            }
            thread::sleep(Duration::from_millis(200));
        }
    }
    let c = begin(3, &[NEW])?;
    wait_for(&c, "198.51.100.0/24", number)?;
    wait_for(&c, "192.0.2.1", 1)?;
    for node in [a, b, c] {
        let reported = status(&node)?;
        ensure!(
            reported["refused"]["mac"].is_null(),
            "{reported:#}\n{}",
            node.log()?
        );
        ensure!(node.stop()?.success());
    }
    Ok(())
}

/// Both log the conflict, and bans come and go.
#[test]
fn two_nodes_with_one_name_find_out() -> Result<()> {
    let store = Store::start(2)?;
    let nodes = (1..=2).map(|number| {
        let text = configuration(&store, number, ("a", &["a", "b"]), PASSES, "");
        start(
            &store,
            number,
            &text.replace("/state-a", &format!("/state-{number}")),
        )
    });
    let fleet = Fleet {
        nodes: nodes.collect::<Result<_>>()?,
        store,
    };
    let [one, other] = &fleet.nodes[..] else {
        unreachable!()
    };
    for node in [one, other] {
        wait_until(node, |status| status["connected"] == true)?;
        node.wait_for_log("another host sends heartbeats as the fleet's node a, too")?;
    }
    one.show(&["ban", "192.0.2.1", "--for", "1h"])?;
    wait_for(other, "192.0.2.1", 1)?;
    other.show(&["unban", "192.0.2.1"])?;
    wait_for(one, "192.0.2.1", 0)?;
    fleet.stop()
}
