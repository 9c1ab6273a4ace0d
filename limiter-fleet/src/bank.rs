//! A node's bank: it lends of the node's own share of one budget.

use crate::{Ask, Boot, Bucket, Header, Loan, Memory, NodeId, Share, fair::divide};

/// The own part of a node that may be lent, and who has it.
#[derive(Clone, Debug)]
pub(crate) struct Bank {
    capital: Share,
    /// By their nodes, in order: few at a time, as those are forgotten who have nothing.
    accounts: Vec<Account>,
}

/// What one borrower may have.
#[derive(Clone, Copy, Debug)]
struct Account {
    of: NodeId,
    /// Its last question.
    question: (Boot, u64),
    /// What it kept when it asked that, and the answer.
    kept: Lent,
    answered: Lent,
    wants: Share,
}

/// A share that is lent, until a time by the bank's clock.
#[derive(Clone, Copy, Debug)]
struct Lent {
    share: Share,
    until: u64,
}

impl Lent {
    const NOTHING: Self = Self {
        share: Share::NONE,
        until: 0,
    };

    fn at(self, now: u64) -> Share {
        if now < self.until {
            self.share
        } else {
            Share::NONE
        }
    }
}

impl Account {
    /// Returns the most that the borrower may use: it has one of the two.
    fn lent(&self, now: u64) -> Share {
        self.kept.at(now).max(self.answered.at(now))
    }

    fn is_over(&self, now: u64) -> bool {
        now >= self.kept.until.max(self.answered.until)
    }
}

impl Bank {
    /// Opens a bank that has lent nothing.
    pub(crate) const fn open(capital: Share) -> Self {
        Self {
            capital,
            accounts: Vec::new(),
        }
    }

    /// Returns what the node itself may use of the capital.
    pub(crate) fn own(&self, now: u64) -> Share {
        let lent = self.accounts.iter().map(|account| account.lent(now));
        self.capital.without(lent.sum())
    }

    /// Answers a question. `own_want` is what the node itself wants of the capital, and `in_force` what
    /// it has of all shares, which changes by what is lent. `None`: nothing is to be said.
    pub(crate) fn answer(
        &mut self,
        now: u64,
        (header, ask): (&Header, &Ask),
        own_want: Share,
        in_force: Share,
        memory: &Memory,
        bucket: &mut impl Bucket,
    ) -> Option<Loan> {
        let before = self.own(now);
        let position = self.note(now, header, ask, memory)?;
        let own = self.own(now);
        let in_force = in_force + own.without(before);
        bucket.change(now, in_force, ask.returned_millitokens);

        let fair = self.fair(now, position, own_want);
        let account = self.accounts.get_mut(position)?;
        let kept = account.kept.at(now);
        let share = fair.min(kept + own);
        account.answered = Lent {
            share,
            until: now.saturating_add(memory.terms().lent_ns()),
        };
        // Before anybody can hear of the loan.
        let millitokens = bucket.change(now, in_force.without(share.without(kept)), 0);
        Some(Loan {
            number: ask.number,
            share,
            millitokens,
        })
    }

    /// Notes what a borrower promises; returns the position of its account. `None`: the question is an old
    /// one, and promises nothing any more.
    fn note(&mut self, now: u64, header: &Header, ask: &Ask, memory: &Memory) -> Option<usize> {
        let question = (header.boot, ask.number);
        let found = (self.accounts).binary_search_by_key(&header.from, |account| account.of);
        let position = match found {
            Ok(position) if question <= self.accounts[position].question => return None,
            Ok(position) => position,
            Err(_) if !memory.may_be_new(header, ask.number) => return None,
            Err(position) => {
                let account = Account {
                    of: header.from,
                    question,
                    kept: Lent::NOTHING,
                    answered: Lent::NOTHING,
                    wants: Share::NONE,
                };
                self.accounts.insert(position, account);
                position
            }
        };
        let account = self.accounts.get_mut(position)?;
        account.kept = Lent {
            share: account.lent(now).min(ask.keeps),
            until: account.kept.until.max(account.answered.until),
        };
        account.answered = Lent::NOTHING;
        account.question = question;
        account.wants = ask.wants;
        Some(position)
    }

    /// Returns what a borrower would have if all had what is fair: those too that asked and had to be given
    /// nothing, or who came first would keep all.
    fn fair(&self, now: u64, borrower: usize, own_want: Share) -> Share {
        let lives =
            |position: usize| position == borrower || now < self.accounts[position].answered.until;
        let wants = |position: usize| {
            if lives(position) {
                self.accounts[position].wants
            } else {
                Share::NONE
            }
        };
        let all = (0..self.accounts.len()).map(wants).sum::<Share>() + own_want;
        if all <= self.capital {
            return wants(borrower);
        }
        let wants = (0..self.accounts.len()).map(|position| wants(position).in_billionths());
        let wants: Vec<u64> = wants.chain([own_want.in_billionths()]).collect();
        let given = divide(self.capital.in_billionths(), &wants);
        given
            .get(borrower)
            .map_or(Share::NONE, |given| Share::billionths(*given))
    }

    /// Forgets those whose loans are over, but for the numbers of their questions.
    pub(crate) fn tidy(&mut self, now: u64, memory: &mut Memory) {
        self.accounts.retain(|account| {
            let is_over = account.is_over(now);
            if is_over {
                memory.forget(account.of, account.question);
            }
            !is_over
        });
    }

    /// Forgets all, but for the numbers of the questions.
    pub(crate) fn close(&mut self, memory: &mut Memory) {
        for account in self.accounts.drain(..) {
            memory.forget(account.of, account.question);
        }
    }

    /// Returns whether it remembers nobody.
    pub(crate) const fn is_idle(&self) -> bool {
        self.accounts.is_empty()
    }
}
