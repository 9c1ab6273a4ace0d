//! Opens a capture: standard input or a file, with a progress bar for a long one if stderr is a terminal.

use std::{
    fs::File,
    io::{self, IsTerminal, Read},
    path::Path,
};

use anyhow::{Context as _, anyhow, bail};
use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};
use limiter_capture::{Capture, decompressed};

/// The least length of a file with a progress bar, in bytes; shorter ones are replayed too fast.
const LONG: u64 = 64 * 1024 * 1024;

const BAR: &str = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";

/// Opens a capture, compressed or not. An error names the file.
pub(super) fn open(path: &Path) -> anyhow::Result<Capture<Box<dyn Read>>> {
    let named = |error| anyhow!("{}: {error}", path.display());
    Capture::new(decompressed(bytes(path)?)?).map_err(named)
}

fn bytes(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    let (file, metadata) = match File::open(path).and_then(|file| Ok((file.metadata()?, file))) {
        Ok((metadata, file)) => (file, metadata),
        Err(error) => bail!("cannot open the capture {}: {error}", path.display()),
    };
    if metadata.is_dir() {
        bail!(
            "cannot read the capture {}: it is a directory",
            path.display()
        );
    }
    if metadata.len() < LONG || !io::stderr().is_terminal() {
        return Ok(Box::new(file));
    }
    let style = ProgressStyle::with_template(BAR).context("the progress bar's template")?;
    let bar = ProgressBar::new(metadata.len())
        .with_style(style)
        .with_finish(ProgressFinish::AndClear);
    Ok(Box::new(bar.wrap_read(file)))
}
