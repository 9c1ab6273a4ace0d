//! Formats an event as a line.

use std::fmt;

use limiter_policy::text::one_line;
use tracing::{Event, Level, Subscriber, field::Field};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Writer, debug_fn},
    },
    registry::LookupSpan,
};

/// Writes only the message, which repeats the fields. It may quote text from outside, such as a store's error, so it
/// stays one line, with the event's priority.
pub(super) fn message_alone() -> impl for<'writer> FormatFields<'writer> {
    debug_fn(|writer, field: &Field, value| {
        if field.name() == "message" {
            writer.write_str(&one_line(&format!("{value:?}")))
        } else {
            Ok(())
        }
    })
}

/// Prefixes a line with its syslog priority, as in sd-daemon(3): `<4>attached to …`.
pub(super) struct PriorityFormat;

impl<S, N> FormatEvent<S, N> for PriorityFormat
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

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing::{subscriber::with_default, warn};
    use tracing_subscriber::{fmt, layer::SubscriberExt as _};

    use super::*;

    /// The logged lines.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_say_is_text_in_one_line() {
        let log = Log::default();
        let writer = log.clone();
        let layer = fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(false)
            .fmt_fields(message_alone())
            .event_format(PriorityFormat);
        with_default(tracing_subscriber::registry().with(layer), || {
            let error = "ERR\n<0>all is lost\u{1b}]0;x\u{7}";
            warn!(error, "cannot reach the store: {error}");
        });
        let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        let expected = r"<4>cannot reach the store: ERR\n<0>all is lost\u{1b}]0;x\u{7}";
        assert_eq!(logged, format!("{expected}\n"));
    }
}
