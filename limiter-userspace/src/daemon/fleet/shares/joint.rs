//! A shared limit: the fleet divides its budgets.

use limiter_common::{
    address::Family,
    key::BucketKey,
    limit::{Cost, IdFormat},
    strategy::gcra::Parts,
};
use limiter_fleet::{Budget, LimitName, Owner};
use limiter_policy::policy::{Limit, Mode, Rate};

use super::owner::{key_of, owner_of};

/// How long an error is reported, in nanoseconds: longer than starting again takes.
const ERROR_NS: u64 = 5_000_000_000;

/// About the size of a packet in heavy traffic.
const BYTES_OF_A_PACKET: u64 = 500;

/// A shared limit.
pub(super) struct Joint {
    pub(super) limit: Limit,
    pub(super) rate: Rate,
    pub(super) name: LimitName,
    /// The earliest start of this node's part: by then, all loans of its earlier start are over.
    pub(super) begins_ns: u64,
    /// Whether the programs have the home share for all unknown owners.
    pub(super) has_begun: bool,
    /// The last error, and its time, in nanoseconds.
    error: Option<(String, u64)>,
}

impl Joint {
    /// Returns the limit if it is shared among so many nodes. `names`: the fingerprint of the keys that
    /// number names.
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

    /// Returns whether it is the same limit with the same budgets.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.limit.id == other.limit.id
    }

    pub(super) fn record(&mut self, error: &str, now_ns: u64) {
        self.error = Some((error.to_owned(), now_ns));
    }

    /// Returns the last error, if recent.
    pub(super) fn error(&self, now_ns: u64) -> Option<String> {
        let error = self.error.as_ref();
        let error = error.filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) < ERROR_NS);
        error.map(|(error, _)| error.clone())
    }

    /// Returns the budget of a bucket.
    pub(super) fn budget_of(&self, key: &BucketKey) -> Budget {
        Budget {
            limit: self.name,
            owner: owner_of(key),
        }
    }

    /// Returns the bucket of an owner; `None`: the limit cannot have that owner.
    pub(super) fn key_of(&self, owner: &Owner) -> Option<BucketKey> {
        key_of(&self.limit, owner)
    }

    /// Returns the approximate demand of a packet, in tokens.
    pub(super) const fn tokens_of_a_packet(&self) -> u64 {
        if matches!(self.limit.cost, Cost::Bytes) {
            BYTES_OF_A_PACKET
        } else {
            1
        }
    }

    /// Returns the only owner of the limit, which is always hot; `None`: the limit has many.
    pub(super) fn only_owner(&self) -> Option<BucketKey> {
        (self.limit.id_format == IdFormat::Total).then(|| BucketKey::of_host(self.limit.id))
    }

    /// Returns a share of the default rate.
    pub(super) const fn of_share(&self, parts: Parts) -> Rate {
        self.rate.of_share(parts)
    }
}

/// Returns the terms of a limit that all nodes must have in common: different terms make different budgets.
/// With different numbers of names, one number would mean different names.
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
