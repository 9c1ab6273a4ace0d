//! The keys with a share of their own on this node, and their words in the kernel.
//!
//! Keys are many, and few are *active*: packets of theirs were refused at the minimum share, or the limit has but one
//! key. Only active keys have a word in the kernel and a lease.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use limiter_common::{
    key::BucketKey,
    limit::LimitId,
    strategy::gcra::{KeyShare, Parts, ShareWord},
};
use limiter_datapath::kernel::{DatapathError, Shares, monotonic_now};
use limiter_fleet::{
    Name, Share,
    lease::{
        ActiveKey, BUDGET_NS, CallId, Change, DemandMeter, Effect, KeyName, Lease, Leases, Need,
        POOL, Reply,
    },
};
use limiter_policy::policy::{Limit, MOST_KEYS, shared_limits::parts};
use limiter_protocol::FleetShare;

use super::shared_limit::SharedLimit;

/// The most active keys: others keep the minimum share. The rest of the kernel's room is for keys that an earlier
/// daemon has left.
const MOST_ACTIVE: usize = MOST_KEYS as usize / 4 * 3;

/// How long an error is reported, in nanoseconds: longer than beginning again takes.
const ERROR_NS: u64 = 5_000_000_000;

/// All active keys. Times are of the kernel's monotonic clock, in nanoseconds.
pub(super) struct Keys {
    pub(super) leases: Leases<KernelKey>,
    limits: BTreeMap<LimitId, SharedLimit>,
    polls: u64,
    /// The last error of the kernel, and its time.
    error: Option<(String, u64)>,
}

/// A key's part in the kernel.
pub(super) struct KernelKey {
    key: BucketKey,
    meter: DemandMeter,
    /// The tokens of the whole budget that come back in [`BUDGET_NS`].
    tokens: u64,
    /// The word in the kernel, and the last poll that found it there.
    word: KeyShare,
    seen: u64,
}

impl Keys {
    /// `start`: a number above the ones of all earlier starts, such as the microseconds since 1970.
    pub(super) fn new(node: Name, start: u64) -> Self {
        Self {
            leases: Leases::new(node, 1, start),
            limits: BTreeMap::new(),
            polls: 0,
            error: None,
        }
    }

    /// Follows the limits of the policy in force.
    pub(super) fn follow(&mut self, shares: Option<Shares<'_>>, limits: &[Limit]) {
        let limits = limits.iter().filter_map(SharedLimit::of);
        let limits: BTreeMap<_, _> = limits.map(|limit| (limit.limit.id, limit)).collect();
        let nodes = limits.values().map(|limit| limit.nodes).min();
        self.leases.nodes = nodes.unwrap_or(self.leases.nodes);
        let stays = |(id, before): (&LimitId, &SharedLimit)| {
            (limits.get(id)).is_some_and(|limit| limit.name == before.name)
        };
        if !self.limits.iter().all(stays) {
            // Only the end of the session gives back leases of budgets that are gone.
            self.leases.restart();
        }
        self.limits = limits;
        let Some(shares) = shares else {
            return;
        };
        self.leases.keys.retain(|_, active| {
            let Some(bucket) = shares.bucket(&active.host.key) else {
                return false;
            };
            // An override may apply to the key from now on, or no longer.
            (active.host.tokens, active.fill_ms) = (bucket.tokens_in(BUDGET_NS), bucket.fill_ms());
            true
        });
    }

    /// Whether there is no shared limit.
    pub(super) fn is_idle(&self) -> bool {
        self.limits.is_empty()
    }

    /// Polls packets' demand, and returns shares that other nodes need.
    pub(super) fn poll(&mut self, shares: Shares<'_>) {
        self.leases.restart_if_lapsed(monotonic_now());
        let polled = self.poll_demand(shares);
        let polled = polled.and_then(|()| self.lower(shares));
        let polled = polled.and_then(|()| self.forget(shares));
        let polled = polled.and_then(|()| self.add_refused(shares));
        self.check(polled);
    }

