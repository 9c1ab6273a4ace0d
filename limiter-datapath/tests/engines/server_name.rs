//! Whether a limit counts a connection by its server name, stated plainly.

use limiter_common::limit::IdFormat;
use limiter_policy::policy::{DnsName, Limit, Policy};

/// The knowledge of a connection's name.
pub(crate) enum Known {
    /// Nothing.
    Nothing,
    /// That it has none.
    Nameless,
    /// Its name.
    Name(DnsName),
}

impl Known {
    /// Returns the name, if it is known.
    pub(crate) const fn name(&self) -> Option<&DnsName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Nothing | Self::Nameless => None,
        }
    }
}

/// Returns whether a limit counts segments of a connection of whose name that is known, as far as that matters to
/// it.
pub(crate) fn counts(policy: &Policy, limit: &Limit, known: &Known) -> bool {
    if !limit.counts_by_server_name() {
        return true;
    }
    let patterns = &limit.matching.server_names;
    match known {
        Known::Nothing => false,
        // Only `'*'` is for it, and no owner is.
        Known::Nameless => {
            let mut below = patterns.iter().filter(|pattern| pattern.below);
            limit.id_format != IdFormat::ServerName
                && below.any(|pattern| pattern.name == DnsName::default())
        }
        Known::Name(name) => {
            let is_wanted = patterns.iter().any(|pattern| {
                let is_it = pattern.name == *name;
                if pattern.below {
                    !is_it && is_in(name, &pattern.name)
                } else {
                    is_it
                }
            });
            (patterns.is_empty() || is_wanted)
                && (limit.id_format != IdFormat::ServerName || owner(policy, name).is_some())
        }
    }
}

/// Returns the longest name of the section `server-names` that a name is or is below.
pub(crate) fn owner<'p>(policy: &'p Policy, name: &DnsName) -> Option<&'p DnsName> {
    let owners = policy.server_names.iter().filter(|one| is_in(name, one));
    owners.max_by_key(|one| one.to_string().len())
}

/// Returns whether a name is another one or below it.
fn is_in(name: &DnsName, other: &DnsName) -> bool {
    let (name, other) = (name.to_string(), other.to_string());
    name == other || other == "." || name.ends_with(&format!(".{other}"))
}
