//! The daemon's log: selects the events, and writes them to stderr.
//!
//! An event is one sentence for people, with the same data as fields for programs. Events report changes (attached,
//! vanished, ends), never packets, which are only counted.

mod format;
mod journal;
mod stderr;

use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use limiter_datapath::kernel::log::VERDICTS;
use tracing::{Level, level_filters::LevelFilter};
use tracing_subscriber::{
    filter::Targets, fmt, layer::SubscriberExt as _, util::SubscriberInitExt as _,
};

pub use self::stderr::log_lost;

/// The log format on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatChoice {
    /// `human` on a terminal, `journal` if stderr is systemd's journal, else `json`
    #[default]
    Auto,
    /// A line of text with the time; in colour on a terminal
    Human,
    /// A JSON object per line
    Json,
    /// A line of text with its priority, as systemd's journal expects
    Journal,
}

/// A log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
    /// For systemd's journal, which adds the time itself.
    Journal,
}

impl FormatChoice {
    /// Returns the format to use for this process's stderr.
    #[must_use]
    pub fn resolve(self) -> Format {
        match self {
            Self::Human => Format::Human,
            Self::Journal => Format::Journal,
            Self::Auto if io::stderr().is_terminal() => Format::Human,
            Self::Auto if journal::is_stderr() => Format::Journal,
            Self::Json | Self::Auto => Format::Json,
        }
    }
}

/// The beginning of our crates' names.
const OUR_CRATES: &str = "limiter_";

/// Returns the events to log.
fn filter(level: Level, verdicts: bool) -> Targets {
    let ours = LevelFilter::from_level(level);
    // Our own lines have all that an operator needs, in plain words. Lines of libraries help only to find a fault.
    let of_libraries = if ours >= LevelFilter::DEBUG {
        LevelFilter::WARN
    } else {
        LevelFilter::OFF
    };
    let verdicts = if verdicts {
        LevelFilter::TRACE
    } else {
        LevelFilter::OFF
    };
    Targets::new()
        .with_default(of_libraries)
        .with_target(OUR_CRATES, ours)
        .with_target(VERDICTS, verdicts)
}

/// Starts the log of this process: events of `level` and more severe ones, and the XDP program's verdicts if asked
/// for. To be called once.
pub fn start(format: Format, level: Level, verdicts: bool) {
    let filter = filter(level, verdicts);
    let is_json = format == Format::Json;
    let lines = fmt::layer()
        .with_writer(move || stderr::Line { is_json })
        .with_target(false);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        Format::Human => registry
            .with(
                lines
                    .with_ansi(io::stderr().is_terminal())
                    .fmt_fields(format::message_alone()),
            )
            .init(),
        Format::Journal => registry
            .with(
                lines
                    .with_ansi(false)
                    .fmt_fields(format::message_alone())
                    .event_format(format::PriorityFormat),
            )
            .init(),
        Format::Json => registry.with(lines.json().flatten_event(true)).init(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_look_for_faults_shows_what_libraries_say() {
        let (ours, commands) = (env!("CARGO_CRATE_NAME"), "limiter_userspace::cli");
        let theirs = "notify::inotify";
        for (level, warns) in [
            (Level::ERROR, [false, false]),
            (Level::INFO, [true, false]),
            (Level::DEBUG, [true, true]),
        ] {
            let filter = filter(level, false);
            let is_shown = |target| filter.would_enable(target, &Level::WARN);
            let shown = [ours, commands, theirs].map(is_shown);
            assert_eq!(shown, [warns[0], warns[0], warns[1]], "{level}");
        }
    }
}
