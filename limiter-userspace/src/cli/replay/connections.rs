//! The connections of a capture.

use std::io::Write;

use limiter_offline::replay::ConnectionCounts;
use serde::Serialize;

use limiter_report::render::{count, counted};

/// The connections in the last line of JSON.
#[derive(Serialize)]
pub(super) struct Connections {
    opened: u64,
    most_open: u64,
    open_at_end: u64,
}

impl From<ConnectionCounts> for Connections {
    fn from(counts: ConnectionCounts) -> Self {
        let ConnectionCounts {
            opened,
            most_open,
            open,
        } = counts;
        Self {
            opened,
            most_open,
            open_at_end: open,
        }
    }
}

/// Prints the number of connections, with a note that it is approximate, if limits count connections.
pub(super) fn print(out: &mut impl Write, counts: Option<ConnectionCounts>) -> anyhow::Result<()> {
    let Some(counts) = counts else {
        return Ok(());
    };
    let opened = usize::try_from(counts.opened).unwrap_or(usize::MAX);
    writeln!(
        out,
        "connections are judged from this capture's handshakes alone, an approximation: {} opened, {} \
         open at once at most, {} at the end; earlier ones are missing",
        counted(opened, "connection"),
        count(counts.most_open),
        count(counts.open),
    )?;
    Ok(())
}
