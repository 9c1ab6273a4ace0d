//! The keys with a share of their own on this node, and their leases.
//!
//! Keys are many, and few are *active*: packets of theirs were refused at the minimum share, or the limit has but one
//! key. Only active keys have a word in the kernel and a lease.

use std::collections::{BTreeMap, HashMap};

use limiter_common::{
    key::BucketKey,
    strategy::gcra::{KeyShare, Parts, ShareWord},
};
use limiter_datapath::kernel::{DatapathError, Shares, monotonic_now};
use limiter_fleet::{
    Name, Share,
    lease::{
        CallId, Change, Lease, LimitName, MOST_ENTRIES, Need, Outcome, POOL, Reply, Session,
        minimum_share,
    },
};
use limiter_policy::policy::{Limit, MOST_KEYS, shared_limits::parts};

use super::{
    bucket,
    connection::Call,
    demand::{Demand, DemandMeter, scaled},
    shared_limit::{KeyName, SharedLimit},
};
use crate::protocol::FleetShare;

/// The most active keys: others keep the minimum share. The rest of the kernel's room is for keys that an earlier
/// daemon has left.
const MOST_ACTIVE: usize = MOST_KEYS as usize / 4 * 3;

/// A time in which many tokens come back, in nanoseconds.
const LONG_NS: u64 = 1_000 * SECOND_NS;

const SECOND_NS: u64 = 1_000_000_000;

/// All active keys. Times are of the kernel's monotonic clock, in nanoseconds.
pub(super) struct Keys {
    node: Name,
    /// The most nodes; each node's minimum share follows from it.
    nodes: u32,
    session: Session,
    limits: BTreeMap<LimitName, SharedLimit>,
    /// Each has a word in the kernel.
    active: HashMap<BucketKey, ActiveKey>,
    by_name: HashMap<KeyName, BucketKey>,
    /// The keys that the open call names.
    named: Vec<BucketKey>,
    polls: u64,
}

struct ActiveKey {
    limit: LimitName,
    name: KeyName,
    lease: Lease,
    meter: DemandMeter,
    /// The tokens of the whole budget that come back in [`LONG_NS`].
    tokens: u64,
    /// The time in which an empty bucket fills, in milliseconds.
    fill_ms: u64,
    /// The word in the kernel, and the last poll that found it there.
    word: KeyShare,
    seen: u64,
}

impl ActiveKey {
    /// The share above the minimum for a demand.
    fn need(&self, demand: Demand, minimum: Share) -> Need {
        const WHOLE: u64 = Share::WHOLE.in_billionths() * (LONG_NS / SECOND_NS);
        let share = |rate| Share::billionths(scaled(rate, WHOLE, self.tokens)).without(minimum);
        Need {
            least: share(demand.least),
            usual: share(demand.usual),
            most: share(demand.most),
        }
    }
}

impl Keys {
    /// `start`: a number above the ones of all earlier starts, such as the microseconds since 1970.
    pub(super) fn new(node: Name, start: u64) -> Self {
        Self {
            node,
            nodes: 1,
            session: Session::new(start),
            limits: BTreeMap::new(),
            active: HashMap::new(),
            by_name: HashMap::new(),
            named: Vec::new(),
            polls: 0,
        }
    }

    /// Follows the limits of the policy in force.
    pub(super) fn follow(&mut self, shares: Option<Shares<'_>>, limits: &[Limit], start: u64) {
        let limits = limits.iter().filter_map(SharedLimit::of);
        let limits: BTreeMap<_, _> = limits.map(|limit| (limit.name, limit)).collect();
        let nodes = limits.values().map(|limit| limit.nodes).min();
        self.nodes = nodes.unwrap_or(self.nodes);
        let is_same = |limit: &SharedLimit| {
            let other = limits.get(&limit.name);
            other.is_some_and(|other| other.limit.id == limit.limit.id)
        };
        let has_lost = !self.limits.values().all(is_same);
        self.limits = limits;
        if has_lost {
            // Only the end of the session gives back leases of budgets that are gone.
            self.begin_again(start);
        }
        let Some(shares) = shares else {
            return;
        };
        self.active.retain(|key, active| {
            let Some(bucket) = shares.bucket(key) else {
                return false;
            };
            // An override may apply to the key from now on, or no longer.
            (active.tokens, active.fill_ms) = (bucket.tokens_in(LONG_NS), bucket.fill_ms());
            true
        });
        let active = &self.active;
        self.by_name.retain(|_, key| active.contains_key(key));
    }

