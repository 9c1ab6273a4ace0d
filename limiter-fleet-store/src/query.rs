//! Sends commands to a server, and explains refusals.

use std::fmt::Display;

use redis::{
    Arg, Cmd, ErrorKind, FromRedisValue, Pipeline, RedisError, ServerError, ServerErrorKind,
    aio::MultiplexedConnection, cmd,
};
use thiserror::Error;

use super::bounded::TOO_LONG;

/// The most characters of a server's text.
const MOST_TEXT: usize = 300;

/// Why the store has not executed a command.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store's reason, or the store cannot be reached: one line of visible text.
    #[error("{0}")]
    Failed(String),
    /// The ACL user lacks a right.
    #[error("its user has no right to '{command}'{of}: add '{keys}+{command}' to its ACL")]
    Denied {
        /// The command.
        command: String,
        /// The key, after ` of `; empty: the command has none.
        of: String,
        /// The rule for all keys of that kind, before a space; empty: the command has none.
        keys: String,
    },
    /// The Sentinels do not know the server.
    #[error("the Sentinels know no server '{0}'")]
    Unknown(String),
    /// The servers of a cluster redirect in a circle.
    #[error("the servers of the cluster name each other as those that have the fleet's keys")]
    Circle,
    /// The stream was trimmed before it was read.
    #[error("its stream was cut before it was read")]
    Cut,
    /// The response has an unexpected form.
    #[error("its response has an unexpected form")]
    Response,
    /// The response is too long to be read into memory.
    #[error(
        "its response is longer than 16 MiB: delete long values and messages from it, and set \
         `proto-max-bulk-len 1mb`"
    )]
    TooLong,
}

impl StoreError {
    pub(crate) fn failed(error: &impl Display) -> Self {
        Self::Failed(visible(&error.to_string()))
    }

    fn denied(command: &Cmd) -> Self {
        let mut words = command.args_iter().map(|word| match word {
            Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
            _ => String::new(),
        });
        let mut command = words.next().unwrap_or_default().to_lowercase();
        if command == "script" {
            // Of `SCRIPT LOAD`: a right of its own.
            let part = words.next().unwrap_or_default().to_lowercase();
            command = format!("{command}|{part}");
        }
        // The arguments of `XREAD` begin with its options.
        let key = words.find(|word| word.starts_with("limiter:"));
        let (of, keys) = key.map_or_else(Default::default, |key| {
            let kind = &key[..key.rfind(':').map_or(0, |colon| colon + 1)];
            (format!(" of '{key}'"), format!("~{kind}* "))
        });
        Self::Denied { command, of, keys }
    }
}

/// Returns a server's text as one bounded line without characters that act: it may contain anything.
fn visible(text: &str) -> String {
    let mut line = String::new();
    for (number, character) in text.chars().enumerate() {
        if number == MOST_TEXT {
            line.push('…');
            break;
        }
        // Quotes and backslashes stay as they are.
        if character == ' ' || character.is_ascii_graphic() {
            line.push(character);
        } else {
            line.extend(character.escape_debug());
        }
    }
    line
}

pub(crate) async fn query<T: FromRedisValue>(
    connection: &mut MultiplexedConnection,
    command: &Cmd,
) -> Result<T, StoreError> {
    let done = command.query_async(connection).await;
    done.map_err(|error| refused(error, &[command]))
}

/// Explains why a server has not done the commands: by the first that it refuses.
pub(crate) fn refused(error: RedisError, commands: &[&Cmd]) -> StoreError {
    let text = error.to_string();
    if error.is_io_error() && text.contains(TOO_LONG) {
        return StoreError::TooLong;
    }
    let refused = error.into_server_errors();
    let Some((number, first)) = refused.as_ref().and_then(|all| all.first()) else {
        return StoreError::failed(&text);
    };
    match commands.get(*number).filter(|_| is_denied(first)) {
        Some(command) => StoreError::denied(command),
        None => StoreError::failed(first),
    }
}

/// Returns whether the server reports that its user lacks a right.
fn is_denied(error: &ServerError) -> bool {
    match RedisError::from(error.clone()).kind() {
        ErrorKind::Server(ServerErrorKind::NoPerm) => true,
        // A server refuses the end of a transaction with this kind.
        ErrorKind::Server(ServerErrorKind::ExecAbort) => {
            error.details().is_some_and(|why| why.contains("NOPERM"))
        }
        _ => false,
    }
}

/// Checks the user's rights to some commands that have no effect: a server checks rights before arguments.
/// Other errors do not count.
pub(crate) async fn check_rights(
    connection: &mut MultiplexedConnection,
    commands: &Pipeline,
) -> Result<(), StoreError> {
    let done: Result<(), RedisError> = commands.query_async(connection).await;
    let Err(error) = done else {
        return Ok(());
    };
    let Some(all) = error.clone().into_server_errors() else {
        return Err(refused(error, &[]));
    };
    let denied = all.iter().find(|(_, one)| is_denied(one));
    let denied = denied.and_then(|(number, _)| commands.cmd_iter().nth(*number));
    denied.map_or(Ok(()), |command| Err(StoreError::denied(command)))
}

/// Adds commands on a hash that have no effect: no field has an empty name, and `HSET` lacks the second field's value.
pub(crate) fn add_idle(commands: &mut Pipeline, names: &[&str], hash: &str) {
    for name in names {
        let mut command = cmd(name);
        command.arg(hash);
        match *name {
            "HSET" => command.arg("").arg("").arg(""),
            "HSCAN" => command.arg(0).arg("COUNT").arg(1),
            _ => command.arg(""),
        };
        commands.add_command(command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_response_of_a_server_is_one_line() {
        let shown = visible("ERR 'a'\n<0>b\u{1b}[2J\u{9b}c\u{202e}d\u{2028}e");
        let expected = "ERR 'a'\\n<0>b\\u{1b}[2J\\u{9b}c\\u{202e}d\\u{2028}e";
        assert_eq!(shown, expected);
        assert_eq!(visible("schön"), "schön");
        let long = visible(&"\u{1b}".repeat(1_000_000));
        assert!(long.len() < 8 * MOST_TEXT && long.ends_with('…'));
    }

    #[test]
    fn the_missing_right_is_reported() {
        for (words, expected) in [
            (
                "XREAD COUNT 1 STREAMS limiter:{edge}:news 0-0",
                "'xread' of 'limiter:{edge}:news': add '~limiter:{edge}:* +xread'",
            ),
            (
                "HSCAN limiter:{edge}:bans 0",
                "'hscan' of 'limiter:{edge}:bans': add '~limiter:{edge}:* +hscan'",
            ),
            ("SCRIPT LOAD 1", "'script|load': add '+script|load'"),
            ("MULTI", "'multi': add '+multi'"),
        ] {
            let mut words = words.split(' ');
            let mut command = cmd(words.next().unwrap());
            command.arg(words.collect::<Vec<_>>());
            let expected = format!("its user has no right to {expected} to its ACL");
            assert_eq!(StoreError::denied(&command).to_string(), expected);
        }
    }
}
