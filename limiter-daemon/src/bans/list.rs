//! Lists bans for requests.

use std::{net::IpAddr, time::Duration};

use ipnet::IpNet;
use jiff::{SignedDuration, Timestamp};
use limiter_common::{
    address::Address,
    ban::{Ban, BanKey, FOREVER, Hits, LENGTH_WORDS},
    limit::LimitId,
};
use limiter_datapath::kernel::{
    BanMaps, Datapath, DatapathError, SourceMaps, monotonic_now, wall_clock_now,
};
use limiter_policy::policy::{
    Names, Policy,
    bans::{MOST_ORIGINS, Origin, prefix_of},
};
use limiter_protocol::bans::{BanStatus, BansPage, BansQuery};

use crate::listed::list_of_all;

/// Returns a page of the bans that hold.
pub(crate) fn page(datapath: &Datapath, query: &BansQuery) -> Result<BansPage, DatapathError> {
    let capacity = datapath.settings().bans.capacity;
    let mut some = Vec::new();
    let next = match datapath.source_maps() {
        Some(maps) => maps.bans().read_some(query.position, &mut some)?,
        None => None,
    };
    let describer = BanDescriber::new(datapath);
    let is_meant = |prefix: &IpNet, ban: &Ban| {
        let (network, origin) = (query.prefix.as_ref(), query.origin.as_ref());
        network.is_none_or(|network| network.contains(prefix) || prefix.contains(network))
            && origin.is_none_or(|origin| origin.has_made(ban))
    };
    let reported = some.iter().filter_map(|(key, ban)| {
        let prefix = prefix_of(key);
        (is_meant(&prefix, ban) && ban.holds(describer.now_ns))
            .then(|| describer.describe(prefix, ban, prefix))
    });
    Ok(BansPage {
        capacity,
        bans: reported.collect::<Result<_, _>>()?,
        next,
    })
}

/// Returns the bans that contain an address: the widest first, and for one prefix the longest first.
pub(crate) fn of_address(
    datapath: &Datapath,
    address: IpAddr,
) -> Result<Vec<BanStatus>, DatapathError> {
    let Some(maps) = datapath.source_maps() else {
        return Ok(Vec::new());
    };
    let describer = BanDescriber::new(datapath);
    let bans = covering(maps.bans(), address.into(), describer.now_ns)?;
    let reported = bans
        .iter()
        .map(|(prefix, ban)| describer.describe(*prefix, ban, address.into()));
    reported.collect()
}

/// Counts the bans that hold, by family. Reads all of them.
pub(crate) fn count(datapath: &Datapath) -> Result<[u32; 2], DatapathError> {
    let mut count = [0; 2];
    let Some(maps) = datapath.source_maps() else {
        return Ok(count);
    };
    let now_ns = monotonic_now();
    let mut some = Vec::new();
    let mut position = None;
    loop {
        position = maps.bans().read_some(position, &mut some)?;
        for (key, ban) in some.drain(..) {
            count[key.address().family.index()] += u32::from(ban.holds(now_ns));
        }
        if position.is_none() {
            return Ok(count);
        }
    }
}

/// Returns the bans on a prefix and its supernets that hold at `now_ns`: the widest first, and for one prefix the
/// longest first.
pub(super) fn covering(
    maps: &BanMaps,
    prefix: IpNet,
    now_ns: u64,
) -> Result<Vec<(IpNet, Ban)>, DatapathError> {
    let lengths = maps.lengths()?;
    let address = Address::from(prefix.addr());
    let mut bans = Vec::new();
    for length in 1..=prefix.prefix_len() {
        let key = BanKey::new(&address, length);
        if !is_among(lengths, &key) {
            continue;
        }
        for position in (0..).take(MOST_ORIGINS) {
            let Some(ban) = maps.get(&key.at(position))? else {
                break;
            };
            if ban.holds(now_ns) {
                bans.push((prefix_of(&key), ban));
            }
        }
    }
    Ok(bans)
}

/// Returns the list that excludes all of a prefix, so that no ban drops any of its packets.
pub(super) fn excluded_by(policy: &Policy, prefix: IpNet) -> Option<String> {
    list_of_all(policy, &policy.exclude, prefix)
}

const fn is_among(lengths: [u64; LENGTH_WORDS as usize], key: &BanKey) -> bool {
    let (word, bit) = key.length_bit();
    lengths[word as usize] & bit != 0
}

/// Describes bans for responses.
struct BanDescriber<'d> {
    policy: &'d Policy,
    names: &'d Names,
    maps: Option<&'d BanMaps>,
    now_ns: u64,
    now: Timestamp,
}

impl<'d> BanDescriber<'d> {
    fn new(datapath: &'d Datapath) -> Self {
        Self {
            policy: &datapath.manifest().policy,
            names: &datapath.manifest().names,
            maps: datapath.source_maps().map(SourceMaps::bans),
            now_ns: monotonic_now(),
            now: wall_clock_now(),
        }
    }

    /// Describes a ban to a client that asked about `asked`.
    fn describe(&self, prefix: IpNet, ban: &Ban, asked: IpNet) -> Result<BanStatus, DatapathError> {
        let left_ns = ban.until_ns.saturating_sub(self.now_ns);
        let ends_in_ns = (ban.until_ns != FOREVER).then_some(left_ns);
        let ago = nanoseconds(self.now_ns.wrapping_sub(ban.since_ns));
        let hits = match self.maps {
            Some(maps) => maps.hits(&key(prefix))?,
            None => Hits::default(),
        };
        Ok(BanStatus {
            prefix,
            origin: Origin::of(ban),
            limit: ban.is_automatic().then(|| {
                // The policy may no longer have the limit; its name is known until another limit takes the id.
                match self.names.name(LimitId(ban.limit)) {
                    Some(name) => name.to_owned(),
                    None if ban.limit == Ban::ELSEWHERE => "a limit of another node".to_owned(),
                    None => format!("limit {}", ban.limit),
                }
            }),
            reason: String::from_utf8_lossy(ban.text.reason()).into_owned(),
            since: self.now.saturating_sub(ago).unwrap_or(self.now),
            until: ends_in_ns.and_then(|ns| self.now.checked_add(nanoseconds(ns)).ok()),
            ends_in_ns,
            times: ban.times,
            hits: hits.packets,
            hit_bytes: hits.bytes,
            excluded_by: excluded_by(self.policy, asked),
        })
    }
}

/// Returns the key of the first ban of a prefix, under which its hits are counted.
fn key(prefix: IpNet) -> BanKey {
    BanKey::new(&Address::from(prefix.addr()), prefix.prefix_len())
}

fn nanoseconds(ns: u64) -> SignedDuration {
    SignedDuration::try_from(Duration::from_nanos(ns)).unwrap_or(SignedDuration::MAX)
}
