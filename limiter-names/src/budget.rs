//! Budgets for reading: pieces per second, for all clients together and for each.

use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
};

const SECOND_NS: u64 = 1_000_000_000;

/// The number of budgets that clients share, by a keyed hash of their addresses: clients cannot
/// choose their budget.
const GROUPS: usize = 1 << 10;

/// Each of these budgets is the budget of all clients, divided by this.
const PART: u32 = 16;

/// The spent budget that prevents reading a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExhaustedBudget {
    /// The budget of the client's group.
    OfClient,
    /// The budget of all clients.
    OfAll,
}

/// The budgets of all clients, and of each.
#[derive(Debug)]
pub(crate) struct Budgets {
    all: Budget,
    groups: Box<[Budget]>,
    hash: RandomState,
}

impl Budgets {
    pub(crate) fn new(a_second: u32) -> Self {
        let of_each = || Budget::new(a_second.div_ceil(PART));
        Self {
            all: Budget::new(a_second),
            groups: (0..GROUPS).map(|_| of_each()).collect(),
            hash: RandomState::new(),
        }
    }

    /// Takes one piece of a client's budget and of the common one; returns the spent budget if one
    /// is spent.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "any bits of a hash find a group"
    )]
    pub(crate) fn take(&mut self, now_ns: u64, client: IpAddr) -> Result<(), ExhaustedBudget> {
        let network = match client {
            IpAddr::V4(address) => u64::from(address.to_bits()),
            // A client with one address of a /64 has them all.
            IpAddr::V6(address) => (address.to_bits() >> 64) as u64,
        };
        let group = self.hash.hash_one((client.is_ipv4(), network)) as usize % GROUPS;
        if !self.groups[group].take(now_ns) {
            Err(ExhaustedBudget::OfClient)
        } else if self.all.take(now_ns) {
            Ok(())
        } else {
            Err(ExhaustedBudget::OfAll)
        }
    }

    /// The allocated memory, in bytes.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&*self.groups)
    }
}

/// A rate limit for pieces: a number per second, and a tenth of that number at once.
#[derive(Debug)]
struct Budget {
    interval_ns: u64,
    /// The time at which the budget is full again.
    full_ns: u64,
}

impl Budget {
    fn new(a_second: u32) -> Self {
        Self {
            interval_ns: SECOND_NS / u64::from(a_second.max(1)),
            full_ns: 0,
        }
    }

    /// Takes one piece, if the budget has room. A clock that goes back gives no room.
    fn take(&mut self, now_ns: u64) -> bool {
        let most_ns = (SECOND_NS / 10).max(self.interval_ns);
        let begin_ns = self.full_ns.max(now_ns);
        match begin_ns.checked_add(self.interval_ns) {
            Some(full_ns) if full_ns - now_ns <= most_ns => {
                self.full_ns = full_ns;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;

    fn taken(budget: &mut Budget, now_ns: u64) -> usize {
        (0..1000).take_while(|_| budget.take(now_ns)).count()
    }

    #[test]
    fn a_tenth_of_a_second_at_once_and_no_more_than_its_rate_later() {
        let mut budget = Budget::new(1000);
        assert_eq!(taken(&mut budget, 5 * SECOND_NS), 100);
        assert_eq!(taken(&mut budget, 5 * SECOND_NS + 10_500_000), 10);
        assert_eq!(taken(&mut budget, 3 * SECOND_NS), 0);
        assert_eq!(taken(&mut budget, 6 * SECOND_NS), 100);
        let all: usize = (1..=1000)
            .map(|at| taken(&mut budget, 7 * SECOND_NS + at * 1_000_000))
            .sum();
        assert_eq!(all, 100 + 999);
    }

    #[test]
    fn the_least_budget_is_one_piece_at_a_time() {
        for a_second in [0, 1] {
            let mut budget = Budget::new(a_second);
            assert_eq!(taken(&mut budget, 0), 1);
            assert_eq!(taken(&mut budget, SECOND_NS - 1), 0);
            assert_eq!(taken(&mut budget, SECOND_NS), 1);
        }
        assert_eq!(taken(&mut Budget::new(1000), u64::MAX), 0);
    }

    #[test]
    fn a_client_has_a_part_of_the_budget_and_leaves_the_rest_to_others() {
        let mut budgets = Budgets::new(160_000);
        let mut taken = |client: IpAddr| {
            (0..2000)
                .filter(|_| budgets.take(0, client).is_ok())
                .count()
        };
        assert_eq!(taken(Ipv4Addr::new(192, 0, 2, 1).into()), 1000);
        let network = 0x2001_0db8_0000_0000_u128 << 64;
        assert_eq!(taken(Ipv6Addr::from_bits(network | 1).into()), 1000);
        assert_eq!(taken(Ipv6Addr::from_bits(network | 2).into()), 0);
        let spent = budgets.take(0, Ipv6Addr::from_bits(network | 3).into());
        assert_eq!(spent, Err(ExhaustedBudget::OfClient));
        // Few clients share a group with one of these.
        let mut budgets = Budgets::new(160_000);
        for client in [1, 2, 3] {
            let client = Ipv4Addr::new(192, 0, 2, client).into();
            assert!(
                (0..2000)
                    .filter(|_| budgets.take(0, client).is_ok())
                    .count()
                    <= 1000
            );
        }
        let others = (0..1000).map(|number| Ipv4Addr::from(0x0a00_0000 + number).into());
        let served = others
            .filter(|client| budgets.take(0, *client).is_ok())
            .count();
        assert!(served > 900, "{served}");
        let mut of_all = (0..u32::MAX).map(|number| budgets.take(0, Ipv4Addr::from(number).into()));
        assert!(of_all.any(|taken| taken == Err(ExhaustedBudget::OfAll)));
    }
}
