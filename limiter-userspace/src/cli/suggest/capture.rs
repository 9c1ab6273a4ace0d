//! Reads a capture.

use std::path::Path;

use limiter_offline::suggest::{Frames, Host, Observation, Observer};

use crate::cli::traffic_file;

/// Collects a capture's packets; also returns the error that ends them early, if any.
pub(super) fn read(
    path: &Path,
    host: Option<Host>,
    observer: Observer,
) -> anyhow::Result<(Observation, anyhow::Result<()>)> {
    let mut capture = traffic_file::open(path)?;
    let mut frames = Frames::new(observer, host);
    let end = loop {
        match capture.next_packet() {
            Ok(Some(packet)) => {
                let Ok(()) = frames.sort(&packet);
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error.into()),
        }
    };
    let Ok((observer, _)) = frames.finish();
    Ok((observer.finish(), end))
}
