//! All budgets shared by this node.
//!
//! Owners are many, and few are *hot*: owners with packets refused here at the home share, and owners that
//! another node requests. Only hot owners have their own words in the kernel and a part in the protocol.
//! A limit on all sources together has one owner, which is always hot.

use std::collections::{BTreeMap, HashSet};

use limiter_common::{
    key::BucketKey,
    strategy::gcra::{KeyShare, ShareWord},
};
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    Boot, Entry, Header, LimitName, Members, Memory, Message, NodeId, Payload, Relevance, Renewal,
    Terms,
};
use limiter_policy::policy::{Limit, MOST_KEYS, shared_limits::minimum_share_of};

use super::{
    batch,
    bucket::parts_of,
    hot::{Act, Due, Hot, WHOLE_NS},
    joint::Joint,
    lever::{Host, Lever as _},
    owners::Owners,
};
use crate::protocol::FleetShare;

/// The most hot owners: others keep the home share. The rest of the kernel's room is for owners that an
/// earlier daemon has left.
pub(super) const MOST_HOT: usize = MOST_KEYS as usize / 4 * 3;

/// How long an owner without need stays hot, in nanoseconds.
const COOLING_NS: u64 = 5_000_000_000;

/// How many polls lie between two removals of owners without need.
const COOLING_POLLS: u64 = 5;

pub(super) struct Keeper {
    members: Members,
    /// Each node's share of an unknown budget.
    unknown: KeyShare,
    memory: Memory,
    joints: BTreeMap<LimitName, Joint>,
    owners: Owners,
    polls: u64,
}

/// Messages to other nodes.
#[derive(Default)]
pub(super) struct Outgoing {
    pub(super) entries: Vec<(NodeId, Entry)>,
    /// Renewals of all loans with a node.
    pub(super) renewals: Vec<(NodeId, Renewal)>,
    /// Nodes that address an earlier start of this one.
    pub(super) strangers: Vec<NodeId>,
}

/// The acts and words due after a poll, with the numbers of their owners.
#[derive(Default)]
struct DueNow {
    acts: Vec<batch::Due>,
    words: Vec<(u32, KeyShare)>,
    entries: Vec<(NodeId, Entry)>,
}

impl DueNow {
    fn attend(
        &mut self,
        number: u32,
        owner: &mut Hot,
        now_ns: u64,
        lapses: u64,
        memory: &mut Memory,
    ) {
        let send = |to, entry| self.entries.push((to, entry));
        match owner.attend(now_ns, lapses, memory, send) {
            Due::Nothing => {}
            Due::Act => self.acts.push((number, Act::Poll)),
            Due::Lengthened(word) => self.words.push((number, word)),
        }
    }
}

impl Keeper {
    /// `started`: a number above the ones of all earlier starts, such as the nanoseconds since 1970. If the
    /// wall clock was set back since, no node lends to this one until it has caught up.
    pub(super) fn new(
        now_ns: u64,
        members: Members,
        id: NodeId,
        terms: Terms,
        started: u64,
    ) -> Self {
        let unknown = parts_of(members.share_of_unknown());
        Self {
            unknown: KeyShare::new(ShareWord::forever(unknown), unknown),
            memory: Memory::new(now_ns, id, Boot(started), terms, members.count()),
            members,
            joints: BTreeMap::new(),
            owners: Owners::default(),
            polls: 0,
        }
    }

    /// Follows the limits of the policy in force. `names`: the fingerprint of the keys that number names. A
    /// limit with changed terms has new budgets, and stays at the floor until it begins.
    pub(super) fn follow(&mut self, limits: &[Limit], names: u64, now_ns: u64) {
        let mut before = std::mem::take(&mut self.joints);
        let nodes = self.members.floors();
        let begins_ns = now_ns.saturating_add(self.memory.terms().silent_ns());
        for limit in limits {
            let Some(joint) = Joint::of(limit, nodes, names, begins_ns) else {
                continue;
            };
            let same = before.remove(&joint.name).filter(|old| old.is_same(&joint));
            self.joints.insert(joint.name, same.unwrap_or(joint));
        }
        let joints = &self.joints;
        let over = self.owners.take_if(|owner| {
            joints
                .get(&owner.budget.limit)
                .is_none_or(|joint| !joint.has_begun)
        });
        self.forget(over, now_ns);
    }

