//! A node: what it has by itself, lends and borrows, of one budget.

use std::collections::BTreeMap;

use crate::{
    Ask, Boot, Bucket, Loan, NodeId, Share, Stakes, Terms, bank::Bank, borrower::Borrower,
};

/// One node's part in one budget.
#[derive(Clone, Debug)]
pub struct Node {
    id: NodeId,
    boot: Boot,
    terms: Terms,
    floor: Share,
    bank: Option<Bank>,
    borrowers: BTreeMap<NodeId, Borrower>,
    /// What the node itself needs, as it was last told.
    demand: Share,
    /// What the bucket was last told to have.
    told: Share,
    /// How many nodes there are.
    nodes: u32,
}

/// What a node may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The share.
    pub share: Share,
    /// When some of it ends, by the node's clock, in nanoseconds; `None`: none does by itself. From then
    /// on, nobody who cannot ask this node may assume more than its floor.
    pub until: Option<u64>,
}

impl Node {
    /// Begins as a node of a fleet, for one owner's budget. `boot` is higher than in all earlier starts of
    /// this node. Until loans of an earlier start are over the node has its floor alone, which the
    /// bucket must have from the start.
    #[must_use]
    pub fn new(stakes: &Stakes, id: NodeId, boot: Boot, terms: Terms, now: u64) -> Self {
        let is_bank = stakes.banks.contains(&id);
        let bank = is_bank.then(|| Bank::open(stakes.capital(), terms, boot, now));
        let others = stakes.banks.iter().filter(|bank| **bank != id);
        Self {
            id,
            boot,
            terms,
            floor: stakes.floor(),
            bank,
            borrowers: others.map(|bank| (*bank, Borrower::new(*bank))).collect(),
            demand: Share::NONE,
            told: stakes.floor(),
            nodes: stakes.nodes,
        }
    }

    /// Returns what the node may use.
    #[must_use]
    pub fn in_force(&self, now: u64) -> InForce {
        let own = self.bank.as_ref().map_or(Share::NONE, |bank| bank.own(now));
        let borrowed = self.borrowers.values().map(|borrower| borrower.held(now));
        let ends = self
            .borrowers
            .values()
            .filter_map(|borrower| borrower.ends(now));
        InForce {
            share: self.floor + own + borrowed.sum(),
            until: ends.min(),
        }
    }

    /// Gives the bucket what is in force: to be called whenever something is over.
    pub fn settle(&mut self, now: u64, bucket: &mut impl Bucket) {
        self.told = self.in_force(now).share;
        bucket.change(now, self.told, 0);
    }

    /// Asks for what the node needs: `demand` is the share with which it would refuse nobody.
    pub fn ask(&mut self, now: u64, demand: Share, bucket: &mut impl Bucket) -> Vec<Ask> {
        self.settle(now, bucket);
        self.demand = demand;
        let own = self.bank.as_ref().map_or(Share::NONE, |bank| bank.own(now));
        let wanted = demand.without(self.floor + own);
        let held = |borrower: &Borrower| borrower.held(now);
        let all: Share = self.borrowers.values().map(held).sum();
        let more = wanted.without(all).divided(self.borrowers.len() as u64);
        let mut less = all.without(wanted);
        let mut asks = Vec::new();
        for borrower in self.borrowers.values_mut() {
            let held = borrower.held(now);
            let back = held.min(less);
            let wants = held.without(back) + more;
            let me = (self.id, self.boot);
            let ask = borrower.ask(now, me, wants, self.told, &self.terms, bucket);
            if let Some(ask) = ask {
                less = less.without(back);
                self.told = self.told.without(held.without(ask.keeps));
                asks.push(ask);
            }
        }
        asks
    }

    /// Hears a question to its bank; returns the answer.
    pub fn hear_ask(&mut self, now: u64, ask: &Ask, bucket: &mut impl Bucket) -> Option<Loan> {
        let is_from_another = ask.from != self.id && ask.from.0 < self.nodes;
        if ask.to != self.id || !is_from_another {
            return None;
        }
        self.settle(now, bucket);
        let own_want = self.demand.without(self.floor);
        let bank = self.bank.as_mut()?;
        let loan = bank.answer(now, ask, own_want, self.told, bucket);
        // The bank has told the bucket.
        self.told = self.in_force(now).share;
        loan
    }

    /// Hears an answer.
    pub fn hear_loan(&mut self, now: u64, loan: &Loan, bucket: &mut impl Bucket) {
        if loan.to != self.id || loan.boot != self.boot {
            return;
        }
        self.settle(now, bucket);
        let Some(borrower) = self.borrowers.get_mut(&loan.from) else {
            return;
        };
        borrower.take(now, loan, self.told, &self.terms, bucket);
        self.told = self.in_force(now).share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Members;

    /// Counts what is put in. Whatever goes takes half a token along.
    #[derive(Default)]
    struct Counting {
        share: Share,
        gained: u64,
    }

    impl Bucket for Counting {
        fn change(&mut self, _now_ns: u64, to: Share, gained_millitokens: u64) -> u64 {
            let lost = if to < self.share { 500 } else { 0 };
            self.share = to;
            self.gained += gained_millitokens;
            lost
        }
    }

    fn node(id: u32, boot: u64, now: u64) -> Node {
        let names = ["a", "b"].map(str::to_owned);
        let stakes = Members::new(names).unwrap().stakes(b"owner");
        Node::new(&stakes, NodeId(id), Boot(boot), Terms::DEFAULT, now)
    }

    /// The node `from` asks for a share; returns its question, and what its bank was given back.
    fn asks(from: &mut Node, bank: &mut Node, now: u64, demand: Share) -> (Ask, u64) {
        let mut bucket = Counting {
            share: from.told,
            gained: 0,
        };
        let ask = from.ask(now, demand, &mut bucket)[0];
        let (loan, given_back) = hears(bank, now, &ask);
        from.hear_loan(now, &loan.unwrap(), &mut bucket);
        (ask, given_back)
    }

    fn hears(bank: &mut Node, now: u64, ask: &Ask) -> (Option<Loan>, u64) {
        let mut bucket = Counting {
            share: bank.told,
            gained: 0,
        };
        let loan = bank.hear_ask(now, ask, &mut bucket);
        (loan, bucket.gained)
    }

    #[test]
    fn what_was_given_back_to_an_earlier_start_is_not_given_back_again() {
        let less = Share::WHOLE.divided(2);
        let later = 2 * Terms::DEFAULT.lent_ns();
        let mut borrower = node(1, 1, 0);
        let mut bank = node(0, 1, 0);
        let (first, none) = asks(&mut borrower, &mut bank, later, Share::WHOLE);
        let (second, some) = asks(&mut borrower, &mut bank, later + 1, less);
        assert_eq!((none, some), (0, 500));
        assert_eq!(second.returned_millitokens, 500);

        // It starts anew, and whoever can write to the store repeats both.
        let mut bank = node(0, 2, later + 2);
        let now = 2 * later;
        for old in [&first, &second] {
            let (loan, given_back) = hears(&mut bank, now, old);
            assert_eq!(given_back, 0);
            // Nobody takes it.
            let before = borrower.clone();
            borrower.hear_loan(now, &loan.unwrap(), &mut Counting::default());
            assert_eq!(borrower.in_force(now), before.in_force(now));
        }
        // The borrower goes on with the new start, and gives back to it.
        let (_, none) = asks(&mut borrower, &mut bank, now, Share::WHOLE);
        let (_, some) = asks(&mut borrower, &mut bank, now + 1, less);
        assert_eq!((none, some), (0, 500));
    }
}
