//! The shares of shared limits, their buckets, and the tokens that move when a share changes.
//!
//! A changed share leaves a bucket as full as it was ([`Parts`]), so the number of tokens changes: a larger share
//! creates tokens, a smaller one removes them. The created ones are charged, but for the tokens that come with a share.

use ipnet::IpNet;
use limiter_common::{
    address::Address,
    dns::slot_of,
    key::{BucketKey, Key},
    limit::{KeyPart, NameKind},
    name_hash::hash_of_name,
    packet::NameMatch,
    policy::{LimitEntry, classify, rate_index, with_overrides},
    strategy::{
        Parameters,
        gcra::{KeyShare, Parts},
    },
};

use super::{
    BucketMaps, Datapath, DatapathError, SourceMaps, grace::wait_for_running_programs,
    monotonic_now,
};

/// An address of no host. Stands for any source where sources do not matter.
const UNNAMED: Address = Address::v4([0; 4]);

/// The shares of shared limits in force.
#[derive(Clone, Copy)]
pub struct Shares<'d> {
    datapath: &'d Datapath,
    maps: &'d SourceMaps,
}

/// The bucket of a key under a shared limit.
pub struct MovingBucket<'d> {
    shares: Shares<'d>,
    key: BucketKey,
    /// The parameters of the whole budget.
    parameters: &'d Parameters,
    /// `None`: no packet was ever charged.
    buckets: Option<&'d BucketMaps>,
}

impl Datapath {
    /// The shares in force; `None`: no interface is limited yet.
    #[must_use]
    pub fn shares(&self) -> Option<Shares<'_>> {
        Some(Shares {
            datapath: self,
            maps: self.source_maps()?,
        })
    }
}

impl<'d> Shares<'d> {
    /// Drains up to `most` keys with refused packets and no share of their own, most refused first. Forgets the other
    /// keys until more of their packets are refused.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn wanting(&self, most: usize) -> Result<Vec<BucketKey>, DatapathError> {
        let wanting = self.maps.key_shares().take_wanting()?;
        let buckets = wanting.into_iter().map(|(bucket, _)| bucket);
        Ok(buckets.take(most).collect())
    }

    /// Calls `show` for each key with its own share, including keys of limits that are no longer shared. Do not set,
    /// take or look up shares meanwhile.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn each_key_share(
        &self,
        mut show: impl FnMut(&BucketKey, KeyShare),
    ) -> Result<(), DatapathError> {
        (self.maps.key_shares()).each(|_, key, share| show(key, share))
    }

    /// Sets keys' own shares; ignores the field `wanted`. Running programs may still see an old share, or one old
    /// word of it.
    ///
    /// # Errors
    ///
    /// There is no room for all, or the kernel refuses: some are set.
    pub fn set_key_shares(&self, shares: &[(BucketKey, KeyShare)]) -> Result<(), DatapathError> {
        self.maps.key_shares().set(shares)
    }

    /// Takes keys' own shares, and returns once no program uses them.
    ///
    /// # Errors
    ///
    /// The kernel refuses: some are taken.
    pub fn remove_key_shares(&self, buckets: &[BucketKey]) -> Result<(), DatapathError> {
        self.maps.key_shares().remove(buckets)
    }

    /// Returns once no program uses an old share.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn wait(&self) -> Result<(), DatapathError> {
        wait_for_running_programs()
    }

    /// The bucket of a key; `None`: its limit is no longer shared, or has no such key.
    #[must_use]
    pub fn bucket(&self, key: &BucketKey) -> Option<MovingBucket<'d>> {
        let parameters = self.datapath.whole_budget(key)?;
        Some(MovingBucket {
            shares: *self,
            key: *key,
            parameters,
            buckets: self.datapath.shared_maps.of_host(),
        })
    }
}

impl Datapath {
    /// The parameters of the whole budget of a bucket; `None`: its limit is not shared, or has no such key.
    fn whole_budget(&self, key: &BucketKey) -> Option<&Parameters> {
        let policy = &self.policy;
        let mut limits = (0..).zip(&policy.limits);
        let (limit_index, _) = limits.find(|(_, entry)| entry.id == key.limit)?;
        if !policy.features.is_shared(limit_index) {
            return None;
        }
        let source = match key.decode() {
            Key::Source { address, .. } => address,
            Key::Number(KeyPart::Subscriber, number) => {
                match self.manifest.policy.subscribers.get(&number) {
                    Some(prefixes) => self.source_among(prefixes, number)?,
                    // No override applies to a subscriber that the policy does not name, for any address.
                    None => return policy.rates.get(limit_index as usize),
                }
            }
            // The limit has no overrides by source.
            Key::Number(..) | Key::Destination(_) => UNNAMED,
        };
        let class = classify(policy, &source)?;
        let name_match = with_overrides(policy, &source, class, &self.name_match_of(key));
        let rate_index = rate_index(policy, class, &name_match, limit_index);
        policy.rates.get(rate_index as usize)
    }

    /// An address of a subscriber, from either end of a prefix; `None`: all these addresses are other subscribers'.
    fn source_among(&self, prefixes: &[IpNet], subscriber: u64) -> Option<Address> {
        let ends = prefixes
            .iter()
            .flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
        let is_of_it = |source: &Address| {
            classify(&self.policy, source).is_some_and(|class| class.subscriber == subscriber)
        };
        ends.map(Address::from).find(is_of_it)
    }

