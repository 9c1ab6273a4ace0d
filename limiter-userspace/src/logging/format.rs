//! Formats an event as a line.

use std::fmt;

use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Writer, debug_fn},
    },
    registry::LookupSpan,
};

/// Writes only the message, which repeats what the fields say.
pub(super) fn message_alone() -> impl for<'writer> FormatFields<'writer> {
    debug_fn(|writer, field: &Field, value| {
        if field.name() == "message" {
            write!(writer, "{value:?}")
        } else {
            Ok(())
        }
    })
}

/// Prefixes a line with its syslog priority, as in sd-daemon(3): `<4>attached to …`.
pub(super) struct Prioritised;

impl<S, N> FormatEvent<S, N> for Prioritised
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}

/// Returns the priority in syslog(3).
const fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        Level::DEBUG | Level::TRACE => 7,
    }
}
