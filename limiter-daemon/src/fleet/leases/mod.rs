//! Shared limits: this node leases its share of each key's budget.
//!
//! `limiter_fleet::lease` has the protocol, which keeps all nodes within the whole. A thread of its own runs it: it
//! polls packets' demand, calls the store's script (`connection.rs`), and sets shares with their ends in
//! the kernel (`keys.rs`). The datapath knows shares and their ends, but no fleet: so leases end by
//! themselves, even without this thread or the store.
//!
//! Nothing is kept on disk. A restarted node has the leases of a new session; the earlier ones run out.

mod connection;
mod keys;
mod node;
mod shared_limit;

use std::{io, sync::Arc};

use tokio::runtime::Builder;

use self::node::LeaseNode;
use super::handle::Fleet;
use crate::{shared_datapath::SharedDatapath, watchdog::ThreadWatchdog, worker::Worker};

pub(crate) fn start(
    datapath: Arc<SharedDatapath>,
    watchdog: Arc<ThreadWatchdog>,
    fleet: Arc<Fleet>,
) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let ending = Arc::clone(&fleet);
    let mut node = LeaseNode::new(datapath, Arc::clone(&watchdog), fleet);
    Worker::start(
        "leases",
        move || {
            runtime.block_on(node.live());
            // A name look-up may take long; do not wait for it.
            runtime.shutdown_background();
            watchdog.leases.end();
        },
        move || ending.leases_ending.notify_one(),
    )
}