    /// The name in the packets charged to a bucket, as far as overrides need it.
    fn name_match_of(&self, key: &BucketKey) -> NameMatch {
        let policy = &self.policy;
        let beside = key.name();
        let hash = match (key.decode(), beside) {
            (_, Some((NameKind::Zone, number))) | (Key::Number(KeyPart::Zone, number), _) => {
                let zone = policy.zones.get(&number);
                zone.map(|zone| hash_of_name(&policy.name_keys, &zone.wire()))
            }
            (_, Some((_, number)))
            | (Key::Number(KeyPart::Domain | KeyPart::Question | KeyPart::ServerName, number), _) => {
                Some(number)
            }
            _ => None,
        };
        let slot = hash.and_then(|hash| slot_of(policy, hash));
        NameMatch {
            overrides: slot.map_or(0, |slot| slot.overrides),
            ..NameMatch::NOTHING
        }
    }

    /// A bucket's share in force at the time `now_ns`.
    pub(super) fn share_of(
        &self,
        entry: &LimitEntry,
        key: &BucketKey,
        now_ns: u64,
    ) -> Result<Parts, DatapathError> {
        let own = match self.source_maps() {
            Some(maps) => maps.key_shares().get(key)?,
            None => None,
        };
        Ok(entry.share_in_force(own.map(|own| own.in_force(now_ns))))
    }
}

impl MovingBucket<'_> {
    /// The tokens of the whole budget that come back in `ns` nanoseconds.
    #[must_use]
    pub const fn tokens_in(&self, ns: u64) -> u64 {
        let gcra = &self.parameters.gcra;
        match gcra.ticks(ns).checked_div(gcra.emission_interval) {
            Some(tokens) => tokens,
            None => 0,
        }
    }

    /// The time in which an empty bucket fills, in milliseconds, at least one.
    #[must_use]
    pub fn fill_ms(&self) -> u64 {
        let gcra = &self.parameters.gcra;
        gcra.ns(gcra.burst_offset).div_ceil(1_000_000).max(1)
    }

    /// The tokens that the bucket has lost by a smaller share, in billionths of the whole burst.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn lost(&self, before: Parts, after: Parts) -> Result<u64, DatapathError> {
        let lost = before.number().saturating_sub(after.number());
        Ok(tokens_of(self.credit()?, lost, self.full()))
    }

    /// Prepares the bucket for another share, which comes with so many tokens, in billionths of the whole burst. A
    /// larger share creates no others.
    ///
    /// # Errors
    ///
    /// The kernel refuses: nothing has changed.
    pub fn adjust(&self, before: Parts, after: Parts, tokens: u64) -> Result<(), DatapathError> {
        let credit = self.credit()?;
        let level = level_after(credit, self.full(), (before, after), tokens);
        // One operation instead of two: each is a system call.
        self.order(level > credit, level.abs_diff(credit))
    }

    /// The size of a full bucket in ticks, the same for any share.
    const fn full(&self) -> u64 {
        self.parameters.gcra.burst_offset
    }

    /// The bucket's present credit, in ticks.
    fn credit(&self) -> Result<u64, DatapathError> {
        let (now_ns, units) = (monotonic_now(), &self.shares.datapath.policy.units);
        let full_at = match self.buckets {
            Some(buckets) => buckets.state_of(&self.key, self.parameters, units, now_ns)?,
            None => 0,
        };
        let debt = full_at.saturating_sub(self.parameters.gcra.ticks(now_ns));
        Ok(self.full().saturating_sub(debt))
    }

    /// Gives tokens worth `ticks`, at most until the bucket is full; or takes them, and may leave it in debt.
    fn order(&self, is_given: bool, ticks: u64) -> Result<(), DatapathError> {
        let Some(buckets) = self.buckets.filter(|_| ticks > 0) else {
            return Ok(());
        };
        let units = &self.shares.datapath.policy.units;
        let at = (self.parameters, units, monotonic_now());
        buckets.move_ticks(is_given, ticks, &self.key, at)
    }
}

/// Billionths in a part of the kernel's shares.
const BILLIONTHS: u128 = 1_000_000_000 / Parts::WHOLE.number() as u128;

/// Returns the tokens in so many parts of a bucket with `credit` of `full` ticks.
fn tokens_of(credit: u64, parts: u32, full: u64) -> u64 {
    let of_parts = u128::from(credit) * u128::from(parts) * BILLIONTHS;
    narrowed(of_parts / u128::from(full.max(1)))
}

/// Returns the credit of a bucket, of `full` ticks, under another share with more tokens.
fn level_after(credit: u64, full: u64, (before, after): (Parts, Parts), tokens: u64) -> u64 {
    let [before, after] = [before, after].map(|share| u128::from(share.number()));
    // The same tokens fill less of a larger bucket.
    let stays = u128::from(credit) * before / after;
    let given = u128::from(tokens) * u128::from(full) / (after * BILLIONTHS);
    narrowed(stays + given)
}

fn narrowed(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(percent: u32) -> Parts {
        Parts::new(percent * 100_000).unwrap()
    }

    #[test]
    fn tokens_go_with_a_share_and_come_from_nowhere() {
        const FULL: u64 = 1_000_000;
        // Half of a full bucket goes with half of its share.
        assert_eq!(tokens_of(FULL, part(20).number(), FULL), 200_000_000);
        assert_eq!(tokens_of(FULL / 2, part(20).number(), FULL), 100_000_000);
        // The tokens stay, so five times the share is a fifth as full.
        let grows = |credit, tokens| level_after(credit, FULL, (part(10), part(50)), tokens);
        assert_eq!(grows(FULL, 0), FULL / 5);
        // A lease of 40 % with all its tokens: it stays full.
        assert_eq!(grows(FULL, 400_000_000), FULL);
        assert_eq!(grows(0, 400_000_000), FULL * 4 / 5);
        assert_eq!(grows(FULL, 200_000_000), FULL * 3 / 5);
    }
}
