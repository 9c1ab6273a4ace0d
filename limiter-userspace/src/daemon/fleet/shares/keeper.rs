//! All budgets of which this node has a share.
//!
//! Owners are many, and few are *hot*: those of which packets were refused here that have none but their share at
//! home, and those that another node asks about. Only they have words of their own in the kernel, and a part
//! in the protocol. A limit on all sources together has one owner, which is always hot.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use limiter_common::{
    owner::BucketKey,
    strategy::gcra::{OwnerShare, ShareWord},
};
use limiter_datapath::kernel::DatapathError;
use limiter_fleet::{
    Boot, Header, Hearing, Letter, LimitName, Members, Memory, Message, NodeId, Note, Renewal,
    Terms,
};
use limiter_policy::policy::{Limit, MOST_OWNERS, in_common::floor_of};

use super::{
    batch,
    bucket::parts_of,
    hot::{Act, Due, Hot, WHOLE_NS},
    joint::Joint,
    lever::{Host, Lever as _},
};
use crate::protocol::FleetShare;

/// The most owners that are hot: the others stay at home. The rest of the kernel's room is for those that an
/// earlier daemon has left.
pub(super) const MOST_HOT: usize = MOST_OWNERS as usize / 4 * 3;

/// How long an owner stays hot that needs nothing, in nanoseconds.
const COOLING_NS: u64 = 5_000_000_000;

/// How many looks lie between two that forget owners that need nothing.
const COOLING_LOOKS: u64 = 5;

/// The budgets.
pub(super) struct Keeper {
    members: Members,
    /// Each node's share of a budget of which it knows nothing.
    unknown: OwnerShare,
    memory: Memory,
    joints: BTreeMap<LimitName, Joint>,
    hot: HashMap<BucketKey, Hot>,
    looks: u64,
}

/// Words to other nodes.
#[derive(Default)]
pub(super) struct Said {
    pub(super) notes: Vec<(NodeId, Note)>,
    /// Words about all loans at once.
    pub(super) renewals: Vec<(NodeId, Renewal)>,
    /// Nodes that think of an earlier start of this one.
    pub(super) strangers: Vec<NodeId>,
}

/// Acts and words that are due at a look.
#[derive(Default)]
struct DueNow {
    acts: Vec<(BucketKey, Act)>,
    words: Vec<(BucketKey, OwnerShare)>,
    said: Vec<(NodeId, Note)>,
}

impl DueNow {
    fn attend(
        &mut self,
        key: BucketKey,
        hot: &mut Hot,
        now_ns: u64,
        lapses: u64,
        memory: &mut Memory,
    ) {
        let say = |to, note| self.said.push((to, note));
        match hot.attend(now_ns, lapses, memory, say) {
            Due::Nothing => {}
            Due::Act => self.acts.push((key, Act::Look)),
            Due::Lengthened(word) => self.words.push((key, word)),
        }
    }
}

impl Keeper {
    /// `started`: a number above those of all earlier starts, such as the nanoseconds since 1970. If the wall
    /// clock went back since an earlier start, nobody lends to this node until it is as late again.
    pub(super) fn new(
        now_ns: u64,
        members: Members,
        id: NodeId,
        terms: Terms,
        started: u64,
    ) -> Self {
        let unknown = parts_of(members.share_of_unknown());
        Self {
            unknown: OwnerShare::new(ShareWord::forever(unknown), unknown),
            memory: Memory::new(now_ns, id, Boot(started), terms, members.count()),
            members,
            joints: BTreeMap::new(),
            hot: HashMap::new(),
            looks: 0,
        }
    }

    /// Goes on with the limits of the policy in force. One whose terms have changed has other budgets, and
    /// stays at its floor until it begins.
    pub(super) fn follow(&mut self, limits: &[Limit], now_ns: u64) {
        let mut before = std::mem::take(&mut self.joints);
        let nodes = self.members.floors();
        let begins_ns = now_ns.saturating_add(self.memory.terms().silent_ns());
        for limit in limits {
            let Some(joint) = Joint::of(limit, nodes, begins_ns) else {
                continue;
            };
            let same = before.remove(&joint.name).filter(|old| old.is_same(&joint));
            self.joints.insert(joint.name, same.unwrap_or(joint));
        }
        let joints = &self.joints;
        let is_over = |_: &BucketKey, hot: &mut Hot| {
            joints
                .get(&hot.budget.limit)
                .is_none_or(|joint| !joint.has_begun)
        };
        let over: Vec<_> = self.hot.extract_if(is_over).collect();
        for (_, hot) in over {
            hot.forget(now_ns, &mut self.memory);
        }
    }

