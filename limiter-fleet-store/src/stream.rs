//! The commands on streams.

use std::time::Duration;

use limiter_fleet::Position;
use redis::{Cmd, aio::MultiplexedConnection, cmd};

use super::query::{StoreError, query};

/// The most messages or fields to read at once.
pub(crate) const MOST_AT_ONCE: usize = 256;

/// How long a read waits for new messages.
const WAIT: Duration = Duration::from_secs(1);

/// The name of the only field of messages.
pub(crate) const FIELD: &str = "m";

/// Messages of a stream.
#[derive(Debug, Default)]
pub struct News {
    /// The messages, oldest first.
    pub messages: Vec<Vec<u8>>,
    /// The position to continue after; `None`: there were no messages.
    pub next: Option<Position>,
}

/// Messages of a stream as the store sends them: each with its position, its fields and their values.
type Messages = Vec<(String, Vec<Vec<u8>>)>;

/// Returns the position of the newest message, or the first possible position if the stream is empty.
pub(crate) async fn newest(
    connection: &mut MultiplexedConnection,
    stream: &str,
) -> Result<Position, StoreError> {
    let found = query(connection, &newest_of(stream)).await?;
    Ok(messages(found)?.next.unwrap_or_default())
}

pub(crate) fn newest_of(stream: &str) -> Cmd {
    let mut newest = cmd("XREVRANGE");
    newest.arg(stream).arg("+").arg("-").arg("COUNT").arg(1);
    newest
}

/// Returns whether messages after a position may have been trimmed from the stream.
pub(crate) async fn is_cut_after(
    connection: &mut MultiplexedConnection,
    stream: &str,
    position: Position,
) -> Result<bool, StoreError> {
    let mut oldest = cmd("XRANGE");
    oldest.arg(stream).arg("-").arg("+").arg("COUNT").arg(1);
    let found = query(connection, &oldest).await?;
    let oldest = messages(found)?.next;
    Ok(oldest.is_some_and(|oldest| oldest > position))
}

/// Reads messages of streams, up to `most` of each, after positions. Without any, waits a second at most.
pub(crate) async fn read(
    connection: &mut MultiplexedConnection,
    streams: &[(String, Position)],
    most: usize,
) -> Result<Vec<News>, StoreError> {
    let mut read = cmd("XREAD");
    read.arg("COUNT").arg(most);
    read.arg("BLOCK").arg(WAIT.as_millis().to_string());
    read.arg("STREAMS");
    for (stream, _) in streams {
        read.arg(stream);
    }
    for (_, after) in streams {
        read.arg(after.to_string());
    }
    let found: Option<Vec<(String, Messages)>> = query(connection, &read).await?;
    let mut all: Vec<_> = streams.iter().map(|_| News::default()).collect();
    for (name, found) in found.unwrap_or_default() {
        let number = streams.iter().position(|(stream, _)| *stream == name);
        let news = number.and_then(|number| all.get_mut(number));
        *news.ok_or(StoreError::Response)? = messages(found)?;
    }
    Ok(all)
}

/// Returns commands without effect that need the same rights as all others on a stream.
pub(crate) fn idle(stream: &str) -> [Cmd; 3] {
    let mut add = cmd("XADD");
    // Every position is above this one, so the store adds nothing.
    add.arg(stream).arg("0-0").arg("").arg("");
    let mut range = cmd("XRANGE");
    range.arg(stream).arg("+").arg("-");
    let mut read = cmd("XREAD");
    read.arg("STREAMS").arg(stream).arg("$");
    [add, range, read]
}

/// Reads messages with their positions. Skips messages without the field: another program wrote them.
fn messages(found: Messages) -> Result<News, StoreError> {
    let mut news = News::default();
    for (position, fields) in found {
        news.next = Some(position.parse().map_err(|_| StoreError::Response)?);
        let mut fields = fields.into_iter();
        if fields.next().is_some_and(|field| field == FIELD.as_bytes()) {
            news.messages.extend(fields.next());
        }
    }
    Ok(news)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_others_are_left_out() {
        let message = |id: &str, fields: &[&str]| {
            let fields = fields.iter().map(|field| field.as_bytes().to_vec());
            (id.to_owned(), fields.collect())
        };
        let found = vec![
            message("1-0", &["m", "one"]),
            message("1-1", &["x", "other"]),
            message("2-0", &["m", "two", "x", "more"]),
            message("3-0", &[]),
        ];
        let news = messages(found).unwrap();
        assert_eq!(news.messages, [b"one", b"two"]);
        assert_eq!(news.next.unwrap().to_string(), "3-0");
        assert!(messages(vec![message("x", &[])]).is_err());
    }
}