    fn forget(&mut self, owners: impl IntoIterator<Item = Hot>, now_ns: u64) {
        for owner in owners {
            owner.forget(now_ns, &mut self.memory);
        }
    }

    /// Polls the packets' demand, and requests it; returns the messages to send.
    pub(super) fn poll(&mut self, host: impl Host) -> Outgoing {
        self.polls += 1;
        let now_ns = host.now_ns();
        self.begin(host, now_ns);
        let mut due = DueNow::default();
        let polled = self.poll_owners(host, now_ns, &mut due);
        let polled = polled.and_then(|()| self.heat_wanting(host, now_ns, &mut due));
        if let Err(error) = polled {
            self.record(&error.to_string(), now_ns);
            return Outgoing::default();
        }
        self.lengthen(host, &due.words);
        let mut entries = self.batch(host, now_ns, due.acts);
        entries.append(&mut due.entries);
        if self.polls.is_multiple_of(COOLING_POLLS) {
            self.cool(host, now_ns);
        }
        Outgoing {
            entries,
            renewals: self.memory.request_renewals(now_ns),
            strangers: Vec::new(),
        }
    }

    /// Sets words with the same share and a later end.
    fn lengthen(&mut self, host: impl Host, words: &[(u32, KeyShare)]) {
        let now_ns = host.now_ns();
        let mut set = Vec::new();
        for (number, word) in words {
            // If the word has ended, the bucket's tokens must be converted first.
            if let Some(owner) = self.owners.at(*number).filter(|owner| owner.holds(now_ns)) {
                owner.set(*word);
                set.push((owner.key, *word));
            }
        }
        if set.is_empty() {
            return;
        }
        if let Err(error) = host.set_key_shares(&set) {
            for (number, _) in words {
                if let Some(owner) = self.owners.at(*number) {
                    owner.fail(&mut self.memory, now_ns);
                }
            }
            self.record(&error.to_string(), now_ns);
        }
    }

    /// Begins with each limit when all its earlier loans are over.
    fn begin(&mut self, host: impl Host, now_ns: u64) {
        for joint in self.joints.values_mut() {
            if !joint.has_begun && now_ns >= joint.begins_ns {
                let begun = host.set_limit(joint.limit.id, self.unknown.word.parts());
                joint.has_begun = begun.is_ok();
                if let Err(error) = begun {
                    joint.record(&error.to_string(), now_ns);
                }
            }
        }
    }

    /// Polls all owners with their own words, and collects the work due. Owners left by an earlier daemon
    /// become hot too, and so return to the home share.
    fn poll_owners(
        &mut self,
        host: impl Host,
        now_ns: u64,
        due: &mut DueNow,
    ) -> Result<(), DatapathError> {
        let lapses = self.memory.lapses(now_ns);
        let (polls, id) = (self.polls, self.memory.id());
        let (owners, memory) = (&mut self.owners, &mut self.memory);
        let (mut seen, mut others) = (0, Vec::new());
        host.each_key_share(|number, key, share| match owners.at(number) {
            Some(owner) if owner.key == *key => {
                owner.poll(&share, now_ns, id);
                owner.seen = polls;
                seen += 1;
                due.attend(number, owner, now_ns, lapses, memory);
            }
            _ => others.push((number, *key, share)),
        })?;
        if seen < self.owners.count() {
            let gone = self.owners.take_if(|owner| owner.seen != polls);
            self.forget(gone, now_ns);
        }
        for (number, key, share) in others {
            if let Some(owner) = self.begun(host, &key, share) {
                self.put(number, owner, &share, now_ns);
                self.attend(number, now_ns, due);
            }
        }
        Ok(())
    }

    /// Adds an owner that has a word in the kernel.
    fn put(&mut self, number: u32, mut owner: Hot, share: &KeyShare, now_ns: u64) {
        owner.poll(share, now_ns, self.memory.id());
        owner.seen = self.polls;
        let before = self.owners.put(number, owner);
        self.forget(before, now_ns);
    }

