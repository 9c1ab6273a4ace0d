//! Known sources: what this node has proven, the others believe, and what they have, this one.
//!
//! A thread of its own looks at the kernel's table for what is new (`look.rs`), if there may be something (`openings.rs`), tells it to the others over the store,
//! and hears theirs (`session.rs`), over connections of its own, so that bans do not wait for it. What is heard
//! is put into the table, told apart from what this host found out itself (`enforce.rs`). `limiter-fleet` says what
//! is believed. The kernel ends each such record with the word that it comes of; without a daemon, too.

mod convert;
mod enforce;
mod look;
mod node;
mod openings;
mod session;

use std::{io, sync::Arc};

use limiter_fleet::Keys;
use tokio::runtime::Builder;

use self::node::SourceNode;
use super::handle::Fleet;
use crate::daemon::{shared::Daemon, worker::Worker};

/// Starts the thread.
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
            // Looking up a name may take long, and nobody waits for that.
            runtime.shutdown_background();
            ended.pulses.sources.end();
        },
        move || ending.sources_ending.notify_one(),
    )
}