    /// Whether there is no shared limit.
    pub(super) fn is_idle(&self) -> bool {
        self.limits.is_empty()
    }

    /// Begins a session without leases. The kernel keeps its shares until their end, and the store counts the earlier
    /// session until then.
    fn begin_again(&mut self, start: u64) {
        self.session.restart(start);
        self.named.clear();
        self.active.clear();
        self.by_name.clear();
    }

    fn record(&mut self, error: &DatapathError) {
        let (error, now_ns) = (error.to_string(), monotonic_now());
        for limit in self.limits.values_mut() {
            limit.record(&error, now_ns);
        }
    }

    /// Polls packets' demand, and returns shares that other nodes need. `start`: for another session, if the kernel
    /// refuses a change.
    pub(super) fn poll(&mut self, shares: Shares<'_>, start: u64) {
        self.polls += 1;
        if self.session.has_lapsed(monotonic_now()) {
            self.begin_again(start);
        }
        let polled = self.poll_demand(shares);
        let polled = polled.and_then(|()| self.lower(shares));
        let polled = polled.and_then(|()| self.forget(shares));
        if let Err(error) = polled.and_then(|()| self.add_refused(shares)) {
            self.begin_again(start);
            self.record(&error);
        }
    }

    /// Takes all words of the kernel. Words of an earlier session become active keys, and so end in time.
    fn poll_demand(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let (now_ns, polls) = (monotonic_now(), self.polls);
        let (minimum, minimum_word) = (minimum_share(self.nodes), self.minimum_word());
        let mut unknown = Vec::new();
        let active = &mut self.active;
        shares.each_key_share(|_, key, word| match active.get_mut(key) {
            Some(key) => {
                (key.word, key.seen) = (word, polls);
                if let Some(demand) = key.meter.poll(word.wanted, now_ns) {
                    let need = key.need(demand, minimum);
                    key.lease.want(need, now_ns);
                }
            }
            None => unknown.push((*key, word)),
        })?;
        let mut lost = Vec::new();
        for (key, active) in active.iter_mut().filter(|(_, key)| key.seen != polls) {
            // New maps. Without a word, packets have the minimum share.
            if active.lease.held() > Share::NONE {
                active.lease.lower(Share::NONE, 0);
            }
            active.word = minimum_word;
            lost.push((*key, minimum_word));
        }
        if !lost.is_empty() {
            shares.set_key_shares(&lost)?;
        }
        let mut over = Vec::new();
        for (key, word) in unknown {
            if !self.add(shares, &key, word) {
                over.push(key);
            }
        }
        if over.is_empty() {
            return Ok(());
        }
        shares.remove_key_shares(&over)
    }

    /// Adds an active key; returns whether its limit is shared.
    fn add(&mut self, shares: Shares<'_>, key: &BucketKey, word: KeyShare) -> bool {
        let mut limits = self.limits.values();
        let limit = limits.find(|limit| limit.limit.id.0 == key.limit);
        let Some((limit, bucket)) = limit.zip(shares.bucket(key)) else {
            return false;
        };
        let name = limit.name_of(key);
        let active = ActiveKey {
            limit: limit.name,
            name,
            lease: Lease::default(),
            meter: DemandMeter::new(limit.tokens_of_a_packet()),
            tokens: bucket.tokens_in(LONG_NS),
            fill_ms: bucket.fill_ms(),
            word,
            seen: self.polls,
        };
        self.by_name.insert(name, *key);
        self.active.insert(*key, active);
        true
    }

    /// Lowers the shares that other nodes need: in the kernel first, with one wait for running programs.
    fn lower(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let lowered = self.active.iter().filter_map(|(key, active)| {
            let to = active.lease.lowers_to()?;
            Some((*key, to, self.word(to)))
        });
        let lowered: Vec<_> = lowered.collect();
        if lowered.is_empty() {
            return Ok(());
        }
        let now_ns = monotonic_now();
        let words: Vec<_> = lowered.iter().map(|(key, _, word)| (*key, *word)).collect();
        shares.set_key_shares(&words)?;
        shares.wait()?;
        for (key, to, word) in lowered {
            let Some((active, bucket)) = self.active.get_mut(&key).zip(shares.bucket(&key)) else {
                continue;
            };
            let before = active.word.in_force(now_ns);
            let returned = bucket::lost(&bucket, before, word.word.parts())?;
            active.word = word;
            active.lease.lower(to, returned);
        }
        Ok(())
    }

