//! A node's part in one budget: what it has by itself, lends and borrows.

use crate::{
    Ask, Bucket, Header, Loan, Memory, Message, NodeId, Share, Stakes, bank::Bank,
    borrower::Borrower,
};

/// One node's part in one budget.
#[derive(Debug)]
pub struct Node {
    floor: Share,
    /// `None`: the node is no bank of this budget.
    bank: Option<Bank>,
    /// By their banks, in order.
    borrowers: Vec<Borrower>,
    /// What the bucket was last told to have.
    told: Share,
}

/// What a node may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// The share.
    pub share: Share,
    /// When some of it ends, by the node's clock, in nanoseconds; `None`: none does by itself.
    pub until: Option<u64>,
    /// The part that is its own, and so stays then.
    pub own: Share,
}

/// `clone_from` keeps what the other has allocated: daemons rehearse what many nodes do, one after another.
impl Clone for Node {
    fn clone(&self) -> Self {
        Self {
            floor: self.floor,
            bank: self.bank.clone(),
            borrowers: self.borrowers.clone(),
            told: self.told,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        (self.floor, self.told) = (source.floor, source.told);
        self.bank.clone_from(&source.bank);
        self.borrowers.clone_from(&source.borrowers);
    }
}

impl Node {
    /// Begins with what the node has at home. Nothing may be lent or borrowed any more of what this node lent
    /// or borrowed before: by an earlier start, or a `Node` of the same budget that was dropped. So after a
    /// start it is silent for [`Terms::lent_ns`](crate::Terms::lent_ns).
    #[must_use]
    pub fn new(stakes: &Stakes, id: NodeId) -> Self {
        let others = stakes.banks.iter().filter(|bank| **bank != id);
        Self {
            floor: stakes.floor(),
            bank: stakes.is_bank(id).then(|| Bank::open(stakes.capital())),
            borrowers: others.map(|bank| Borrower::new(*bank)).collect(),
            told: Share::NONE,
        }
    }

    /// Returns what the node may use.
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

    /// Gives the bucket what is in force: to be called whenever something is over.
    pub fn settle(&mut self, now: u64, memory: &Memory, bucket: &mut impl Bucket) {
        self.told = self.in_force(now, memory).share;
        bucket.change(now, self.told, 0);
    }

    /// Asks for what the node needs: `demand` is the share with which it would refuse nobody. Returns the
    /// questions, each with the bank that it is to.
    pub fn ask(
        &mut self,
        now: u64,
        demand: Share,
        memory: &mut Memory,
        bucket: &mut impl Bucket,
    ) -> Vec<(NodeId, Ask)> {
        self.settle(now, memory, bucket);
        let (more, mut less) = self.lacks(now, demand, memory);
        let mut asks = Vec::new();
        for borrower in &mut self.borrowers {
            let held = borrower.held(now, memory);
            let back = held.min(less);
            let wants = held.without(back) + more;
            if let Some(ask) = borrower.ask(now, wants, self.told, memory, bucket) {
                less = less.without(back);
                self.told = self.told.without(held.without(ask.keeps));
                asks.push((borrower.bank, ask));
            }
        }
        asks
    }

    /// Returns how much more the node needs of each bank, and how much less of all together.
    fn lacks(&self, now: u64, demand: Share, memory: &Memory) -> (Share, Share) {
        let wanted = demand.without(self.floor + self.own(now, memory));
        let all: Share = (self.borrowers.iter())
            .map(|borrower| borrower.held(now, memory))
            .sum();
        let more = wanted.without(all).divided(self.borrowers.len() as u64);
        (more, all.without(wanted))
    }

    /// Returns whether [`Self::ask`] would ask anybody, or [`Self::speak`] answer.
    #[must_use]
    pub fn would_act(&self, now: u64, demand: Share, memory: &Memory) -> bool {
        let (more, less) = self.lacks(now, demand, memory);
        let own_want = demand.without(self.floor);
        let mut banks = self.bank.iter();
        banks.any(|bank| bank.would_answer(now, own_want, memory))
            || self.borrowers.iter().any(|borrower| {
                let held = borrower.held(now, memory);
                let wants = held.without(held.min(less)) + more;
                borrower.would_ask(now, wants, memory)
            })
    }

    /// Returns until when there is nothing to do, if the demand stays as it is, no letter about the budget comes, and
    /// [`Memory::lapses`] stays the same.
    #[must_use]
    pub fn calm_until(&self, now: u64, memory: &Memory) -> u64 {
        let borrowers = self.borrowers.iter();
        let borrowed = borrowers.map(|borrower| borrower.calm_until(now, memory));
        let lent = self.bank.iter().map(|bank| bank.calm_until(now, memory));
        borrowed.chain(lent).min().unwrap_or(u64::MAX)
    }

    /// Hears a question to its bank, in a letter whose notes count: [`Self::speak`] answers it.
    pub fn hear_ask(
        &mut self,
        now: u64,
        asked: (&Header, &Ask),
        memory: &Memory,
        bucket: &mut impl Bucket,
    ) {
        self.settle(now, memory, bucket);
        if let Some(bank) = &mut self.bank {
            self.told = bank.hear(now, asked, self.told, memory, bucket);
        }
    }

