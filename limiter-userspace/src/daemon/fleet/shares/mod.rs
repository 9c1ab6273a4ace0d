//! Limits whose budgets the fleet has in common: this node has a share of each owner's.
//!
//! `limiter-fleet` is the protocol, by which all shares never add up to more than the whole. A thread of its
//! own is this node's part in it: it looks at what packets want (`demand.rs`), asks the other nodes for it
//! by letters over the store (`post/`), and puts in force what it has, and for how long
//! (`bucket.rs`), for all owners that need it (`keeper.rs`, `owners.rs`, `hot.rs`). The datapath knows shares that move and
//! their ends, and no fleet: so without this thread, or without a store, what is lent ends by itself.
//!
//! Nothing is kept on disk. A node that starts anew is silent until all that it may have lent is over, and
//! its number among starts is the time.

mod batch;
mod bucket;
mod demand;
mod hot;
mod joint;
mod keeper;
mod lever;
#[cfg(test)]
mod model;
mod node;
mod owner;
mod owners;
mod post;
#[cfg(test)]
mod tests;

use std::{io, sync::Arc};

use limiter_fleet::{Keys, Members};
use tokio::runtime::Builder;

use self::node::ShareNode;
use super::handle::Fleet;
use crate::daemon::{shared::Daemon, worker::Worker};

/// Starts the thread.
pub(in crate::daemon) fn start(
    daemon: &Arc<Daemon>,
    fleet: &Arc<Fleet>,
    members: &Members,
    keys: &Keys,
) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut node = ShareNode::new(Arc::clone(daemon), Arc::clone(fleet), members, keys);
    let (ending, ended) = (Arc::clone(fleet), Arc::clone(daemon));
    Worker::start(
        "shares",
        move || {
            runtime.block_on(node.live());
            // Looking up a name may take long, and nobody waits for that.
            runtime.shutdown_background();
            ended.pulses.shares.end();
        },
        move || ending.shares_ending.notify_one(),
    )
}