    /// Forgets keys without a lease or a demand.
    fn forget(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let over = self.active.iter().filter(|(key, active)| {
            active.lease.is_over() && self.only_key(active.limit) != Some(**key)
        });
        let over: Vec<_> = over.map(|(key, _)| *key).collect();
        if over.is_empty() {
            return Ok(());
        }
        for key in &over {
            if let Some(active) = self.active.remove(key) {
                self.by_name.remove(&active.name);
            }
        }
        shares.remove_key_shares(&over)
    }

    fn only_key(&self, limit: LimitName) -> Option<BucketKey> {
        self.limits.get(&limit)?.only_key()
    }

    /// Adds the only keys of limits, which always have room, and keys with refused packets. They ask for all at
    /// once: their demand is known only after the next poll.
    fn add_refused(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let room = MOST_ACTIVE.saturating_sub(self.active.len());
        let refused = shares.wanting(room)?;
        let is_only: Vec<_> = self
            .limits
            .values()
            .filter_map(SharedLimit::only_key)
            .collect();
        let new = is_only
            .iter()
            .copied()
            .chain(refused)
            .filter(|key| !self.active.contains_key(key));
        let new: Vec<_> = new.collect();
        let (word, now_ns) = (self.minimum_word(), monotonic_now());
        let mut words = Vec::new();
        for key in new {
            if !self.active.contains_key(&key) && self.add(shares, &key, word) {
                words.push((key, word));
            }
            if let Some(active) = self.active.get_mut(&key)
                && !is_only.contains(&key)
            {
                active.lease.want(Need::of(POOL), now_ns);
            }
        }
        if words.is_empty() {
            return Ok(());
        }
        shares.set_key_shares(&words)
    }

    /// Begins a call of the script if there is news, or the leases must be renewed.
    pub(super) fn call(&mut self, now_ns: u64) -> Option<Call> {
        let due = self
            .active
            .iter()
            .filter(|(_, active)| active.lease.is_due());
        let due: Vec<_> = due.map(|(key, _)| *key).take(MOST_ENTRIES).collect();
        if !self.session.is_due(now_ns, !due.is_empty()) {
            return None;
        }
        let call = self.session.call(now_ns);
        let mut entries = Vec::new();
        for key in &due {
            if let Some(active) = self.active.get_mut(key) {
                entries.push((active.name, active.fill_ms, active.lease.entry()));
            }
        }
        self.named = due;
        let entries = entries.iter();
        let entries = entries.map(|(name, fill_ms, entry)| (name.as_slice(), *fill_ms, *entry));
        Some((call.id(), call.arguments(&self.node, self.nodes, entries)))
    }

    /// Gives up the open call.
    pub(super) fn give_up(&mut self, call: CallId) {
        if self.session.awaits(call) {
            self.session.give_up();
            self.name_again();
        }
    }

    fn name_again(&mut self) {
        for key in std::mem::take(&mut self.named) {
            if let Some(active) = self.active.get_mut(&key) {
                active.lease.name_again();
            }
        }
    }

    /// Takes the reply to a call. `start`: for another session, if this one is over.
    pub(super) fn receive(
        &mut self,
        shares: Shares<'_>,
        call: CallId,
        reply: &Reply,
        start: u64,
    ) -> Outcome {
        if !self.session.awaits(call) {
            return Outcome::Unchanged;
        }
        let changes = self.take(reply);
        let is_reported = !(self.active.values()).any(|active| active.lease.is_unreported());
        let outcome = self.session.receive(reply, is_reported);
        let done = match outcome {
            Outcome::Renewed { has_room } => {
                for active in self.active.values_mut().filter(|_| has_room) {
                    active.lease.ask_again();
                }
                self.set(shares, &changes)
            }
            Outcome::Unchanged => self.set(shares, &changes),
            Outcome::Report => {
                for active in self.active.values_mut() {
                    active.lease.name_again();
                }
                Ok(())
            }
            Outcome::Over(refusal) => {
                let dropped = self.drop_leases(shares);
                if refusal.is_none() {
                    self.begin_again(start);
                }
                dropped
            }
        };
        if let Err(error) = done {
            self.begin_again(start);
            self.record(&error);
        }
        outcome
    }

