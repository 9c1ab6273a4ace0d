//! A limit of which the fleet has the budgets in common.

use limiter_common::{
    address::Family,
    limit::{Cost, IdFormat},
    owner::BucketKey,
    strategy::gcra::Parts,
};
use limiter_fleet::{Budget, LimitName, Owner};
use limiter_policy::policy::{Limit, Mode, Rate};

use super::owner::{key_of, owner_of};

/// How long it is told that something went wrong, in nanoseconds: longer than it takes to begin anew.
const ERROR_NS: u64 = 5_000_000_000;

/// About as many as packets have where many come.
const BYTES_OF_A_PACKET: u64 = 500;

/// A limit in common.
pub(super) struct Joint {
    pub(super) limit: Limit,
    pub(super) rate: Rate,
    pub(super) name: LimitName,
    /// From when on this node takes part: all that an earlier start may have lent or borrowed is over.
    pub(super) begins_ns: u64,
    /// Whether owners of which nothing is known have what they have at home.
    pub(super) has_begun: bool,
    /// The last error with it, and when that was, in nanoseconds.
    error: Option<(String, u64)>,
}

impl Joint {
    /// Returns what is in common among so many nodes, which number names with that fingerprint; `None`: nothing is.
    pub(super) fn of(limit: &Limit, nodes: u32, names: u64, begins_ns: u64) -> Option<Self> {
        if limit.fleet_nodes != Some(nodes) || limit.mode == Mode::Off {
            return None;
        }
        Some(Self {
            rate: limit.default?,
            name: LimitName::of(&terms(limit, names)),
            limit: limit.clone(),
            begins_ns,
            has_begun: false,
            error: None,
        })
    }

    /// Returns whether it is the same limit, with the same budgets.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.limit.id == other.limit.id
    }

    /// Notes that something went wrong.
    pub(super) fn note(&mut self, error: &str, now_ns: u64) {
        self.error = Some((error.to_owned(), now_ns));
    }

    /// Returns what went wrong with it lately.
    pub(super) fn error(&self, now_ns: u64) -> Option<String> {
        let error = self.error.as_ref();
        let error = error.filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) < ERROR_NS);
        error.map(|(error, _)| error.clone())
    }

    /// Returns the name of a bucket's budget.
    pub(super) fn budget_of(&self, key: &BucketKey) -> Budget {
        Budget {
            limit: self.name,
            owner: owner_of(key),
        }
    }

    /// Returns an owner's bucket; `None`: the limit has no such owner.
    pub(super) fn key_of(&self, owner: &Owner) -> Option<BucketKey> {
        key_of(&self.limit, owner)
    }

    /// Returns how many tokens a packet wants, about.
    pub(super) const fn tokens_of_a_packet(&self) -> u64 {
        if matches!(self.limit.cost, Cost::Bytes) {
            BYTES_OF_A_PACKET
        } else {
            1
        }
    }

    /// Returns the owner that is always hot, as it is the only one; `None`: there are many.
    pub(super) fn only_owner(&self) -> Option<BucketKey> {
        (self.limit.id_format == IdFormat::Total).then(|| BucketKey::of_host(self.limit.id))
    }

    /// Returns the terms of a share of the rate of ids without an override.
    pub(super) const fn of_share(&self, parts: Parts) -> Rate {
        self.rate.of_share(parts)
    }
}

/// Returns the terms of a limit that all nodes must have alike, or they have no budgets in common: other terms
/// are other budgets. Where names are numbered otherwise, others have the same number.
fn terms(limit: &Limit, names: u64) -> Vec<u8> {
    let id = (limit.id_format.name(), limit.per_name, limit.cost.name());
    let lengths = [Family::V4, Family::V6].map(|family| limit.prefix_length(family));
    let overrides = limit.overrides.iter().map(|one| (&one.id, &one.rate));
    let overrides: Vec<_> = overrides.collect();
    let terms = (&limit.name, id, lengths, &limit.default, overrides);
    let mut terms = serde_json::to_vec(&terms).expect("memory takes all terms");
    if limit.needs_names_alike() {
        terms.extend(names.to_be_bytes());
    }
    terms
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::{BUILT_IN, NameKind};

    use super::*;

    #[test]
    fn names_that_are_numbered_otherwise_are_other_owners() {
        let name = |id_format, per_name, names| {
            let limit = Limit {
                id_format,
                per_name,
                fleet_nodes: Some(2),
                ..Limit::of_built_in(&BUILT_IN[0], None)
            };
            LimitName::of(&terms(&limit, names))
        };
        let address = IdFormat::IpAddress;
        for (id_format, per_name, is_same) in [
            (address, None, true),
            (IdFormat::Zone, None, true),
            (IdFormat::ServerName, None, true),
            (address, Some(NameKind::Zone), true),
            (IdFormat::Domain, None, false),
            (IdFormat::Question, None, false),
            (address, Some(NameKind::Domain), false),
            (IdFormat::RegId, Some(NameKind::Question), false),
        ] {
            let of = |names| name(id_format, per_name, names);
            assert_eq!(of(1), of(1));
            assert_eq!(of(1) == of(2), is_same, "{id_format:?} {per_name:?}");
        }
    }
}
