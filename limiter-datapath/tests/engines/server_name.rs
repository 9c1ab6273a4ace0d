//! Whether a limit counts a connection by its server name, stated plainly.

use limiter_common::limit::IdFormat;
use limiter_policy::policy::{DnsName, Limit, Policy};

/// The known name of a connection.
pub(crate) enum ConnectionName {
    /// Not known yet.
    Nothing,
    /// Known to have no name.
    Nameless,
    /// A known name.
    Name(DnsName),
}

impl ConnectionName {
    /// The name, if it is known.
    pub(crate) const fn name(&self) -> Option<&DnsName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Nothing | Self::Nameless => None,
        }
    }
}

/// Whether a limit counts segments of a connection with that name, as far as names matter to the limit.
pub(crate) fn counts(policy: &Policy, limit: &Limit, known: &ConnectionName) -> bool {
    if !limit.counts_by_server_name() {
        return true;
    }
    let patterns = &limit.matching.server_names;
    match known {
        ConnectionName::Nothing => false,
        // Only the pattern `'*'` covers it, and no key does.
        ConnectionName::Nameless => {
            let mut below = patterns.iter().filter(|pattern| pattern.below);
            limit.id_format != IdFormat::ServerName
                && below.any(|pattern| pattern.name == DnsName::default())
        }
        ConnectionName::Name(name) => {
            let is_wanted = patterns.iter().any(|pattern| {
                let is_it = pattern.name == *name;
                if pattern.below {
                    !is_it && is_in(name, &pattern.name)
                } else {
                    is_it
                }
            });
            (patterns.is_empty() || is_wanted)
                && (limit.id_format != IdFormat::ServerName || key(policy, name).is_some())
        }
    }
}

/// The longest name of the section `server-names` that a name equals or is below.
pub(crate) fn key<'p>(policy: &'p Policy, name: &DnsName) -> Option<&'p DnsName> {
    let keys = policy.server_names.iter().filter(|one| is_in(name, one));
    keys.max_by_key(|one| one.to_string().len())
}

/// Whether a name equals another one or is below it.
fn is_in(name: &DnsName, other: &DnsName) -> bool {
    let (name, other) = (name.to_string(), other.to_string());
    name == other || other == "." || name.ends_with(&format!(".{other}"))
}
