//! A node's lease of one key's budget.

use super::{Grant, POOL};
use crate::Share;

/// How long a node keeps a lease that no packet needs and no other node wants, in nanoseconds: a slow client does not
/// wait for a lease each time.
const IDLE_NS: u64 = 10_000_000_000;

/// A need that was less by a sixteenth for [`IDLE_NS`] is told; a share that lacks a thirty-second is asked for.
const TOLD_PART: u64 = 16;
const ASKED_PART: u64 = 32;

/// The share above the [minimum](super::minimum_share) that a key's packets need, as its node estimates it. The store is
/// told another one only once the last one told is out of bounds: few packets have no steady rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Need {
    /// With less, packets are refused.
    pub least: Share,
    /// Enough, even if packets come unevenly: to be told.
    pub usual: Share,
    /// More is surely too much.
    pub most: Share,
}

impl Need {
    /// A need that is known exactly.
    #[must_use]
    pub const fn of(share: Share) -> Self {
        Self {
            least: share,
            usual: share,
            most: share,
        }
    }
}

/// A lease, as its node counts it. The node's share is this and the [minimum](super::minimum_share).
///
/// The host lowers the share in use before it calls [`Self::lower`], and raises it after [`Self::receive`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    held: Share,
    /// The fair share, as the store last said.
    goal: Share,
    /// The packets' usual need now, and as the store was told.
    wanted: Share,
    told: Share,
    /// The last times when packets needed anything, and about as much as was told, in nanoseconds.
    wanted_ns: u64,
    told_ns: u64,
    /// Whether the node gives it back unasked.
    is_idle: bool,
    /// Tokens to return, in billionths of the burst.
    returned: u64,
    /// Whether the store must learn of a change.
    is_changed: bool,
    /// Whether the open call names the lease.
    is_named: bool,
}

/// A change of the share in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The leased share from now on.
    pub to: Share,
    /// The tokens that come with a larger share, in billionths of the burst.
    pub tokens: u64,
}

impl Lease {
    /// The leased share.
    #[must_use]
    pub const fn held(&self) -> Share {
        self.held
    }

    /// The share that packets need above the minimum.
    #[must_use]
    pub const fn wanted(&self) -> Share {
        self.wanted
    }

    /// Sets the packets' need at the time `now_ns`.
    pub fn want(&mut self, need: Need, now_ns: u64) {
        self.wanted = need.usual.min(POOL);
        if self.wanted > Share::NONE || self.wanted_ns == 0 {
            self.wanted_ns = now_ns;
        }
        if !self.wanted.is_less_by(TOLD_PART, self.told) {
            self.told_ns = now_ns;
        }
        let is_over = |since_ns| now_ns.saturating_sub(since_ns) >= IDLE_NS;
        self.is_idle = is_over(self.wanted_ns);
        let (least, most) = (need.least.min(POOL), need.most);
        self.is_changed |= self.told < least || self.told > most || is_over(self.told_ns);
    }

    /// Whether the next call names it.
    pub(super) fn is_due(&self) -> bool {
        let lacks = self.lacks(self.goal) && self.lacks(self.wanted);
        !self.is_named && (self.is_changed || lacks)
    }

    const fn lacks(&self, of: Share) -> bool {
        self.held.is_less_by(ASKED_PART, of)
    }

