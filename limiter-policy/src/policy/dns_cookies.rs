//! The DNS cookies that prove sources.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{Limit, Policy};

/// The DNS cookies that prove sources. The secrets are only in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsCookies {
    /// The file with the server's secrets.
    pub secret_file: PathBuf,
    /// The UDP port of the server.
    pub port: u16,
}

impl DnsCookies {
    /// The port without a setting.
    pub const DEFAULT_PORT: u16 = 53;
}

/// Formats the section as in a configuration file.
impl fmt::Display for DnsCookies {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { secret_file, port } = self;
        write!(
            formatter,
            "{{secret-file: {}, port: {port}}}",
            secret_file.display()
        )
    }
}

impl Policy {
    /// Returns the DNS cookies that prove sources; `None`: cookies prove none, or no limit has a reserve.
    #[must_use]
    pub fn dns_cookies_in_use(&self) -> Option<&DnsCookies> {
        let mut limits = self.limits.iter();
        let reserves = limits.any(Limit::reserves);
        self.dns_cookies.as_ref().filter(|_| reserves)
    }

    /// Returns the file with the secrets of these cookies.
    #[must_use]
    pub fn secret_file(&self) -> Option<&Path> {
        self.dns_cookies_in_use()
            .map(|cookies| &*cookies.secret_file)
    }
}