    /// Begins again if the kernel has refused a change: which words it has is not known.
    fn check(&mut self, changed: Result<(), DatapathError>) {
        if let Err(error) = changed {
            self.error = Some((error.to_string(), monotonic_now()));
            self.leases.restart();
        }
    }

    /// Takes all words of the kernel. Words of an earlier session become active keys, and so end in time.
    fn poll_demand(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        self.polls += 1;
        let (now_ns, minimum) = (monotonic_now(), self.leases.minimum());
        let mut unknown = Vec::new();
        shares.each_key_share(|key, share| {
            let word = KeyShare { wanted: 0, ..share };
            let name = self.limits.get(&LimitId(key.limit));
            let name = name.map(|limit| limit.name_of(key));
            let active = name.and_then(|name| self.leases.keys.get_mut(&name));
            let Some(ActiveKey { lease, host, .. }) = active else {
                unknown.push((*key, word));
                return;
            };
            (host.word, host.seen) = (word, self.polls);
            let need = (host.meter).poll(share.wanted, now_ns, (host.tokens, minimum));
            if let Some(need) = need {
                lease.want(need, now_ns);
            }
        })?;
        unknown.retain(|(key, word)| self.add(shares, key, *word).is_none());
        let over: Vec<_> = unknown.into_iter().map(|(key, _)| key).collect();
        shares.remove_key_shares(&over)
    }

    /// Adds a key with this word; `None`: its limit is not shared, or it is active.
    fn add(
        &mut self,
        shares: Shares<'_>,
        key: &BucketKey,
        word: KeyShare,
    ) -> Option<&mut ActiveKey<KernelKey>> {
        let limit = self.limits.get(&LimitId(key.limit))?;
        let Entry::Vacant(place) = self.leases.keys.entry(limit.name_of(key)) else {
            return None;
        };
        let bucket = shares.bucket(key)?;
        Some(place.insert(ActiveKey {
            lease: Lease::default(),
            fill_ms: bucket.fill_ms(),
            host: KernelKey {
                key: *key,
                meter: DemandMeter::new(limit.tokens_of_a_packet()),
                tokens: bucket.tokens_in(BUDGET_NS),
                word,
                seen: self.polls,
            },
        }))
    }

    /// Lowers the shares that other nodes need: in the kernel first, with one wait for running programs.
    fn lower(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let (now_ns, word_of) = (monotonic_now(), self.words());
        let (mut lowered, mut words) = (Vec::new(), Vec::new());
        for (name, ActiveKey { lease, host, .. }) in &mut self.leases.keys {
            let mut to = lease.lowers_to();
            if host.seen < self.polls {
                // New maps. Without a word, packets have the minimum share.
                host.word = word_of(Share::NONE);
                to = Some(Share::NONE);
            }
            if let Some(to) = to {
                lowered.push((*name, to, host.word.in_force(now_ns)));
                host.word = word_of(to);
                words.push((host.key, host.word));
            }
        }
        if words.is_empty() {
            return Ok(());
        }
        shares.set_key_shares(&words)?;
        shares.wait()?;
        for (name, to, before) in lowered {
            if let Some(ActiveKey { lease, host, .. }) = self.leases.keys.get_mut(&name)
                && let Some(bucket) = shares.bucket(&host.key)
            {
                let returned = bucket.lost(before, host.word.word.parts())?;
                lease.lower(to, returned);
            }
        }
        Ok(())
    }

    /// Forgets keys without a lease or a demand.
    fn forget(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let only = self.only_keys();
        let over = (self.leases.keys)
            .extract_if(|_, active| active.lease.is_over() && !only.contains(&active.host.key));
        let over: Vec<_> = over.map(|(_, active)| active.host.key).collect();
        shares.remove_key_shares(&over)
    }

    /// Returns the only keys of limits: these are always active.
    fn only_keys(&self) -> Vec<BucketKey> {
        let limits = self.limits.values();
        limits.filter_map(SharedLimit::only_key).collect()
    }