    /// Looks at what packets want, and asks for it; returns what is to be said.
    pub(super) fn look(&mut self, host: impl Host) -> Said {
        self.looks += 1;
        let now_ns = host.now_ns();
        self.begin(host, now_ns);
        let mut due = DueNow::default();
        let looked = self.look_at_owners(host, now_ns, &mut due);
        let looked = looked.and_then(|()| self.heat_wanting(host, now_ns, &mut due));
        if let Err(error) = looked {
            self.note(&error.to_string(), now_ns);
            return Said::default();
        }
        self.lengthen(host, due.words);
        let mut notes = self.batch(host, now_ns, &due.acts);
        notes.append(&mut due.said);
        if self.looks.is_multiple_of(COOLING_LOOKS) {
            self.cool(host, now_ns);
        }
        Said {
            notes,
            renewals: self.memory.ask_renewals(now_ns),
            strangers: Vec::new(),
        }
    }

    /// Sets words in which the same share ends later.
    fn lengthen(&mut self, host: impl Host, mut words: Vec<(BucketKey, OwnerShare)>) {
        let now_ns = host.now_ns();
        let owners = &self.hot;
        // In a bucket whose word has ended meanwhile tokens are to be counted.
        words.retain(|(key, _)| owners.get(key).is_some_and(|owner| owner.holds(now_ns)));
        if words.is_empty() {
            return;
        }
        let set = host.set_owners(&words);
        for (key, word) in &words {
            match self.hot.get_mut(key) {
                Some(owner) if set.is_ok() => owner.set(*word),
                Some(owner) => owner.fail(&mut self.memory, now_ns),
                None => {}
            }
        }
        if let Err(error) = set {
            self.note(&error.to_string(), now_ns);
        }
    }

    /// Begins with limits when all that was lent is over.
    fn begin(&mut self, host: impl Host, now_ns: u64) {
        for joint in self.joints.values_mut() {
            if !joint.has_begun && now_ns >= joint.begins_ns {
                let begun = host.set_limit(joint.limit.id, self.unknown.word.parts());
                joint.has_begun = begun.is_ok();
                if let Err(error) = begun {
                    joint.note(&error.to_string(), now_ns);
                }
            }
        }
    }

    /// Looks at all owners that have shares of their own, and notes what is due. Those that an earlier daemon has left are hot,
    /// too, and so become what they are at home.
    fn look_at_owners(
        &mut self,
        host: impl Host,
        now_ns: u64,
        due: &mut DueNow,
    ) -> Result<(), DatapathError> {
        let lapses = self.memory.lapses(now_ns);
        let mut seen = 0;
        for (key, share) in host.owners()? {
            let owner = match self.hot.entry(key) {
                Entry::Occupied(place) => place.into_mut(),
                Entry::Vacant(place) => {
                    let new = begun(&self.joints, &self.members, &self.memory, host, &key, share);
                    let Some(new) = new else {
                        continue;
                    };
                    place.insert(new)
                }
            };
            seen += 1;
            owner.look(&share, now_ns, self.memory.id());
            owner.seen = self.looks;
            due.attend(key, owner, now_ns, lapses, &mut self.memory);
        }
        if seen == self.hot.len() {
            return Ok(());
        }
        let looks = self.looks;
        let gone: Vec<_> = (self.hot).extract_if(|_, hot| hot.seen != looks).collect();
        for (_, hot) in gone {
            hot.forget(now_ns, &mut self.memory);
        }
        Ok(())
    }

