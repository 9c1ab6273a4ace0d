//! Known sources: a source proven by one node is believed by all.
//!
//! A separate thread scans the kernel's table for new proofs (`scan.rs`), if there may be any
//! (`openings.rs`), and exchanges entries with other nodes over the store (`session.rs`), on its own
//! connections, so that bans do not wait. Entries of other nodes go into the table, marked as not from this
//! host (`enforce.rs`). `limiter-fleet` checks them. The kernel ends each such record together with its
//! entry, even without a daemon.

mod convert;
mod enforce;
mod node;
mod openings;
mod scan;
mod session;

use std::{io, sync::Arc};

use limiter_fleet::Keys;
use tokio::runtime::Builder;

use self::node::SourceNode;
use super::handle::Fleet;
use crate::daemon::{shared::Daemon, worker::Worker};

pub(in crate::daemon) fn start(
    daemon: &Arc<Daemon>,
    fleet: &Arc<Fleet>,
    keys: &Keys,
) -> io::Result<Worker> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut node = SourceNode::new(Arc::clone(daemon), Arc::clone(fleet), keys);
    let (ending, ended) = (Arc::clone(fleet), Arc::clone(daemon));
    Worker::start(
        "sources",
        move || {
            runtime.block_on(node.live());
            // A name look-up may take long; do not wait for it.
            runtime.shutdown_background();
            ended.watchdog.sources.end();
        },
        move || ending.sources_ending.notify_one(),
    )
}
