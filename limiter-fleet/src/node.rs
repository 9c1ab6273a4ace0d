//! A node's part in one budget: its home share, its loans and its borrowing.

use crate::{
    Bucket, Header, Loan, Memory, NodeId, Payload, Request, Share, Stakes, bank::Bank,
    borrower::Borrower,
};

/// One node's part in one budget.
#[derive(Debug)]
pub struct Node {
    floor: Share,
    /// `None`: the node is not a bank of this budget.
    bank: Option<Bank>,
    /// Sorted by bank.
    borrowers: Vec<Borrower>,
    /// The share that the bucket was last set to.
    reported: Share,
}

/// A node's usable share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The share.
    pub share: Share,
    /// When a part of it ends, by the node's clock, in nanoseconds; `None`: no part does by itself.
    pub until: Option<u64>,
    /// The part that is the node's own and does not end.
    pub own: Share,
}

/// `clone_from` reuses allocations: daemons plan the steps of many nodes, one after another.
impl Clone for Node {
    fn clone(&self) -> Self {
        Self {
            floor: self.floor,
            bank: self.bank.clone(),
            borrowers: self.borrowers.clone(),
            reported: self.reported,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        (self.floor, self.reported) = (source.floor, source.reported);
        self.bank.clone_from(&source.bank);
        self.borrowers.clone_from(&source.borrowers);
    }
}

impl Node {
    /// Starts with the node's home share. No earlier loan of this budget may still run, whether of an
    /// earlier start or of a dropped `Node`. So a starting daemon stays silent for
    /// [`Terms::lent_ns`](crate::Terms::lent_ns).
    #[must_use]
    pub fn new(stakes: &Stakes, id: NodeId) -> Self {
        let others = stakes.banks.iter().filter(|bank| **bank != id);
        Self {
            floor: stakes.floor(),
            bank: stakes.is_bank(id).then(|| Bank::open(stakes.capital())),
            borrowers: others.map(|bank| Borrower::new(*bank)).collect(),
            reported: Share::NONE,
        }
    }

    /// Returns the node's usable share.
    #[must_use]
    pub fn in_force(&self, now: u64, memory: &Memory) -> InForce {
        let own = self.floor + self.own(now, memory);
        let borrowed = self
            .borrowers
            .iter()
            .map(|borrower| borrower.held(now, memory));
        let ends = self
            .borrowers
            .iter()
            .filter_map(|borrower| borrower.ends(now, memory));
        InForce {
            share: own + borrowed.sum(),
            until: ends.min(),
            own,
        }
    }

    fn own(&self, now: u64, memory: &Memory) -> Share {
        self.bank
            .as_ref()
            .map_or(Share::NONE, |bank| bank.own(now, memory))
    }

    /// Sets the bucket to the usable share. Call it whenever a loan ends.
    pub fn settle(&mut self, now: u64, memory: &Memory, bucket: &mut impl Bucket) {
        self.reported = self.in_force(now, memory).share;
        bucket.change(now, self.reported, 0);
    }

    /// Requests the missing share: with `demand`, the node would refuse no packet. Returns the requests,
    /// each with its bank.
    pub fn request(
        &mut self,
        now: u64,
        demand: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) -> Vec<(NodeId, Request)> {
        self.settle(now, memory, bucket);
        let (more, mut less) = self.lacks(now, demand, memory);
        let mut requests = Vec::new();
        for borrower in &mut self.borrowers {
            let held = borrower.held(now, memory);
            let back = held.min(less);
            let wants = held.without(back) + more;
            if let Some(request) = borrower.request(now, wants, self.reported, memory, bucket) {
                less = less.without(back);
                self.reported = self.reported.without(held.without(request.keeps));
                requests.push((borrower.bank, request));
            }
        }
        requests
    }

    /// Returns how much more the node needs of each bank, and how much less of all banks together.
    fn lacks(&self, now: u64, demand: Share, memory: &Memory) -> (Share, Share) {
        let wanted = demand.without(self.floor + self.own(now, memory));
        let all: Share = (self.borrowers.iter())
            .map(|borrower| borrower.held(now, memory))
            .sum();
        let more = wanted.without(all).divided(self.borrowers.len() as u64);
        (more, all.without(wanted))
    }

