//! A limit whose budgets the fleet divides.

use limiter_common::{
    address::Family,
    key::BucketKey,
    limit::{Cost, IdFormat},
};
use limiter_fleet::lease::LimitName;
use limiter_policy::policy::{Limit, Mode, Rate};

/// How long an error is reported, in nanoseconds: longer than beginning again takes.
const ERROR_NS: u64 = 5_000_000_000;

/// About the size of a packet in heavy traffic.
const BYTES_OF_A_PACKET: u64 = 500;

/// A key's name in the store: its limit's name, its kind and its id, all in network byte order.
pub(super) type KeyName = [u8; 36];

/// A shared limit.
pub(super) struct SharedLimit {
    pub(super) limit: Limit,
    pub(super) rate: Rate,
    pub(super) name: LimitName,
    /// The most nodes.
    pub(super) nodes: u32,
    /// The last error, and its time, in nanoseconds.
    error: Option<(String, u64)>,
}

impl SharedLimit {
    /// Returns the limit if it is shared. `names`: the fingerprint of the keys that number names.
    pub(super) fn of(limit: &Limit, names: u64) -> Option<Self> {
        let nodes = limit.fleet_nodes.filter(|_| limit.mode != Mode::Off)?;
        Some(Self {
            rate: limit.default?,
            name: LimitName::of(&terms(limit, names)),
            limit: limit.clone(),
            nodes,
            error: None,
        })
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

    /// Returns the name of a bucket's key.
    pub(super) fn name_of(&self, key: &BucketKey) -> KeyName {
        let (kind, [high, low]) = key.key_words();
        let mut name = [0; 36];
        name[..16].copy_from_slice(&self.name.0);
        // A kind fits 32 bits.
        name[16..20].copy_from_slice(&kind.to_be_bytes()[4..]);
        name[20..28].copy_from_slice(&high.to_be_bytes());
        name[28..].copy_from_slice(&low.to_be_bytes());
        name
    }

    /// Returns the approximate demand of a packet, in tokens.
    pub(super) const fn tokens_of_a_packet(&self) -> u64 {
        if matches!(self.limit.cost, Cost::Bytes) {
            BYTES_OF_A_PACKET
        } else {
            1
        }
    }

    /// Returns the only key of the limit, which is always active; `None`: the limit has many.
    pub(super) fn only_key(&self) -> Option<BucketKey> {
        (self.limit.id_format == IdFormat::Total).then(|| BucketKey::of_host(self.limit.id))
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
    fn names_that_are_numbered_otherwise_are_other_keys() {
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
