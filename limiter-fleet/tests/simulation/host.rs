//! A host: the daemon's work for each owner, and the buckets that outlive a crash of the daemon.

use limiter_fleet::{
    Boot, Header, Members, Memory, Node, NodeId, Payload, Renewal, Share, Stakes, Terms,
};

use super::{
    bucket::{Budget, NodeBucket},
    world::wanted,
};

/// The owners of a world, all with budgets of one limit.
pub(crate) struct Owners {
    pub(crate) budget: Budget,
    /// Each node's share of an unknown budget.
    unknown: Share,
    nodes: u32,
    terms: Terms,
    stakes: Vec<Stakes>,
}

impl Owners {
    pub(crate) fn new(members: &Members, terms: Terms, count: usize, budget: Budget) -> Self {
        let stakes = (0..count).map(|owner| members.stakes(&owner.to_be_bytes()));
        Self {
            budget,
            unknown: members.share_of_unknown(),
            nodes: members.count(),
            terms,
            stakes: stakes.collect(),
        }
    }

    pub(crate) const fn count(&self) -> usize {
        self.stakes.len()
    }
}

/// A host's part in one owner's budget.
pub(crate) struct Part {
    /// `None`: the daemon does not know the owner.
    node: Option<Node>,
    /// The earliest start of the daemon's part in it: by then, the loans that it has lost count of are
    /// over.
    begins: u64,
    pub(crate) bucket: NodeBucket,
    /// Whether the programs have a share set for this owner.
    has_word: bool,
    /// In tokens a second.
    pub(crate) demand: u64,
    /// Remaining demand, below one token.
    pub(crate) rest: u64,
}

pub(crate) struct Host {
    pub(crate) memory: Memory,
    id: NodeId,
    nodes: u32,
    pub(crate) boot: u64,
    pub(crate) terms: Terms,
    /// How long a daemon is silent after its start, and until when, by its clock.
    pub(crate) silent_ns: u64,
    silent_until: u64,
    /// Whether the programs have the default share for all other owners.
    has_default: bool,
    pub(crate) parts: Vec<Part>,
    offset: u64,
    drift_ppm: i64,
    /// Until these times the daemon is down, stalled, or cut off from the network.
    pub(crate) down_until: Option<u64>,
    pub(crate) stalled_until: u64,
    pub(crate) cut_until: u64,
    pub(crate) admitted: u64,
    pub(crate) forgotten: u64,
}

/// A payload from one node to another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content {
    /// About one owner.
    Entry(usize, Payload),
    /// About all loans at once.
    Renewal(Renewal),
    /// Only the sender's current start.
    Nothing,
}

#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) outgoing: Vec<(NodeId, Content)>,
    pub(crate) has_grown: bool,
    pub(crate) is_renewed: bool,
}

impl Host {
    pub(crate) fn new(id: NodeId, offset: u64, drift_ppm: i64, owners: &Owners) -> Self {
        let terms = owners.terms;
        let parts = owners.stakes.iter().map(|stakes| Part {
            node: None,
            begins: 0,
            bucket: NodeBucket::new(owners.budget, stakes.floor(), offset),
            has_word: false,
            demand: 0,
            rest: 0,
        });
        Self {
            memory: Memory::new(offset, id, Boot(1), terms, owners.nodes),
            id,
            nodes: owners.nodes,
            boot: 1,
            terms,
            silent_ns: terms.silent_ns(),
            silent_until: offset + terms.silent_ns(),
            has_default: false,
            parts: parts.collect(),
            offset,
            drift_ppm,
            down_until: None,
            stalled_until: 0,
            cut_until: 0,
            admitted: 0,
            forgotten: 0,
        }
    }

    pub(crate) fn local(&self, now: u64) -> u64 {
        let drift = i128::from(now) * i128::from(self.drift_ppm) / 1_000_000;
        let local = i128::from(self.offset) + i128::from(now) + drift;
        u64::try_from(local).expect("clocks begin late")
    }

    /// Starts the daemon. The programs keep their shares.
    pub(crate) fn start(&mut self, boot: Boot, local: u64) {
        self.down_until = None;
        self.boot = boot.0;
        self.memory = Memory::new(local, self.id, boot, self.terms, self.nodes);
        self.silent_until = local + self.silent_ns;
        for part in &mut self.parts {
            part.node = None;
            part.begins = 0;
        }
    }

    /// Makes the daemon lose count of a budget, as after a refused kernel update.
    pub(crate) fn lose_count(&mut self, local: u64, owner: usize) {
        let part = &mut self.parts[owner];
        if let Some(node) = part.node.take() {
            node.forget(local, &mut self.memory);
            part.begins = local + self.terms.lent_ns();
        }
    }

