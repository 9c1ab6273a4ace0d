//! Shared limits: this node has a share of each owner's budget.
//!
//! `limiter-fleet` has the protocol, which keeps the sum of all shares within the whole. A separate thread
//! runs it: it polls packets' demand (`demand.rs`), queries other nodes by messages over the store
//! (`transport/`), and sets shares with their ends in the kernel (`bucket.rs`), for the owners that need it
//! (`keeper.rs`,
//! `owners.rs`, `hot.rs`). The datapath knows shares and their ends, but no fleet: so loans end by
//! themselves, even without this thread or the store.
//!
//! Nothing is kept on disk. A restarted node stays silent until all its earlier loans are over, and uses
//! the time as the number of its start.

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
#[cfg(test)]
mod tests;
mod transport;

use std::{io, sync::Arc};

use limiter_fleet::{Keys, Members};
use tokio::runtime::Builder;

use self::node::ShareNode;
use super::handle::Fleet;
use crate::daemon::{shared::Daemon, worker::Worker};

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
            // A name look-up may take long; do not wait for it.
            runtime.shutdown_background();
            ended.watchdog.shares.end();
        },
        move || ending.shares_ending.notify_one(),
    )
}
