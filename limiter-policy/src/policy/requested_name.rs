//! The names that packets ask for, and that limits count by.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{DnsName, Question};

/// A name that packets may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedName {
    /// The question of DNS queries.
    Question(Question),
    /// The name of the server, at the beginning of a connection.
    ServerName(DnsName),
}

impl RequestedName {
    /// Returns the question; `None`: a server name.
    #[must_use]
    pub const fn question(&self) -> Option<&Question> {
        match self {
            Self::Question(question) => Some(question),
            Self::ServerName(_) => None,
        }
    }
}

impl fmt::Display for RequestedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question(question) => question.fmt(formatter),
            Self::ServerName(name) => name.fmt(formatter),
        }
    }
}
