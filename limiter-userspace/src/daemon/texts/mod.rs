//! The texts of domains and questions, which buckets know by hashes: learned from some questions of refused
//! packets, which the kernel's programs tell.
//!
//! They are bounded, and so is what they cost: the programs tell at most some hundred questions a second,
//! whatever is sent. Names that refused packets ask for often are told often. When there is no more room,
//! those that were told seldom go; so a flood of names, each refused a few times, drives out no name that many
//! refused packets ask for.

mod known;

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

pub(super) use self::known::Texts;
use super::shared::Daemon;

/// How often questions are read: the kernel's map has room for 230.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads what the programs tell, forever.
pub(super) async fn keep(daemon: &Arc<Daemon>) -> Infallible {
    loop {
        let reading = Arc::clone(daemon);
        // If it fails, names are told by their numbers.
        let _ = spawn_blocking(move || reading.texts.read(&reading.datapath())).await;
        tokio::time::sleep(PAUSE).await;
    }
}
