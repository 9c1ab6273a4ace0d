//! Converts between owners in messages and keys of buckets. An owner from another node must fit the limit
//! first.

use limiter_common::{
    address::{Address, Family},
    key::BucketKey,
    limit::{IdFormat, NamedBy},
};
use limiter_fleet::Owner;
use limiter_policy::policy::Limit;

/// Returns the owner of a bucket, as messages name it.
pub(super) fn owner_of(key: &BucketKey) -> Owner {
    let (kind, halves) = key.key_words();
    let mut id = [0; 16];
    let bytes = halves.into_iter().flat_map(u64::to_be_bytes);
    for (to, byte) in id.iter_mut().zip(bytes) {
        *to = byte;
    }
    Owner {
        kind: u32::try_from(kind).unwrap_or_default(),
        id,
    }
}

/// Returns the bucket of an owner in a limit; `None`: the limit cannot have that owner.
pub(super) fn key_of(limit: &Limit, owner: &Owner) -> Option<BucketKey> {
    // A candidate that packets could produce, and that encodes to the same bytes, is the right one.
    let mut candidates = candidates(limit, owner).into_iter().flatten();
    candidates.find(|key| owner_of(key) == *owner)
}

fn candidates(limit: &Limit, owner: &Owner) -> [Option<BucketKey>; 2] {
    let [high, low] = halves(owner);
    let addresses = [
        Address::v4([high[0], high[1], high[2], high[3]]),
        Address::v6(high, low),
    ];
    let [first, second] = [high, low].map(u64::from_be_bytes);
    let number = |of: NamedBy| {
        let number = if of.name_kind().is_some() {
            second
        } else {
            first
        };
        BucketKey::of_number(limit.id, of, number)
    };
    let key = match limit.id_format {
        IdFormat::IpAddress | IdFormat::Ipv4RangeCidr { .. } | IdFormat::Ipv6RangeCidr { .. } => {
            let families = [Family::V4, Family::V6].into_iter().zip(addresses);
            let mut keys = families.map(|(family, address)| {
                let length = limit.prefix_length(family)?;
                Some(BucketKey::of_source(limit.id, address, length))
            });
            return [keys.next().flatten(), keys.next().flatten()]
                .map(|key| key.map(|key| named(limit, key, second)));
        }
        IdFormat::Destination => {
            return addresses.map(|address| Some(BucketKey::of_destination(limit.id, address)));
        }
        IdFormat::RegId => named(limit, number(NamedBy::Subscriber), second),
        IdFormat::Zone => number(NamedBy::Zone),
        IdFormat::Domain => number(NamedBy::Domain),
        IdFormat::Question => number(NamedBy::Question),
        IdFormat::ServerName => number(NamedBy::ServerName),
        IdFormat::Total => BucketKey::of_host(limit.id),
    };
    [Some(key), None]
}

/// Adds the name to the bucket's key, if the limit has names besides owners.
fn named(limit: &Limit, key: BucketKey, name: u64) -> BucketKey {
    match limit.per_name {
        Some(name_kind) => key.with_name(name_kind, name),
        None => key,
    }
}

fn halves(owner: &Owner) -> [[u8; 8]; 2] {
    let mut halves = [[0; 8]; 2];
    for (half, bytes) in halves.iter_mut().zip(owner.id.chunks(8)) {
        half.copy_from_slice(bytes);
    }
    halves
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::{BUILT_IN, LimitId, NameKind};

    use super::*;

    fn limit(id_format: IdFormat, per_name: Option<NameKind>) -> Limit {
        Limit {
            id: LimitId(32),
            id_format,
            per_name,
            ..Limit::of_built_in(&BUILT_IN[0], None)
        }
    }

    #[test]
    fn only_owners_of_the_limit_are_known() {
        let id = LimitId(32);
        let v4 = Address::v4([192, 0, 2, 77]);
        let v6 = Address::v6([0x20, 1, 0xd, 0xb8, 0, 0, 0, 7], [1; 8]);
        let address = |address, length| BucketKey::of_source(id, address, length);
        let zone = Some(NameKind::Zone);
        let all = [
            (
                limit(IdFormat::IpAddress, None),
                vec![address(v4, 32), address(v6, 128)],
            ),
            (
                limit(IdFormat::Ipv4RangeCidr { prefix_length: 24 }, None),
                vec![address(v4, 24)],
            ),
            (
                limit(IdFormat::Ipv6RangeCidr { prefix_length: 48 }, None),
                vec![address(v6, 48)],
            ),
            (
                limit(IdFormat::IpAddress, zone),
                vec![
                    address(v4, 32).with_name(NameKind::Zone, 9),
                    address(v6, 64).with_name(NameKind::Zone, 9),
                ],
            ),
            (
                limit(IdFormat::RegId, None),
                vec![BucketKey::of_subscriber(id, u64::MAX)],
            ),
            (
                limit(IdFormat::RegId, zone),
                vec![BucketKey::of_subscriber(id, 1).with_name(NameKind::Zone, 2)],
            ),
            (
                limit(IdFormat::IpAddress, Some(NameKind::Domain)),
                vec![
                    address(v4, 32).with_name(NameKind::Domain, u64::MAX),
                    address(v6, 64).with_name(NameKind::Domain, u64::MAX),
                ],
            ),
            (
                limit(IdFormat::Domain, None),
                vec![BucketKey::of_number(id, NamedBy::Domain, u64::MAX)],
            ),
            (
                limit(IdFormat::Question, None),
                vec![BucketKey::of_number(id, NamedBy::Question, 5)],
            ),
            (
                limit(IdFormat::Destination, None),
                vec![
                    BucketKey::of_destination(id, v4),
                    BucketKey::of_destination(id, v6),
                ],
            ),
            (
                limit(IdFormat::Zone, None),
                vec![BucketKey::of_number(id, NamedBy::Zone, 5)],
            ),
            (
                limit(IdFormat::ServerName, None),
                vec![BucketKey::of_number(id, NamedBy::ServerName, 5)],
            ),
            (limit(IdFormat::Total, None), vec![BucketKey::of_host(id)]),
        ];
        for (position, (limit, _)) in all.iter().enumerate() {
            for (other, (_, keys)) in all.iter().enumerate() {
                for key in keys {
                    let found = key_of(limit, &owner_of(key));
                    assert_eq!(
                        found,
                        (position == other).then_some(*key),
                        "{position} {other}"
                    );
                }
            }
        }
        // Set bits that are clear in every owner of a packet.
        let range = &all[1].0;
        let mut owner = owner_of(&address(v4, 24));
        owner.id[3] = 1;
        assert_eq!(key_of(range, &owner), None);
        owner.id[3] = 0;
        owner.id[15] = 1;
        assert_eq!(key_of(range, &owner), None);
        let total = Owner {
            id: [1; 16],
            ..owner_of(&BucketKey::of_host(id))
        };
        let of_all = &all[all.len() - 1].0;
        assert_eq!(key_of(of_all, &total), None);
    }
}