    /// Returns whether [`Self::request`] would send a request, or [`Self::reply`] would reply.
    #[must_use]
    pub fn would_act(&self, now: u64, demand: Share, memory: &Memory) -> bool {
        let (more, less) = self.lacks(now, demand, memory);
        let own_want = demand.without(self.floor);
        let mut banks = self.bank.iter();
        banks.any(|bank| bank.would_reply(now, own_want, memory))
            || self.borrowers.iter().any(|borrower| {
                let held = borrower.held(now, memory);
                let wants = held.without(held.min(less)) + more;
                borrower.would_request(now, wants, memory)
            })
    }

    /// Returns until when there is nothing to do, at unchanged demand and [`Memory::lapses`], and without a
    /// message about the budget.
    #[must_use]
    pub fn calm_until(&self, now: u64, memory: &Memory) -> u64 {
        let borrowers = self.borrowers.iter();
        let borrowed = borrowers.map(|borrower| borrower.calm_until(now, memory));
        let lent = self.bank.iter().map(|bank| bank.calm_until(now, memory));
        borrowed.chain(lent).min().unwrap_or(u64::MAX)
    }

    /// Records a request to this node's bank, from a message that [counts](crate::Relevance::Entries):
    /// [`Self::reply`] replies to it.
    pub fn receive_request(
        &mut self,
        now: u64,
        requested: (&Header, &Request),
        memory: &Memory,
        bucket: &mut impl Bucket,
    ) {
        self.settle(now, memory, bucket);
        if let Some(bank) = &mut self.bank {
            self.reported = bank.receive(now, requested, self.reported, memory, bucket);
        }
    }

    /// Sends the bank's replies, and hints that it would reply differently now. Call it after a request,
    /// when the node's own demand changes, and now and then. The node's own demand, as in [`Self::request`],
    /// counts like any borrower's.
    pub fn reply(
        &mut self,
        now: u64,
        demand: Share,
        memory: &Memory,
        bucket: &mut impl Bucket,
        mut send: impl FnMut(NodeId, Payload),
    ) {
        let own_want = demand.without(self.floor);
        if let Some(bank) = self.bank.as_mut().filter(|bank| !bank.is_idle()) {
            for (to, loan) in bank.replies(now, own_want, self.reported, memory, bucket) {
                send(to, Payload::Loan(loan));
            }
            self.reported = self.in_force(now, memory).share;
        }
        self.hint(now, demand, memory, send);
    }

    /// Sends the hints of [`Self::reply`], without replies.
    pub fn hint(
        &mut self,
        now: u64,
        demand: Share,
        memory: &Memory,
        mut send: impl FnMut(NodeId, Payload),
    ) {
        let own_want = demand.without(self.floor);
        if let Some(bank) = self.bank.as_mut().filter(|bank| !bank.is_idle()) {
            for (to, share) in bank.changed(now, own_want, memory) {
                send(to, Payload::Changed(share));
            }
        }
    }

    /// Records a reply, from a message that [counts](crate::Relevance::Entries).
    pub fn receive_loan(
        &mut self,
        now: u64,
        (header, loan): (&Header, &Loan),
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) {
        self.settle(now, memory, bucket);
        let found = (self.borrowers).binary_search_by_key(&header.from, |borrower| borrower.bank);
        let Some(borrower) = found.ok().and_then(|found| self.borrowers.get_mut(found)) else {
            return;
        };
        borrower.take(now, loan, self.reported, memory, bucket);
        self.reported = self.in_force(now, memory).share;
    }

    /// Returns whether [`Self::receive_loan`] would keep the bucket at least as large: the loan is no smaller
    /// than the node's current share of that bank.
    #[must_use]
    pub fn loses_nothing(&self, now: u64, header: &Header, loan: &Loan, memory: &Memory) -> bool {
        let of_bank = |borrower: &&Borrower| borrower.bank == header.from;
        let borrower = self.borrowers.iter().find(of_bank);
        borrower.is_none_or(|borrower| loan.share >= borrower.held(now, memory))
    }

    /// Records a bank's hint of its present reply, from a message that [counts](crate::Relevance::Entries):
    /// [`Self::request`] sends a request again.
    pub fn receive_changed(&mut self, from: NodeId, share: Share) {
        let found = (self.borrowers).binary_search_by_key(&from, |borrower| borrower.bank);
        if let Some(borrower) = found.ok().and_then(|found| self.borrowers.get_mut(found)) {
            borrower.request_again(share);
        }
    }

    /// Marks running loans for renewal. Call it at least once in half the time of a loan.
    pub fn record_use(&mut self, now: u64, memory: &mut Memory) {
        for borrower in &mut self.borrowers {
            borrower.record_use(now, memory);
        }
    }

