//! A node's bank: it lends of the node's own share of one budget.

use crate::{Boot, Bucket, Header, Loan, Memory, NodeId, Request, Share, fair::divide};

/// The part of a node's share that it may lend, and its borrowers.
#[derive(Debug)]
pub(crate) struct Bank {
    capital: Share,
    /// Sorted by node. Few at a time: accounts without a loan are removed.
    accounts: Vec<Account>,
    /// The node's own demand when no borrower was due a hint; `None`: something has changed since.
    settled: Option<Share>,
}

/// One borrower's account.
#[derive(Clone, Copy, Debug)]
struct Account {
    of: NodeId,
    /// Its last request.
    last_request: (Boot, u64),
    /// The share that the borrower kept by its request, and the reply.
    kept: Lent,
    granted: Lent,
    wants: Share,
    /// Since when its last request waits for a reply; `None`: the bank has replied.
    waits_since: Option<u64>,
    /// Since when the bank would reply differently; `None`: it would not.
    other_since: Option<u64>,
    /// When the last hint about that was sent.
    hinted_at: u64,
}

/// A lent share.
#[derive(Clone, Copy, Debug)]
struct Lent {
    share: Share,
    /// By the bank's clock. Renewals lengthen it up to `last`.
    until: u64,
    last: u64,
}

impl Lent {
    const NOTHING: Self = Self {
        share: Share::NONE,
        until: 0,
        last: 0,
    };
}

impl Account {
    /// Returns the most that the borrower may be using. The bank cannot know whether the reply has
    /// arrived, so it counts the larger of the two shares.
    fn lent(&self, now: u64, memory: &Memory) -> Share {
        self.at(&self.kept, now, memory)
            .max(self.at(&self.granted, now, memory))
    }

    fn at(&self, lent: &Lent, now: u64, memory: &Memory) -> Share {
        if lent.share > Share::NONE && self.has(lent, now, memory) {
            lent.share
        } else {
            Share::NONE
        }
    }

    /// Returns whether the loan still runs, even a loan of nothing.
    fn has(&self, lent: &Lent, now: u64, memory: &Memory) -> bool {
        now < lent.until || now < self.end(lent, memory)
    }

    fn end(&self, lent: &Lent, memory: &Memory) -> u64 {
        memory.lent_until((self.of, self.last_request.0), lent.until, lent.last)
    }

    /// Returns whether the borrower's demand counts: its request waits, or the reply still runs.
    fn lives(&self, now: u64, memory: &Memory) -> bool {
        self.waits_since.is_some() || self.has(&self.granted, now, memory)
    }

    /// Returns whether the borrower may use either share.
    fn may_have(&self, now: u64, memory: &Memory) -> bool {
        self.has(&self.kept, now, memory) || self.has(&self.granted, now, memory)
    }

    /// Returns the reply to the waiting request. `fair` is the borrower's fair share, `own` the share
    /// that the bank still has. `None`: no request waits, or the reply is held back until other borrowers
    /// have returned enough, for `Terms::hold_ns` at most.
    fn reply(&self, now: u64, fair: Share, own: Share, memory: &Memory) -> Option<Share> {
        let since = self.waits_since?;
        let kept = self.at(&self.kept, now, memory);
        let share = fair.min(kept + own);
        let may_wait = now.saturating_sub(since) < memory.terms().hold_ns();
        (!may_wait || share >= fair.less_an_eighth()).then_some(share)
    }

    fn is_over(&self, now: u64, memory: &Memory) -> bool {
        self.waits_since.is_none() && !self.may_have(now, memory)
    }
}

/// Spelled out for `clone_from`, as for [`Node`](crate::Node).
impl Clone for Bank {
    fn clone(&self) -> Self {
        Self {
            capital: self.capital,
            accounts: self.accounts.clone(),
            settled: self.settled,
        }
    }

    fn clone_from(&mut self, source: &Self) {
        (self.capital, self.settled) = (source.capital, source.settled);
        self.accounts.clone_from(&source.accounts);
    }
}

impl Bank {
    pub(crate) const fn open(capital: Share) -> Self {
        Self {
            capital,
            accounts: Vec::new(),
            settled: None,
        }
    }