    /// Takes a reply to all entries of the call, and the hints.
    fn take(&mut self, reply: &Reply) -> HashMap<BucketKey, Change> {
        let mut changes = HashMap::new();
        if let Reply::Renewed { grants, hints, .. } = reply {
            let answered = grants.len().min(self.named.len());
            for (key, grant) in self.named.drain(..answered).zip(grants) {
                let active = self.active.get_mut(&key);
                if let Some(change) = active.and_then(|active| active.lease.receive(*grant)) {
                    changes.insert(key, change);
                }
            }
            for (name, goal) in hints {
                let name = KeyName::try_from(name.as_slice()).ok();
                let key = name.and_then(|name| self.by_name.get(&name));
                if let Some(active) = key.and_then(|key| self.active.get_mut(key)) {
                    active.lease.hint(*goal);
                }
            }
        }
        self.name_again();
        changes
    }

    /// Sets the shares of all leases in the kernel, with their new end.
    fn set(
        &mut self,
        shares: Shares<'_>,
        changes: &HashMap<BucketKey, Change>,
    ) -> Result<(), DatapathError> {
        let now_ns = monotonic_now();
        let mut words = Vec::new();
        for (key, active) in &self.active {
            let change = changes.get(key);
            if active.lease.held() == Share::NONE && change.is_none() {
                continue;
            }
            let word = self.word(active.lease.held());
            let (before, after) = (active.word.in_force(now_ns), word.word.parts());
            let tokens = change.map_or(0, |change| change.tokens);
            if (after > before || tokens > 0)
                && let Some(bucket) = shares.bucket(key)
            {
                bucket::adjust(&bucket, before, after, tokens)?;
            }
            if (word.word, word.after) != (active.word.word, active.word.after) {
                words.push((*key, word));
            }
        }
        if words.is_empty() {
            return Ok(());
        }
        shares.set_key_shares(&words)?;
        for (key, word) in words {
            if let Some(active) = self.active.get_mut(&key) {
                (active.word.word, active.word.after) = (word.word, word.after);
            }
        }
        Ok(())
    }

    /// Gives all keys the minimum share at once.
    fn drop_leases(&mut self, shares: Shares<'_>) -> Result<(), DatapathError> {
        let words: Vec<_> = (self.active.keys())
            .map(|key| (*key, self.minimum_word()))
            .collect();
        self.active.clear();
        self.by_name.clear();
        if words.is_empty() {
            return Ok(());
        }
        shares.set_key_shares(&words)
    }

    /// The word for a lease: the share until the leases end, then the minimum.
    fn word(&self, leased: Share) -> KeyShare {
        let minimum = minimum_share(self.nodes);
        let [share, after] = [minimum + leased, minimum].map(parts_of);
        let word = match leased {
            Share::NONE => ShareWord::forever(after),
            _ => ShareWord::new(share, self.session.ends_ns()),
        };
        KeyShare::new(word, after)
    }

    fn minimum_word(&self) -> KeyShare {
        self.word(Share::NONE)
    }

    /// Returns this node's share of each limit, by the limit's name: for a limit with many keys, the share of the ones
    /// that are not active.
    pub(super) fn status(&self, now_ns: u64) -> BTreeMap<String, FleetShare> {
        let minimum = minimum_share(self.nodes);
        let limits = self.limits.values().map(|limit| {
            let only = limit.only_key();
            let key = only.and_then(|key| self.active.get(&key));
            let share = key.map_or_else(|| parts_of(minimum), |key| key.word.in_force(now_ns));
            let wanted = key.map_or(Share::NONE, |key| key.lease.wanted());
            let wanted = if wanted > Share::NONE {
                wanted + minimum
            } else {
                wanted
            };
            let of_limit = |active: &&ActiveKey| active.limit == limit.name;
            let active = self.active.values().filter(of_limit).count() as u64;
            let rate = limit.rate.of_share(share);
            let status = FleetShare {
                share_billionths: u64::from(share.number()) * 100,
                wanted_billionths: wanted.in_billionths(),
                active: only.is_none().then_some(active),
                rate: rate.a_second(),
                burst: rate.burst,
                error: limit.error(now_ns),
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