    /// Starts the work of a new owner.
    fn attend(&mut self, number: u32, now_ns: u64, due: &mut DueNow) {
        if let Some(owner) = self.owners.at(number) {
            // A new owner has no lapsed renewals yet.
            due.attend(number, owner, now_ns, 0, &mut self.memory);
        }
    }

    /// Heats the only owners of limits, which always have room, and owners with refused packets.
    fn heat_wanting(
        &mut self,
        host: impl Host,
        now_ns: u64,
        due: &mut DueNow,
    ) -> Result<(), DatapathError> {
        let only = self.joints.values().filter(|joint| joint.has_begun);
        let only: Vec<_> = only.filter_map(Joint::only_owner).collect();
        let mut new = self.heat(host, &only, usize::MAX)?;
        let wanting = host.wanting(MOST_HOT.saturating_sub(self.owners.count()))?;
        new.append(&mut self.heat(host, &wanting, MOST_HOT)?);
        for number in new {
            self.attend(number, now_ns, due);
        }
        Ok(())
    }

    /// Gives owners their own words, while there are fewer than `most`; returns the numbers of the new
    /// ones.
    fn heat(
        &mut self,
        host: impl Host,
        keys: &[BucketKey],
        most: usize,
    ) -> Result<Vec<u32>, DatapathError> {
        let room = most.saturating_sub(self.owners.count());
        let mut named = HashSet::new();
        let new = keys
            .iter()
            .filter(|key| self.owners.number_of(key).is_none());
        let new = new.filter(|key| named.insert(**key));
        let new = new.filter_map(|key| self.begun(host, key, self.unknown));
        let new: Vec<_> = new.take(room).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        // Even after an error, the next poll finds the owners that the kernel has accepted.
        let words: Vec<_> = new.iter().map(|owner| (owner.key, self.unknown)).collect();
        host.set_key_shares(&words)?;
        let numbers = host.numbers_of(words.iter().map(|(key, _)| key))?;
        let now_ns = host.now_ns();
        let mut known = Vec::new();
        for (number, owner) in numbers.into_iter().zip(new) {
            if let Some(number) = number {
                let share = self.unknown;
                self.put(number, owner, &share, now_ns);
                known.push(number);
            }
        }
        Ok(known)
    }

    /// Begins with an owner that has its own word; `None`: its limit is not shared.
    fn begun(&self, host: impl Host, key: &BucketKey, share: KeyShare) -> Option<Hot> {
        let mut joints = self.joints.values();
        let joint = joints.find(|joint| joint.limit.id.0 == key.limit && joint.has_begun)?;
        let whole = host.lever(key)?.tokens_in(WHOLE_NS);
        let budget = joint.budget_of(key);
        let stakes = self.members.stakes(&budget.bytes());
        let id = self.memory.id();
        let tokens = (whole, joint.tokens_of_a_packet());
        Some(Hot::new(*key, budget, stakes, id, share, tokens))
    }

    /// Handles messages of other nodes; returns the messages to send.
    pub(super) fn receive(&mut self, host: impl Host, messages: &[Message]) -> Outgoing {
        let now_ns = host.now_ns();
        let mut outgoing = Outgoing::default();
        let (mut acts, mut new) = (Vec::new(), Vec::new());
        for message in messages {
            match self.memory.receive(now_ns, &message.header) {
                Relevance::Entries => {
                    let (header, renewal) = (&message.header, &message.renewal);
                    let reply = self.memory.receive_renewal(now_ns, header, renewal);
                    if !reply.is_none() {
                        outgoing.renewals.push((header.from, reply));
                    }
                    for entry in &message.entries {
                        self.receive_entry(header, entry, &mut acts, &mut new);
                    }
                }
                Relevance::OtherStart if message.has_content() => {
                    outgoing.strangers.push(message.header.from);
                }
                Relevance::OtherStart | Relevance::None => {}
            }
        }
        let keys: Vec<_> = new.iter().map(|(key, _)| *key).collect();
        if let Err(error) = self.heat(host, &keys, MOST_HOT) {
            self.record(&error.to_string(), now_ns);
        }
        let known = new.into_iter();
        acts.extend(known.filter_map(|(key, act)| Some((self.owners.number_of(&key)?, act))));
        outgoing.entries = self.batch(host, now_ns, acts);
        outgoing
    }