    /// Returns the part of the capital that is not lent.
    pub(crate) fn own(&self, now: u64, memory: &Memory) -> Share {
        let accounts = self.accounts.iter();
        let lent = accounts.map(|account| account.lent(now, memory));
        self.capital.without(lent.sum())
    }

    /// Records a request; [`Self::replies`] replies to it. `in_force` is the node's total share. Returns the
    /// new total: it grows by the share that the borrower gives back.
    pub(crate) fn receive(
        &mut self,
        now: u64,
        (header, request): (&Header, &Request),
        in_force: Share,
        memory: &Memory,
        bucket: &mut impl Bucket,
    ) -> Share {
        let before = self.own(now, memory);
        if self.record(now, header, request, memory).is_none() {
            return in_force;
        }
        let in_force = in_force + self.own(now, memory).without(before);
        bucket.change(now, in_force, request.returned_millitokens);
        in_force
    }

    /// Replies to the requests that need not wait. `own_want` is the node's own demand on the capital.
    /// `in_force` is its total share, which shrinks by each loan.
    pub(crate) fn replies(
        &mut self,
        now: u64,
        own_want: Share,
        mut in_force: Share,
        memory: &Memory,
        bucket: &mut impl Bucket,
    ) -> Vec<(NodeId, Loan)> {
        let mut loans = Vec::new();
        if !self.has_waiting() {
            return loans;
        }
        let fair = self.fair(now, own_want, memory);
        let terms = memory.terms();
        for (position, fair) in fair.into_iter().enumerate() {
            let own = self.own(now, memory);
            let Some(account) = self.accounts.get_mut(position) else {
                continue;
            };
            let Some(share) = account.reply(now, fair, own, memory) else {
                continue;
            };
            account.waits_since = None;
            account.granted = Lent {
                share,
                until: now.saturating_add(terms.lent_ns()),
                last: now.saturating_add(terms.renewable_lent_ns()),
            };
            // The bucket shrinks before the borrower can learn of the loan.
            in_force = in_force.without(share.without(account.at(&account.kept, now, memory)));
            let loan = Loan {
                number: account.last_request.1,
                share,
                millitokens: bucket.change(now, in_force, 0),
            };
            loans.push((account.of, loan));
        }
        loans
    }

    /// Returns whether [`Self::replies`] would reply to any request.
    pub(crate) fn would_reply(&self, now: u64, own_want: Share, memory: &Memory) -> bool {
        if !self.has_waiting() {
            return false;
        }
        let own = self.own(now, memory);
        let mut accounts = (self.accounts.iter()).zip(self.fair(now, own_want, memory));
        accounts.any(|(account, fair)| account.reply(now, fair, own, memory).is_some())
    }

    fn has_waiting(&self) -> bool {
        (self.accounts.iter()).any(|account| account.waits_since.is_some())
    }

    /// Records the borrower's promise. `None`: the request is an old one, and promises nothing any more.
    fn record(
        &mut self,
        now: u64,
        header: &Header,
        request: &Request,
        memory: &Memory,
    ) -> Option<()> {
        let last_request = (header.boot, request.number);
        let found = (self.accounts).binary_search_by_key(&header.from, |account| account.of);
        let position = match found {
            Ok(position) if last_request <= self.accounts[position].last_request => return None,
            Ok(position) => position,
            Err(_) if !memory.may_be_new(header, request.number) => return None,
            Err(position) => {
                let account = Account {
                    of: header.from,
                    last_request,
                    kept: Lent::NOTHING,
                    granted: Lent::NOTHING,
                    wants: Share::NONE,
                    waits_since: None,
                    other_since: None,
                    hinted_at: 0,
                };
                self.accounts.insert(position, account);
                position
            }
        };
        let account = self.accounts.get_mut(position)?;
        let ends = [account.kept, account.granted].map(|lent| account.end(&lent, memory));
        let until = ends.into_iter().fold(0, u64::max);
        account.kept = Lent {
            share: account.lent(now, memory).min(request.keeps),
            until,
            // The borrower does not renew it either.
            last: until,
        };
        account.granted = Lent::NOTHING;
        account.last_request = last_request;
        account.wants = request.wants;
        account.other_since = None;
        // A repeated request keeps its place: it has waited since the first one.
        account.waits_since.get_or_insert(now);
        self.settled = None;
        Some(())
    }

