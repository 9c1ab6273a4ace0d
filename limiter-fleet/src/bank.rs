//! A node's bank: it lends of the node's own share.

use std::collections::BTreeMap;

use crate::{Ask, Boot, Bucket, Loan, NodeId, Share, Terms, fair::divide};

/// The own part of a node that may be lent, and who has it.
#[derive(Clone, Debug)]
pub(crate) struct Bank {
    capital: Share,
    terms: Terms,
    boot: Boot,
    /// An earlier daemon may have lent all until then.
    closed_until: u64,
    /// Those of all who ever asked, or an old question might pass for a new one.
    accounts: BTreeMap<NodeId, Account>,
}

/// What one borrower may have.
#[derive(Clone, Copy, Debug)]
struct Account {
    boot: Boot,
    /// The number of its last question.
    number: u64,
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

    /// Returns what covers both.
    fn or(self, other: Self) -> Self {
        Self {
            share: self.share.max(other.share),
            until: self.until.max(other.until),
        }
    }
}

impl Account {
    /// Returns the most that the borrower may use: it has one of the two.
    fn lent(&self, now: u64) -> Share {
        self.kept.at(now).max(self.answered.at(now))
    }
}

impl Bank {
    /// Opens a bank. What an earlier one of the same node has lent is not known, and so all of it counts
    /// as lent for as long as loans last.
    pub(crate) fn open(capital: Share, terms: Terms, boot: Boot, now: u64) -> Self {
        Self {
            capital,
            terms,
            boot,
            closed_until: now.saturating_add(terms.lent_ns()),
            accounts: BTreeMap::new(),
        }
    }

    /// Returns what the node itself may use of the capital.
    pub(crate) fn own(&self, now: u64) -> Share {
        if now < self.closed_until {
            return Share::NONE;
        }
        let lent = self.accounts.values().map(|account| account.lent(now));
        self.capital.without(lent.sum())
    }

    /// Answers a question. `own_want` is what the node itself wants of the capital, and `in_force` what
    /// it has of all shares, which changes by what is lent. `None`: nothing is to be said.
    pub(crate) fn answer(
        &mut self,
        now: u64,
        ask: &Ask,
        own_want: Share,
        in_force: Share,
        bucket: &mut impl Bucket,
    ) -> Option<Loan> {
        if now < self.closed_until {
            return None;
        }
        let before = self.own(now);
        let returned = self.note(now, ask)?;
        let given_back = self.own(now).without(before);
        let in_force = in_force + given_back;
        bucket.change(now, in_force, returned);

        let fair = self.fair(now, ask.from, own_want);
        let own = self.own(now);
        let account = self.accounts.get_mut(&ask.from)?;
        let kept = account.kept.at(now);
        let share = fair.min(kept + own);
        account.answered = Lent {
            share,
            until: now.saturating_add(self.terms.lent_ns()),
        };
        // Before anybody can hear of the loan.
        let millitokens = bucket.change(now, in_force.without(share.without(kept)), 0);
        Some(Loan {
            from: ask.to,
            to: ask.from,
            boot: ask.boot,
            bank_boot: self.boot,
            number: ask.number,
            share,
            millitokens,
        })
    }

    /// Notes what a borrower promises; returns the tokens that come back. `None`: the question is an old
    /// one, and promises nothing any more.
    fn note(&mut self, now: u64, ask: &Ask) -> Option<u64> {
        let account = self.accounts.entry(ask.from).or_insert(Account {
            boot: ask.boot,
            number: 0,
            kept: Lent::NOTHING,
            answered: Lent::NOTHING,
            wants: Share::NONE,
        });
        let lent = Lent {
            share: account.lent(now),
            until: account.kept.or(account.answered).until,
        };
        if ask.boot < account.boot || (ask.boot == account.boot && ask.number <= account.number) {
            return None;
        }
        account.wants = ask.wants;
        account.number = ask.number;
        account.answered = Lent::NOTHING;
        if account.boot != ask.boot {
            // The programs that an earlier daemon has left may use all until its time is over.
            account.boot = ask.boot;
            account.kept = lent;
            return Some(0);
        }
        account.kept = Lent {
            share: lent.share.min(ask.keeps),
            ..lent
        };
        // Nothing is left to give back of an earlier start's loans. An old question can only have something
        // lent that nobody uses.
        let is_of_this_start = ask.bank_boot == self.boot;
        Some(if is_of_this_start {
            ask.returned_millitokens
        } else {
            0
        })
    }

    /// Returns what a borrower would have if all had what is fair: those too that asked and had to be given
    /// nothing, or who came first would keep all.
    fn fair(&self, now: u64, borrower: NodeId, own_want: Share) -> Share {
        let live = self.accounts.iter();
        let live: Vec<_> = live
            .filter(|(node, account)| **node == borrower || now < account.answered.until)
            .collect();
        let wants = live
            .iter()
            .map(|(_, account)| account.wants.in_billionths());
        let wants: Vec<u64> = wants.chain([own_want.in_billionths()]).collect();
        let given = divide(self.capital.in_billionths(), &wants);
        let position = live.iter().position(|(node, _)| **node == borrower);
        position.map_or(Share::NONE, |position| Share::billionths(given[position]))
    }
}