    /// Adds the only keys of limits, which always have room, and keys with refused packets. They ask for all at
    /// once: their demand is known only after the next poll.
    fn add_refused(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let room = MOST_ACTIVE.saturating_sub(self.leases.keys.len());
        let (only, refused) = (self.only_keys(), shares.wanting(room)?);
        let (now_ns, word) = (monotonic_now(), self.words()(Share::NONE));
        let mut words = Vec::new();
        for key in only.iter().chain(&refused) {
            if let Some(active) = self.add(shares, key, word) {
                words.push((*key, word));
                if !only.contains(key) {
                    active.lease.want(Need::of(POOL), now_ns);
                }
            }
        }
        shares.set_key_shares(&words)
    }

    /// Takes the reply to a call.
    pub(super) fn receive(&mut self, shares: Shares<'_>, call: CallId, reply: &Reply) {
        let changed = match self.leases.receive(call, reply) {
            Effect::Changes(changes) => self.set(shares, &changes),
            Effect::Over(keys) => {
                let word = self.words()(Share::NONE);
                let words = keys.values().map(|active| (active.host.key, word));
                shares.set_key_shares(&words.collect::<Vec<_>>())
            }
        };
        self.check(changed);
    }

    /// Sets the shares of all leases in the kernel, with their new end.
    fn set(
        &mut self,
        shares: Shares<'_>,
        changes: &HashMap<KeyName, Change>,
    ) -> Result<(), DatapathError> {
        let (now_ns, word_of) = (monotonic_now(), self.words());
        let mut words = Vec::new();
        for (name, ActiveKey { lease, host, .. }) in &mut self.leases.keys {
            let change = changes.get(name);
            if lease.held() == Share::NONE && change.is_none() {
                continue;
            }
            let word = word_of(lease.held());
            let (before, after) = (host.word.in_force(now_ns), word.word.parts());
            let tokens = change.map_or(0, |change| change.tokens);
            if (after > before || tokens > 0)
                && let Some(bucket) = shares.bucket(&host.key)
            {
                bucket.adjust(before, after, tokens)?;
            }
            if word != host.word {
                host.word = word;
                words.push((host.key, word));
            }
        }
        shares.set_key_shares(&words)
    }

    /// Returns the word for a lease: the share until the leases end, then the minimum.
    fn words(&self) -> impl Fn(Share) -> KeyShare + use<> {
        let (minimum, ends_ns) = (self.leases.minimum(), self.leases.ends_ns());
        move |leased| {
            let [share, after] = [minimum + leased, minimum].map(parts_of);
            let word = match leased {
                Share::NONE => ShareWord::forever(after),
                _ => ShareWord::new(share, ends_ns),
            };
            KeyShare::new(word, after)
        }
    }

    /// Returns this node's share of each limit, by the limit's name: for a limit with many keys, the share of the ones
    /// that are not active.
    pub(super) fn status(&self, now_ns: u64) -> BTreeMap<String, FleetShare> {
        let minimum = self.leases.minimum();
        let error = self.error.as_ref();
        let error = error.filter(|(_, at_ns)| now_ns.saturating_sub(*at_ns) < ERROR_NS);
        let limits = self.limits.values().map(|limit| {
            let only = limit.only_key();
            let key = only.and_then(|key| self.leases.keys.get(&limit.name_of(&key)));
            let share = key.map_or_else(|| parts_of(minimum), |key| key.host.word.in_force(now_ns));
            let wanted = key.map_or(Share::NONE, |key| key.lease.wanted());
            let wanted = if wanted > Share::NONE {
                wanted + minimum
            } else {
                wanted
            };
            let all = self.leases.keys.values();
            let active = all.filter(|active| active.host.key.limit == limit.limit.id.0);
            let rate = limit.rate.of_share(share);
            let status = FleetShare {
                share_billionths: u64::from(share.number()) * 100,
                wanted_billionths: wanted.in_billionths(),
                active: only.is_none().then(|| active.count() as u64),
                rate: rate.a_second(),
                burst: rate.burst,
                error: error.map(|(error, _)| error.clone()),
            };
            (limit.limit.name.clone(), status)
        });
        limits.collect()
    }
}

/// A share in the kernel's representation. The minimum share is above the smallest number of parts.
fn parts_of(share: Share) -> Parts {
    parts(share).unwrap_or(Parts::LEAST)
}