    /// Returns the fair share of each borrower, in account order. Borrowers that have received nothing yet
    /// count too, or the first request would keep everything.
    fn fair(&self, now: u64, own_want: Share, memory: &Memory) -> Vec<Share> {
        let wants = self.accounts.iter().map(|account| {
            if account.lives(now, memory) {
                account.wants
            } else {
                Share::NONE
            }
        });
        let wants: Vec<Share> = wants.collect();
        if wants.iter().copied().sum::<Share>() + own_want <= self.capital {
            return wants;
        }
        let wants = wants.into_iter().chain([own_want]);
        let wants: Vec<u64> = wants.map(Share::in_billionths).collect();
        let given = divide(self.capital.in_billionths(), &wants);
        given.into_iter().map(Share::billionths).collect()
    }

    /// Returns the borrowers with a reply that would now differ by more than an eighth, each with the new
    /// reply. A borrower that must give something back first has some time to do so by itself.
    pub(crate) fn changed(
        &mut self,
        now: u64,
        own_want: Share,
        memory: &Memory,
    ) -> Vec<(NodeId, Share)> {
        let mut changed = Vec::new();
        if self.settled == Some(own_want) {
            return changed;
        }
        let own = self.own(now, memory);
        let fair = self.fair(now, own_want, memory);
        let terms = memory.terms();
        let mut is_settled = true;
        for (account, fair) in self.accounts.iter_mut().zip(fair) {
            if account.waits_since.is_some() {
                is_settled = false;
                continue;
            }
            let has = account.granted.share;
            let kept = account.at(&account.kept, now, memory);
            let could_have = fair.min(kept.max(has) + own);
            let is_less = fair < has.less_an_eighth();
            let is_other = is_less || has < could_have.less_an_eighth();
            is_settled &= kept <= has;
            if !is_other || !account.lives(now, memory) {
                account.other_since = None;
                continue;
            }
            is_settled = false;
            let since = *account.other_since.get_or_insert(now);
            let pause_ns = if is_less { terms.hint_ns() } else { 0 };
            if now.saturating_sub(since) >= pause_ns
                && now.saturating_sub(account.hinted_at) >= terms.patience_ns
            {
                account.hinted_at = now;
                changed.push((account.of, could_have));
            }
        }
        if is_settled {
            self.settled = Some(own_want);
        }
        changed
    }

    /// Returns until when no loan ends and no hint is due, provided that renewals go on.
    pub(crate) fn calm_until(&self, now: u64, memory: &Memory) -> u64 {
        if self.settled.is_none() && !self.accounts.is_empty() {
            return now;
        }
        let lent = self.accounts.iter().flat_map(|account| {
            let of = (account.of, account.last_request.0);
            let lent = [account.kept, account.granted].into_iter();
            lent.map(move |lent| memory.lent_calm_until(now, of, lent.until, lent.last))
        });
        lent.filter(|end| *end > now).min().unwrap_or(u64::MAX)
    }

    /// Removes borrowers without a running loan, but remembers the numbers of their requests.
    pub(crate) fn tidy(&mut self, now: u64, memory: &mut Memory) {
        let before = self.accounts.len();
        self.accounts.retain(|account| {
            let is_over = account.is_over(now, memory);
            if is_over {
                memory.forget(account.of, account.last_request);
            }
            !is_over
        });
        if self.accounts.len() < before {
            self.settled = None;
        }
    }

    /// Removes all accounts, but remembers the numbers of their requests.
    pub(crate) fn close(&mut self, now: u64, memory: &mut Memory) {
        for account in self.accounts.drain(..) {
            if account.may_have(now, memory) {
                memory.lose_count(now);
            }
            memory.forget(account.of, account.last_request);
        }
    }

    pub(crate) const fn is_idle(&self) -> bool {
        self.accounts.is_empty()
    }
}