    /// Handles a payload that counts.
    pub(crate) fn receive(
        &mut self,
        local: u64,
        header: &Header,
        content: &Content,
        owners: &Owners,
    ) -> Outcome {
        let mut outcome = Outcome::default();
        if local < self.silent_until {
            return outcome;
        }
        match content {
            Content::Entry(owner, payload) => {
                self.receive_entry(local, header, (*owner, payload), owners, &mut outcome);
                self.parts[*owner].follow(local, &self.memory);
            }
            Content::Renewal(renewal) => {
                let reply = self.memory.receive_renewal(local, header, renewal);
                outcome.is_renewed = renewal.replied.is_some();
                if !reply.is_none() {
                    outcome
                        .outgoing
                        .push((header.from, Content::Renewal(reply)));
                }
                for part in &mut self.parts {
                    part.lengthen(local, &self.memory);
                }
            }
            Content::Nothing => {}
        }
        outcome
    }

    fn receive_entry(
        &mut self,
        local: u64,
        header: &Header,
        (owner, payload): (usize, &Payload),
        owners: &Owners,
        outcome: &mut Outcome,
    ) {
        let part = &mut self.parts[owner];
        let demand = wanted(part.demand, owners.budget);
        let mut send = |to: NodeId, payload: Payload| {
            outcome.outgoing.push((to, Content::Entry(owner, payload)));
        };
        match payload {
            Payload::Request(request) => {
                let is_bank = owners.stakes[owner].is_bank(self.id);
                let may_begin = part.node.is_none() && local >= part.begins;
                if may_begin && is_bank && self.memory.may_be_new(header, request.number) {
                    part.node = Some(Node::new(&owners.stakes[owner], self.id));
                }
                let Some(node) = &mut part.node else {
                    return;
                };
                node.receive_request(local, (header, request), &self.memory, &mut part.bucket);
                node.reply(local, demand, &self.memory, &mut part.bucket, send);
            }
            Payload::Loan(loan) => {
                let before = part.bucket.share(local);
                if let Some(node) = &mut part.node {
                    node.receive_loan(local, (header, loan), &mut self.memory, &mut part.bucket);
                    outcome.has_grown = node.in_force(local, &self.memory).share > before;
                }
            }
            Payload::Changed(share) => {
                if let Some(node) = &mut part.node {
                    node.receive_changed(header.from, *share);
                    let requests = node.request(local, demand, &mut self.memory, &mut part.bucket);
                    for (to, request) in requests {
                        send(to, Payload::Request(request));
                    }
                }
            }
        }
    }

    /// Does the daemon's work of a fifth of a second; returns the requests to send.
    pub(crate) fn tick(
        &mut self,
        local: u64,
        owners: &Owners,
        may_forget: bool,
    ) -> Vec<(NodeId, Content)> {
        let mut content = Vec::new();
        if local < self.silent_until {
            return content;
        }
        let has_default = std::mem::replace(&mut self.has_default, true);
        for (owner, (part, stakes)) in self.parts.iter_mut().zip(&owners.stakes).enumerate() {
            if !has_default && !part.has_word {
                part.bucket.becomes_home(local, owners.unknown);
            }
            let demand = wanted(part.demand, owners.budget);
            // Correct shares that an earlier daemon has left, and request shares that packets need.
            let may_begin = part.node.is_none() && local >= part.begins;
            if may_begin && (part.has_word || demand > part.bucket.share(local)) {
                part.node = Some(Node::new(stakes, self.id));
            }
            let Some(node) = &mut part.node else {
                continue;
            };
            let requests = node.request(local, demand, &mut self.memory, &mut part.bucket);
            let mut send = |to, payload| content.push((to, Content::Entry(owner, payload)));
            for (to, request) in requests {
                send(to, Payload::Request(request));
            }
            node.reply(local, demand, &self.memory, &mut part.bucket, send);
            node.record_use(local, &mut self.memory);
            if may_forget {
                node.tidy(local, &mut self.memory);
            }
            let is_over = may_forget
                && demand <= stakes.home(self.id)
                && node.is_at_home(local, &self.memory);
            if is_over && let Some(node) = part.node.take() {
                node.forget(local, &mut self.memory);
                part.bucket.becomes_home(local, owners.unknown);
                part.has_word = false;
                self.forgotten += 1;
            }
            part.follow(local, &self.memory);
        }
        let renewals = self.memory.request_renewals(local).into_iter();
        content.extend(renewals.map(|(to, renewal)| (to, Content::Renewal(renewal))));
        content
    }
}

impl Part {
    /// Lets the programs keep an unchanged share for longer.
    fn lengthen(&mut self, local: u64, memory: &Memory) {
        let share = self.bucket.share(local);
        if let Some(node) = &self.node
            && node.in_force(local, memory).share == share
        {
            self.follow(local, memory);
        }
    }

    /// Sets in the programs until when the share holds.
    fn follow(&mut self, local: u64, memory: &Memory) {
        if let Some(node) = &self.node {
            self.bucket.ends(node.in_force(local, memory));
            self.has_word = true;
        }
    }
}