    /// Whether it may be forgotten: the store knows of nothing leased or wanted.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let shares = [self.held, self.wanted, self.told];
        shares == [Share::NONE; 3] && self.is_idle && !self.is_changed && !self.is_named
    }

    /// Whether the store must still learn which share this node keeps.
    pub(super) const fn is_unreported(&self) -> bool {
        self.held.in_billionths() > 0 && (self.is_changed || self.is_named)
    }

    /// The smaller share that this node should keep, as another needs the rest, or no packet needs it; `None`: it keeps
    /// all.
    #[must_use]
    pub fn lowers_to(&self) -> Option<Share> {
        let to = if self.is_idle { Share::NONE } else { self.goal };
        (!self.is_named && to < self.held).then_some(to)
    }

    /// Keeps only `to`, which is in use already. `returned`: the tokens of the rest, in billionths of the burst.
    pub fn lower(&mut self, to: Share, returned: u64) {
        (self.held, self.goal) = (to, to);
        self.returned = self.returned.saturating_add(returned);
        self.is_changed = true;
    }

    /// Takes the store's word on the fair share.
    pub(super) const fn hint(&mut self, goal: Share) {
        self.goal = goal;
        self.is_changed |= self.lacks(goal);
    }

    /// Asks the store again if packets need more: the lease of another node may be over.
    pub(super) const fn ask_again(&mut self) {
        self.is_changed |= self.lacks(self.wanted);
    }

    /// A call that is open from now on names it: returns the share that the node keeps, of which it uses no more, the
    /// tokens that it returns, and its demand.
    pub(super) const fn named(&mut self) -> [u64; 3] {
        (self.is_named, self.is_changed) = (true, false);
        self.told = self.wanted;
        let returned = std::mem::replace(&mut self.returned, 0);
        [
            self.held.in_billionths(),
            returned,
            self.wanted.in_billionths(),
        ]
    }

    /// Takes the reply to the open call. The host carries out the change.
    pub(super) fn receive(&mut self, grant: Grant) -> Option<Change> {
        self.is_named = false;
        self.goal = grant.goal;
        let to = grant.share.min(POOL);
        let before = std::mem::replace(&mut self.held, to);
        let tokens = grant.tokens.min(to.without(before).in_billionths());
        (to != before).then_some(Change { to, tokens })
    }

    /// Names it again: a call had no reply, or the store has forgotten it. Returned tokens are lost.
    pub(super) const fn name_again(&mut self) {
        (self.is_named, self.is_changed) = (false, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(percent: u64) -> Share {
        Share::billionths(percent * 10_000_000)
    }

    const fn need(percent: u64) -> Need {
        Need::of(part(percent))
    }

    #[test]
    fn a_lease_is_named_when_something_has_changed() {
        let mut lease = Lease::default();
        assert!(!lease.is_due());
        lease.want(need(40), 1);
        assert!(lease.is_due());
        assert_eq!(lease.named(), [0, 0, part(40).in_billionths()]);
        // While the call is open, a change waits.
        lease.want(need(80), 1);
        assert!(!lease.is_due());
        let grant = Grant {
            share: part(30),
            tokens: part(90).in_billionths(),
            goal: part(40),
        };
        // No more tokens than fit the share.
        let change = lease.receive(grant).unwrap();
        assert_eq!(
            (change.to, change.tokens),
            (part(30), part(30).in_billionths())
        );
        assert!(lease.is_due());
        lease.want(need(40), 1);
        // Others must return a part first: it asks again.
        assert!(lease.is_due());
        lease.named();
        let all = Grant {
            share: part(40),
            ..grant
        };
        assert!(lease.receive(all).is_some());
        assert!(!lease.is_due());
        // A change within the bounds does not count at once; it does once it has lasted.
        let low = Need {
            least: part(20),
            usual: part(30),
            most: part(41),
        };
        let high = Need {
            least: part(40),
            usual: part(50),
            ..low
        };
        lease.want(high, 1);
        assert!(!lease.is_due());
        lease.want(low, IDLE_NS);
        assert!(!lease.is_due());
        lease.want(low, IDLE_NS + 1);
        assert!(lease.is_due());
        lease.named();
        lease.receive(all);
        for out_of_bounds in [need(29), need(31)] {
            lease.want(out_of_bounds, IDLE_NS + 1);
            assert!(lease.is_due());
            lease.want(need(30), IDLE_NS + 1);
            lease.named();
            lease.receive(all);
        }
        lease.want(need(30), IDLE_NS + 1);
        assert!(!lease.is_due());

        lease.hint(part(20));
        assert_eq!(lease.lowers_to(), Some(part(20)));
        lease.lower(part(20), 7);
        assert!(lease.is_due() && lease.lowers_to().is_none());
        let [keeps, returned, _] = lease.named();
        assert_eq!((Share::billionths(keeps), returned), (part(20), 7));
        // Without a reply, it is named again, without the tokens.
        lease.name_again();
        assert!(lease.is_due());
        assert_eq!(lease.named()[1], 0);
    }

    #[test]
    fn an_idle_lease_is_given_back() {
        let mut lease = Lease::default();
        lease.want(need(40), 1);
        lease.named();
        let grant = Grant {
            share: part(40),
            tokens: 0,
            goal: part(40),
        };
        lease.receive(grant);
        lease.want(Need::default(), 2);
        lease.named();
        lease.receive(grant);
        lease.want(Need::default(), IDLE_NS);
        assert!(lease.lowers_to().is_none() && !lease.is_due());
        lease.want(Need::default(), IDLE_NS + 1);
        assert_eq!(lease.lowers_to(), Some(Share::NONE));
        lease.lower(Share::NONE, 0);
        assert!(lease.is_due() && !lease.is_over());
        lease.named();
        lease.receive(Grant {
            share: Share::NONE,
            ..grant
        });
        assert!(lease.is_over());
    }

    #[test]
    fn a_store_cannot_give_more_than_the_pool() {
        let mut lease = Lease::default();
        lease.want(Need::of(Share::WHOLE), 1);
        lease.named();
        let grant = Grant {
            share: Share::WHOLE,
            tokens: u64::MAX,
            goal: Share::WHOLE,
        };
        let change = lease.receive(grant).unwrap();
        assert_eq!((change.to, change.tokens), (POOL, POOL.in_billionths()));
    }
}