    /// Turns an entry into an act: for a hot owner, by its number, or for an owner to heat. Ignores an entry
    /// about an unknown limit: this node has other terms, or has not reloaded its configuration yet.
    fn receive_entry(
        &self,
        header: &Header,
        entry: &Entry,
        acts: &mut Vec<batch::Due>,
        new: &mut Vec<(BucketKey, Act)>,
    ) {
        let joint = self.joints.get(&entry.budget.limit);
        let Some(joint) = joint.filter(|joint| joint.has_begun) else {
            return;
        };
        let Some(key) = joint.key_of(&entry.budget.owner) else {
            return;
        };
        let act = match entry.payload {
            Payload::Loan(loan) => Act::Loan(*header, loan),
            Payload::Changed(share) => Act::Changed(header.from, share),
            Payload::Request(request) => Act::Request(*header, request),
        };
        if let Some(number) = self.owners.number_of(&key) {
            acts.push((number, act));
        } else if let Act::Request(_, request) = &act {
            let stakes = self.members.stakes(&entry.budget.bytes());
            if stakes.is_bank(self.memory.id()) && self.memory.may_be_new(header, request.number) {
                new.push((key, act));
            }
        }
    }

    /// Carries out acts for many owners; returns the entries to send.
    fn batch(
        &mut self,
        host: impl Host,
        now_ns: u64,
        acts: Vec<batch::Due>,
    ) -> Vec<(NodeId, Entry)> {
        let done = batch::run(&mut self.owners, &mut self.memory, host, now_ns, acts);
        for (limit, error) in done.failed {
            if let Some(joint) = self.joints.get_mut(&limit) {
                joint.record(&error, now_ns);
            }
        }
        done.entries
    }

    fn record(&mut self, error: &str, now_ns: u64) {
        for joint in self.joints.values_mut() {
            joint.record(error, now_ns);
        }
    }

    /// Removes the words of owners without need.
    fn cool(&mut self, host: impl Host, now_ns: u64) {
        let (joints, memory) = (&self.joints, &self.memory);
        let is_only = |owner: &Hot| {
            let joint = joints.get(&owner.budget.limit);
            joint.and_then(Joint::only_owner) == Some(owner.key)
        };
        let is_over = |owner: &Hot| owner.is_cool(now_ns, COOLING_NS, memory) && !is_only(owner);
        let cool = self.owners.take_if(is_over);
        if cool.is_empty() {
            return;
        }
        let keys: Vec<_> = cool.iter().map(|owner| owner.key).collect();
        self.forget(cool, now_ns);
        // The next poll finds the owners that stay in the kernel.
        if let Err(error) = host.remove_key_shares(&keys) {
            self.record(&error.to_string(), now_ns);
        }
    }

    /// Returns whether there is no shared limit.
    pub(super) fn is_idle(&self) -> bool {
        self.joints.is_empty()
    }

    /// Returns this node's share of each limit, by the limit's name: for a limit with many owners, the
    /// share of unknown ones.
    pub(super) fn status(&self, now_ns: u64) -> BTreeMap<String, FleetShare> {
        let joints = self.joints.values();
        joints
            .map(|joint| {
                let only_owner = joint.only_owner();
                let only = only_owner.and_then(|key| self.owners.get(&key));
                let share = match only {
                    Some(hot) => hot.share(now_ns),
                    None if joint.has_begun => self.unknown.word.parts(),
                    None => minimum_share_of(self.members.floors()),
                };
                let wanted = only.map_or(0, |hot| hot.wanted.in_billionths());
                let rate = joint.of_share(share);
                let status = FleetShare {
                    share_billionths: u64::from(share.number()) * 100,
                    wanted_billionths: wanted,
                    hot: (only_owner.is_none()).then(|| self.owners.count_of(joint.name)),
                    rate: rate.a_second(),
                    burst: rate.burst,
                    error: joint.error(now_ns),
                };
                (joint.limit.name.clone(), status)
            })
            .collect()
    }

    pub(super) fn header(&self, to: NodeId) -> Header {
        self.memory.header(to)
    }

    pub(super) fn name_of(&self, node: NodeId) -> Option<&str> {
        let index = usize::try_from(node.0).ok()?;
        self.members.names().nth(index)
    }
}