    /// Forgets borrowers without a loan.
    pub fn tidy(&mut self, now: u64, memory: &mut Memory) {
        if let Some(bank) = &mut self.bank {
            bank.tidy(now, memory);
        }
    }

    /// Returns whether the node has exactly its home share, with nothing lent or borrowed. It may then be
    /// forgotten, once the bucket is set to that share.
    #[must_use]
    pub fn is_at_home(&self, now: u64, memory: &Memory) -> bool {
        let has_lent = self.bank.as_ref().is_some_and(|bank| !bank.is_idle());
        let mut borrowers = self.borrowers.iter();
        !has_lent
            && borrowers.all(|borrower| {
                borrower.ends(now, memory).is_none() && !borrower.may_owe(now, memory)
            })
    }

    /// Ends the part in the budget. The memory keeps the numbers of borrowers' requests, but no loan:
    /// until all loans are over, do not create another `Node` of this budget.
    pub fn forget(mut self, now: u64, memory: &mut Memory) {
        if let Some(bank) = &mut self.bank {
            bank.close(now, memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Boot, Members, Relevance, Terms};

    /// Sums the tokens added, and returns none.
    #[derive(Default)]
    struct Gained(u64);

    impl Bucket for Gained {
        fn change(&mut self, _now_ns: u64, _to: Share, gained_millitokens: u64) -> u64 {
            self.0 += gained_millitokens;
            0
        }
    }

    const BANK: NodeId = NodeId(0);
    const BORROWER: NodeId = NodeId(1);

    fn request(number: u64) -> Request {
        Request {
            number,
            keeps: Share::NONE,
            returned_millitokens: 1_000,
            wants: Share::billionths(1_000_000),
        }
    }

    /// Makes a node handle a request; returns the reply.
    fn reply(
        node: &mut Node,
        now: u64,
        (header, number): (&Header, u64),
        memory: &Memory,
        bucket: &mut Gained,
    ) -> Option<Loan> {
        let mut reply = None;
        node.receive_request(now, (header, &request(number)), memory, bucket);
        node.reply(now, Share::NONE, memory, bucket, |_, payload| {
            if let Payload::Loan(loan) = payload {
                reply = Some(loan);
            }
        });
        reply
    }

    /// An old request may arrive again after the bank has forgotten the budget.
    #[test]
    fn a_request_counts_once_also_when_its_budget_is_forgotten() {
        let members = Members::new(["a", "b"].map(str::to_owned)).unwrap();
        let stakes = members.stakes(b"owner");
        let terms = Terms::DEFAULT;
        let mut memory = Memory::new(0, BANK, Boot(5), terms, members.count());
        let header = Header {
            from: BORROWER,
            to: BANK,
            boot: Boot(7),
            to_boot: Boot(5),
        };
        assert_eq!(memory.receive(0, &header), Relevance::Entries);
        let mut bucket = Gained::default();
        let mut node = Node::new(&stakes, BANK);
        for number in [3, 4, 4, 3] {
            reply(&mut node, 0, (&header, number), &memory, &mut bucket);
        }
        assert_eq!(bucket.0, 2_000);
        node.tidy(terms.lent_ns() - 1, &mut memory);
        assert!(!node.is_at_home(terms.lent_ns() - 1, &memory));
        node.tidy(terms.lent_ns(), &mut memory);
        assert!(node.is_at_home(terms.lent_ns(), &memory));
        node.forget(terms.lent_ns(), &mut memory);
        let mut node = Node::new(&stakes, BANK);
        for number in [1, 2, 3, 4] {
            assert!(!memory.may_be_new(&header, number));
            let reply = reply(&mut node, 0, (&header, number), &memory, &mut bucket);
            assert_eq!(reply, None);
        }
        assert_eq!(bucket.0, 2_000);
        // Later requests are new, about any budget.
        assert!(reply(&mut node, 0, (&header, 5), &memory, &mut bucket).is_some());
        node.forget(terms.lent_ns(), &mut memory);
        assert!(!memory.may_be_new(&header, 5));
        // Requests of an earlier start never are.
        let earlier = Header {
            boot: Boot(6),
            ..header
        };
        assert!(!memory.may_be_new(&earlier, 99));
        // A request to another start of the bank does not count.
        let mut later = Memory::new(0, BANK, Boot(6), terms, members.count());
        assert_eq!(later.receive(0, &header), Relevance::OtherStart);
        let header = Header {
            from: BANK,
            ..header
        };
        assert_eq!(later.receive(0, &header), Relevance::None);
    }
}
