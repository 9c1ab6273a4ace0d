//! Errors of a connected store.

use redis::{Arg, Cmd};
use thiserror::Error;

/// The most characters of a server's text.
const MOST_TEXT: usize = 300;

/// Why the store has not executed a command.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store's reason, or the store cannot be reached: one line of visible text.
    #[error("{0}")]
    Store(String),
    /// The ACL user lacks a right.
    #[error("{0}")]
    Denied(MissingRight),
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

/// Returns a server's text as one bounded line without characters that act: it may contain anything.
pub(crate) fn visible(text: &str) -> String {
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

impl From<redis::ParsingError> for StoreError {
    fn from(_: redis::ParsingError) -> Self {
        Self::Response
    }
}

/// A right that the ACL user lacks, and the rule to add.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum MissingRight {
    /// A command without a key.
    #[error("its user has no right to '{0}': add '+{0}' to its ACL")]
    Command(String),
    /// A command on a key, or the key itself.
    #[error("its user has no right to '{command}' of '{key}': add '~{keys} +{command}' to its ACL")]
    Key {
        /// The command.
        command: String,
        /// The key.
        key: String,
        /// The pattern of all keys of that kind.
        keys: String,
    },
}

impl MissingRight {
    pub(crate) fn of(command: &Cmd) -> Self {
        let mut words = command.args_iter().map(|word| match word {
            Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
            _ => String::new(),
        });
        let mut command = words.next().unwrap_or_default().to_lowercase();
        if command == "script" {
            // Of `SCRIPT LOAD`: a right of its own.
            command = format!(
                "{command}|{}",
                words.next().unwrap_or_default().to_lowercase()
            );
        }
        // The arguments of `XREAD` begin with its options.
        let Some(key) = words.find(|word| word.starts_with("limiter:")) else {
            return Self::Command(command);
        };
        let keys = format!("{}*", &key[..key.rfind(':').map_or(0, |colon| colon + 1)]);
        Self::Key { command, key, keys }
    }
}

#[cfg(test)]
mod tests {
    use redis::cmd;

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
    fn what_is_to_be_added_is_reported() {
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(1).arg("STREAMS");
        read.arg("limiter:{edge}:news").arg("0-0");
        assert_eq!(
            MissingRight::of(&read).to_string(),
            "its user has no right to 'xread' of 'limiter:{edge}:news': add '~limiter:{edge}:* +xread' to its ACL"
        );
        let mut load = cmd("SCRIPT");
        load.arg("LOAD").arg("return 1");
        assert_eq!(
            MissingRight::of(&load).to_string(),
            "its user has no right to 'script|load': add '+script|load' to its ACL"
        );
        let mut scan = cmd("HSCAN");
        scan.arg("limiter:{edge}:bans").arg(0);
        assert_eq!(
            MissingRight::of(&scan).to_string(),
            "its user has no right to 'hscan' of 'limiter:{edge}:bans': add '~limiter:{edge}:* +hscan' to its ACL"
        );
        assert_eq!(
            MissingRight::of(&cmd("MULTI")).to_string(),
            "its user has no right to 'multi': add '+multi' to its ACL"
        );
    }
}