    /// Heats owners that are the only ones of their limits, for which there is always room, and those of which
    /// packets were refused.
    fn heat_wanting(
        &mut self,
        host: impl Host,
        now_ns: u64,
        due: &mut DueNow,
    ) -> Result<(), DatapathError> {
        let only = self.joints.values().filter(|joint| joint.has_begun);
        let only: Vec<_> = only.filter_map(Joint::only_owner).collect();
        let mut new = self.heat(host, &only, usize::MAX)?;
        let wanting = host.wanting(MOST_HOT.saturating_sub(self.hot.len()))?;
        new.append(&mut self.heat(host, &wanting, MOST_HOT)?);
        for key in new {
            if let Some(hot) = self.hot.get_mut(&key) {
                // Whatever has ceased, it is new.
                due.attend(key, hot, now_ns, 0, &mut self.memory);
            }
        }
        Ok(())
    }

    /// Gives owners words of their own, while there are fewer than `most`; returns which are new.
    fn heat(
        &mut self,
        host: impl Host,
        owners: &[BucketKey],
        most: usize,
    ) -> Result<Vec<BucketKey>, DatapathError> {
        let mut new = Vec::new();
        for key in owners {
            if self.hot.len() >= most {
                break;
            }
            let Entry::Vacant(place) = self.hot.entry(*key) else {
                continue;
            };
            let share = self.unknown;
            if let Some(hot) = begun(&self.joints, &self.members, &self.memory, host, key, share) {
                place.insert(hot);
                new.push((*key, share));
            }
        }
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let set = host.set_owners(&new);
        let now_ns = host.now_ns();
        for (key, share) in &new {
            if set.is_err() {
                self.hot.remove(key);
            } else if let Some(hot) = self.hot.get_mut(key) {
                hot.look(share, now_ns, self.memory.id());
                hot.seen = self.looks;
            }
        }
        set.map(|()| new.into_iter().map(|(key, _)| key).collect())
    }

    /// Hears letters of other nodes; returns what is to be said.
    pub(super) fn hear(&mut self, host: impl Host, letters: &[Letter]) -> Said {
        let now_ns = host.now_ns();
        let mut said = Said::default();
        let (mut acts, mut unknown) = (Vec::new(), Vec::new());
        for letter in letters {
            match self.memory.hear(now_ns, &letter.header) {
                Hearing::Notes => {
                    let (header, renewal) = (&letter.header, &letter.renewal);
                    let answer = self.memory.hear_renewal(now_ns, header, renewal);
                    if !answer.is_none() {
                        said.renewals.push((header.from, answer));
                    }
                    for note in &letter.notes {
                        self.acts_of(&letter.header, note, &mut acts, &mut unknown);
                    }
                }
                Hearing::OtherStart if letter.says_anything() => {
                    said.strangers.push(letter.header.from);
                }
                Hearing::OtherStart | Hearing::None => {}
            }
        }
        if let Err(error) = self.heat(host, &unknown, MOST_HOT) {
            self.note(&error.to_string(), now_ns);
        }
        said.notes = self.batch(host, now_ns, &acts);
        said
    }

    /// Notes what a note asks to do, and the owner if it is not hot. Without its limit, this node has other
    /// terms, or has not read its configuration again yet.
    fn acts_of(
        &self,
        header: &Header,
        note: &Note,
        acts: &mut Vec<(BucketKey, Act)>,
        unknown: &mut Vec<BucketKey>,
    ) {
        let joint = self.joints.get(&note.budget.limit);
        let Some(joint) = joint.filter(|joint| joint.has_begun) else {
            return;
        };
        let Some(key) = joint.key_of(&note.budget.owner) else {
            return;
        };
        let act = match note.message {
            Message::Loan(loan) => Act::Loan(*header, loan),
            Message::Changed => Act::Changed(header.from),
            Message::Ask(ask) => {
                if !self.hot.contains_key(&key) {
                    let stakes = self.members.stakes(&note.budget.bytes());
                    if !stakes.is_bank(self.memory.id())
                        || !self.memory.may_be_new(header, ask.number)
                    {
                        return;
                    }
                    unknown.push(key);
                }
                Act::Ask(*header, ask)
            }
        };
        acts.push((key, act));
    }

