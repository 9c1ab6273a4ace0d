//! The texts of domains and questions. Buckets have only their hashes, so the kernel's programs report the
//! questions of some refused packets, and the daemon keeps their texts.
//!
//! Cost and memory are bounded: the programs report at most some hundred questions a second, under any
//! load. Names that refused packets often ask for are reported often. A full table drops the names reported
//! least, so a flood of names, each refused a few times, drives out no name that many refused packets ask
//! for.

mod table;

use std::{convert::Infallible, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

pub(super) use self::table::Texts;
use super::shared_datapath::SharedDatapath;

/// How often questions are read: the kernel's map has room for 230.
const PAUSE: Duration = Duration::from_secs(1);

/// Reads the programs' reports, forever.
pub(super) async fn maintain(datapath: &Arc<SharedDatapath>, texts: &Arc<Texts>) -> Infallible {
    loop {
        let (datapath, texts) = (Arc::clone(datapath), Arc::clone(texts));
        // If it fails, names are shown by their numbers.
        let _ = spawn_blocking(move || texts.read(&datapath.read())).await;
        tokio::time::sleep(PAUSE).await;
    }
}
