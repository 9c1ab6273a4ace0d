//! Parses what several commands are given.

use ipnet::IpNet;
use limiter_policy::prefix::Written;

/// Parses an address or a prefix.
pub(super) fn prefix(text: &str) -> Result<IpNet, String> {
    const EXPECTED: &str = "an address or a prefix, such as 192.0.2.1 or 2001:db8::/48";
    let prefix = Written::parse(text).and_then(Written::prefix);
    prefix.map_err(|error| error.why(EXPECTED))
}