    /// Does something with many owners; returns what is to be said.
    fn batch(
        &mut self,
        host: impl Host,
        now_ns: u64,
        acts: &[(BucketKey, Act)],
    ) -> Vec<(NodeId, Note)> {
        let done = batch::run(&mut self.hot, &mut self.memory, host, now_ns, acts);
        for (limit, error) in done.failed {
            if let Some(joint) = self.joints.get_mut(&limit) {
                joint.note(&error, now_ns);
            }
        }
        done.said
    }

    fn note(&mut self, error: &str, now_ns: u64) {
        for joint in self.joints.values_mut() {
            joint.note(error, now_ns);
        }
    }

    /// Takes the words of owners that need nothing.
    fn cool(&mut self, host: impl Host, now_ns: u64) {
        let joints = &self.joints;
        let is_only = |key: &BucketKey, hot: &Hot| {
            let joint = joints.get(&hot.budget.limit);
            joint.and_then(Joint::only_owner).as_ref() == Some(key)
        };
        let memory = &self.memory;
        let is_over = |key: &BucketKey, hot: &mut Hot| {
            !is_only(key, hot) && hot.is_cool(now_ns, COOLING_NS, memory)
        };
        let cool: Vec<_> = self.hot.extract_if(is_over).collect();
        if cool.is_empty() {
            return;
        }
        let keys: Vec<_> = cool.iter().map(|(key, _)| *key).collect();
        for (_, hot) in cool {
            hot.forget(now_ns, &mut self.memory);
        }
        // Those that stay in the kernel are found there at the next look.
        if let Err(error) = host.remove_owners(&keys) {
            self.note(&error.to_string(), now_ns);
        }
    }

    /// Returns whether there are no limits in common.
    pub(super) fn is_idle(&self) -> bool {
        self.joints.is_empty()
    }

    /// Tells what this node has, by the limits' names: of a limit with many owners, what it has of those of which
    /// it knows nothing.
    pub(super) fn status(&self, now_ns: u64) -> BTreeMap<String, FleetShare> {
        let mut hot = BTreeMap::<LimitName, u64>::new();
        for owner in self.hot.values() {
            *hot.entry(owner.budget.limit).or_default() += 1;
        }
        let joints = self.joints.values();
        joints
            .map(|joint| {
                let only_owner = joint.only_owner();
                let only = only_owner.and_then(|key| self.hot.get(&key));
                let share = match only {
                    Some(hot) => hot.share(now_ns),
                    None if joint.has_begun => self.unknown.word.parts(),
                    None => floor_of(self.members.floors()),
                };
                let wanted = only.map_or(0, |hot| hot.wanted.in_billionths());
                let rate = joint.of_share(share);
                let status = FleetShare {
                    share_billionths: u64::from(share.number()) * 100,
                    wanted_billionths: wanted,
                    hot: (only_owner.is_none())
                        .then(|| hot.get(&joint.name).copied().unwrap_or_default()),
                    rate: rate.a_second(),
                    burst: rate.burst,
                    error: joint.error(now_ns),
                };
                (joint.limit.name.clone(), status)
            })
            .collect()
    }

    /// Returns the header of a letter to a node.
    pub(super) fn header(&self, to: NodeId) -> Header {
        self.memory.header(to)
    }

    /// Returns the name of a node.
    pub(super) fn name_of(&self, node: NodeId) -> Option<&str> {
        let index = usize::try_from(node.0).ok()?;
        self.members.names().nth(index)
    }
}

/// Begins with an owner that has a word of its own; `None`: it is of no limit in common.
fn begun(
    joints: &BTreeMap<LimitName, Joint>,
    members: &Members,
    memory: &Memory,
    host: impl Host,
    key: &BucketKey,
    share: OwnerShare,
) -> Option<Hot> {
    let mut joints = joints.values();
    let joint = joints.find(|joint| joint.limit.id.0 == key.limit && joint.has_begun)?;
    let whole = host.lever(key)?.tokens_in(WHOLE_NS);
    let budget = joint.budget_of(key);
    let stakes = members.stakes(&budget.bytes());
    Some(Hot::new(budget, stakes, memory.id(), share, whole))
}