    /// Says what its bank has to say: answers to questions, and hints that a question would be answered otherwise now. To be
    /// called when it has heard a question, when this node needs another share, and now and then. The node's own demand, as
    /// in [`Self::ask`], counts as what another wants does.
    pub fn speak(
        &mut self,
        now: u64,
        demand: Share,
        memory: &Memory,
        bucket: &mut impl Bucket,
        mut say: impl FnMut(NodeId, Message),
    ) {
        let own_want = demand.without(self.floor);
        if let Some(bank) = self.bank.as_mut().filter(|bank| !bank.is_idle()) {
            for (to, loan) in bank.answers(now, own_want, self.told, memory, bucket) {
                say(to, Message::Loan(loan));
            }
            self.told = self.in_force(now, memory).share;
        }
        self.hint(now, demand, memory, say);
    }

    /// Says the hints of [`Self::speak`], and answers nothing.
    pub fn hint(
        &mut self,
        now: u64,
        demand: Share,
        memory: &Memory,
        mut say: impl FnMut(NodeId, Message),
    ) {
        let own_want = demand.without(self.floor);
        if let Some(bank) = self.bank.as_mut().filter(|bank| !bank.is_idle()) {
            for (to, share) in bank.changed(now, own_want, memory) {
                say(to, Message::Changed(share));
            }
        }
    }

    /// Hears an answer, in a letter whose notes count.
    pub fn hear_loan(
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
        borrower.take(now, loan, self.told, memory, bucket);
        self.told = self.in_force(now, memory).share;
    }

    /// Returns whether [`Self::hear_loan`] would leave the bucket no less than what is in force: the loan is no smaller than what
    /// the node has of that bank.
    #[must_use]
    pub fn loses_nothing(&self, now: u64, header: &Header, loan: &Loan, memory: &Memory) -> bool {
        let of_bank = |borrower: &&Borrower| borrower.bank == header.from;
        let borrower = self.borrowers.iter().find(of_bank);
        borrower.is_none_or(|borrower| loan.share >= borrower.held(now, memory))
    }

    /// Hears that a bank would answer that now, in a letter whose notes count: [`Self::ask`] asks it.
    pub fn hear_changed(&mut self, from: NodeId, share: Share) {
        let found = (self.borrowers).binary_search_by_key(&from, |borrower| borrower.bank);
        if let Some(borrower) = found.ok().and_then(|found| self.borrowers.get_mut(found)) {
            borrower.ask_again(share);
        }
    }

    /// Notes what is to be renewed: to be called at least once in half the time of a loan.
    pub fn note_use(&mut self, now: u64, memory: &mut Memory) {
        for borrower in &mut self.borrowers {
            borrower.note_use(now, memory);
        }
    }

    /// Forgets who has borrowed, and has nothing any more.
    pub fn tidy(&mut self, now: u64, memory: &mut Memory) {
        if let Some(bank) = &mut self.bank {
            bank.tidy(now, memory);
        }
    }

    /// Returns whether the node has what it has at home, and nobody anything of it: then it may be forgotten,
    /// once its bucket was told so.
    #[must_use]
    pub fn is_at_home(&self, now: u64, memory: &Memory) -> bool {
        let has_lent = self.bank.as_ref().is_some_and(|bank| !bank.is_idle());
        let mut borrowers = self.borrowers.iter();
        !has_lent
            && borrowers.all(|borrower| {
                borrower.ends(now, memory).is_none() && !borrower.may_owe(now, memory)
            })
    }

    /// Ends its part in the budget. The memory keeps the numbers of others' questions, and nothing of what is lent
    /// or borrowed: until that is over, nobody may begin anew with the same budget.
    pub fn forget(mut self, now: u64, memory: &mut Memory) {
        if let Some(bank) = &mut self.bank {
            bank.close(now, memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Boot, Hearing, Members, Terms};

    /// Notes what is put in, and holds nothing.
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

    fn ask(number: u64) -> Ask {
        Ask {
            number,
            keeps: Share::NONE,
            returned_millitokens: 1_000,
            wants: Share::billionths(1_000_000),
        }
    }

    /// Has a node hear a question; returns the answer.
    fn answer(
        node: &mut Node,
        now: u64,
        (header, number): (&Header, u64),
        memory: &Memory,
        bucket: &mut Gained,
    ) -> Option<Loan> {
        let mut answer = None;
        node.hear_ask(now, (header, &ask(number)), memory, bucket);
        node.speak(now, Share::NONE, memory, bucket, |_, message| {
            if let Message::Loan(loan) = message {
                answer = Some(loan);
            }
        });
        answer
    }

    /// A question that somebody kept back may be repeated when the bank has forgotten the budget.
    #[test]
    fn a_question_counts_once_also_when_its_budget_is_forgotten() {
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
        assert_eq!(memory.hear(0, &header), Hearing::Notes);
        let mut bucket = Gained::default();
        let mut node = Node::new(&stakes, BANK);
        for number in [3, 4, 4, 3] {
            answer(&mut node, 0, (&header, number), &memory, &mut bucket);
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
            let answer = answer(&mut node, 0, (&header, number), &memory, &mut bucket);
            assert_eq!(answer, None);
        }
        assert_eq!(bucket.0, 2_000);
        // Later ones are news, about whatever budget.
        assert!(answer(&mut node, 0, (&header, 5), &memory, &mut bucket).is_some());
        node.forget(terms.lent_ns(), &mut memory);
        assert!(!memory.may_be_new(&header, 5));
        // Those of an earlier start, never.
        let earlier = Header {
            boot: Boot(6),
            ..header
        };
        assert!(!memory.may_be_new(&earlier, 99));
        // To another start of the bank nothing is said.
        let mut later = Memory::new(0, BANK, Boot(6), terms, members.count());
        assert_eq!(later.hear(0, &header), Hearing::OtherStart);
        let header = Header {
            from: BANK,
            ..header
        };
        assert_eq!(later.hear(0, &header), Hearing::None);
    }
}
