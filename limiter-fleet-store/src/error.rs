//! Errors of a connected store.

use redis::{Arg, Cmd};
use thiserror::Error;

/// Why the store has not executed a command.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The store's reason, or the store cannot be reached.
    #[error("{}", one_line(.0))]
    Store(String),
    /// The ACL user lacks a right.
    #[error("{0}")]
    Denied(Denied),
    /// The response has an unexpected form.
    #[error("its response has an unexpected form")]
    Response,
}

/// Returns a server's text without control characters: it may contain anything.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

impl From<redis::ParsingError> for StoreError {
    fn from(_: redis::ParsingError) -> Self {
        Self::Response
    }
}

/// A right that the ACL user lacks, and the rule to add.
#[derive(Debug, PartialEq, Eq, Error)]
pub enum Denied {
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

impl Denied {
    pub(crate) fn of(command: &Cmd) -> Self {
        let mut words = command.args_iter().map(|word| match word {
            Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
            _ => String::new(),
        });
        let command = words.next().unwrap_or_default().to_lowercase();
        // The arguments of `XREAD` begin with its options.
        let Some(key) = words.find(|word| word.starts_with("limiter:")) else {
            return Self::Command(command);
        };
        let (kind, one) = key.split_at(key.rfind(':').map_or(0, |colon| colon + 1));
        let end = if one.ends_with('}') { "}" } else { "" };
        let keys = format!("{kind}*{end}");
        Self::Key { command, key, keys }
    }
}

#[cfg(test)]
mod tests {
    use redis::cmd;

    use super::*;
    use crate::ConnectError;

    #[test]
    fn any_response_of_a_server_is_one_line() {
        let text = || "ERR a\n<0>b\u{1b}[2J\u{9b}c".to_owned();
        let shown = "ERR a <0>b [2J c";
        assert_eq!(StoreError::Store(text()).to_string(), shown);
        assert_eq!(ConnectError::Refused(text()).to_string(), shown);
        assert_eq!(
            ConnectError::from(StoreError::Store(text())).to_string(),
            shown
        );
    }

    #[test]
    fn what_is_to_be_added_is_reported() {
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(1).arg("STREAMS");
        read.arg("limiter:letters:{edge:a}").arg("0-0");
        assert_eq!(
            Denied::of(&read).to_string(),
            "its user has no right to 'xread' of 'limiter:letters:{edge:a}': add '~limiter:letters:{edge:*} +xread' to \
             its ACL"
        );
        let mut scan = cmd("HSCAN");
        scan.arg("limiter:{edge}:bans").arg(0);
        assert_eq!(
            Denied::of(&scan).to_string(),
            "its user has no right to 'hscan' of 'limiter:{edge}:bans': add '~limiter:{edge}:* +hscan' to its ACL"
        );
        assert_eq!(
            Denied::of(&cmd("MULTI")).to_string(),
            "its user has no right to 'multi': add '+multi' to its ACL"
        );
    }
}
