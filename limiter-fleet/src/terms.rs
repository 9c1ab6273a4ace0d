//! How long loans last.

/// The terms of loans, which all nodes of a fleet have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How long a loan lasts from when it was asked for, by the borrower's clock, in nanoseconds.
    pub loan_ns: u64,
    /// By how much one node's clock may run faster than another's, in millionths.
    pub drift_ppm: u64,
    /// How long a borrower waits for an answer before it asks again, in nanoseconds.
    pub patience_ns: u64,
    /// How long loans of an earlier start lasted at most, as its terms may have been others, in nanoseconds.
    pub earlier_ns: u64,
}

/// How many nodes have loans of the default's length.
const FEW_NODES: u32 = 100;

/// How many times as long loans last at most.
const LONGEST: u32 = 10;

impl Terms {
    /// Loans of two seconds, among nodes whose clocks differ by a thousandth at most.
    pub const DEFAULT: Self = Self {
        loan_ns: 2_000_000_000,
        drift_ppm: 1_000,
        patience_ns: 500_000_000,
        earlier_ns: 2_000_000_000,
    };

    /// How long a loan is renewed at most, from when it was asked for, by the borrower's clock, in nanoseconds: several
    /// times the longest. So what a borrower has forgotten, its bank does, too.
    pub(crate) const RENEWABLE_NS: u64 = 60_000_000_000;

    /// How long a borrower waits at least between two questions to a bank about one owner, in nanoseconds.
    pub(crate) const SHORTEST_PAUSE_NS: u64 = 100_000_000;

    /// Returns the terms among so many nodes: the default among up to a hundred. In a larger fleet a node has more others
    /// to renew loans with, so these last longer: two seconds for each hundred nodes, at most twenty.
    #[must_use]
    pub const fn among(nodes: u32) -> Self {
        let times = match nodes.div_ceil(FEW_NODES) {
            0 => 1,
            LONGEST.. => LONGEST,
            times => times,
        };
        let loan_ns = Self::DEFAULT.loan_ns * times as u64;
        Self {
            loan_ns,
            earlier_ns: loan_ns,
            ..Self::DEFAULT
        }
    }

    /// Returns how long a bank waits before it tells a borrower to give back what others are to have: a node whose
    /// packets go elsewhere finds that out by itself.
    pub(crate) const fn hint_ns(&self) -> u64 {
        self.patience_ns / 10 * 3
    }

    /// Returns how long a bank waits for others to give back what a borrower is to have before it answers that without
    /// it: longer than before it tells them to, less than a borrower waits for an answer.
    pub(crate) const fn hold_ns(&self) -> u64 {
        self.patience_ns / 10 * 7
    }

    /// Returns after what time, by its own clock, a bank may be sure that a loan of now is over for the
    /// borrower: who asked before, and whose clock may run slower.
    #[must_use]
    pub const fn lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(self.loan_ns)
    }

    /// Returns for how long a node says nothing after its start: until all is over that it may have lent or borrowed
    /// before.
    #[must_use]
    pub const fn silent_ns(&self) -> u64 {
        let lent = self.lent_ns();
        let earlier = self.as_counted_by_a_bank(self.earlier_ns);
        if lent > earlier { lent } else { earlier }
    }

    /// Returns [`Self::RENEWABLE_NS`] from when a bank has lent, by its clock, in nanoseconds.
    pub(crate) const fn renewable_lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(Self::RENEWABLE_NS)
    }

    /// Returns a time in which a borrower's clock that runs slower has counted so many nanoseconds.
    const fn as_counted_by_a_bank(&self, ns: u64) -> u64 {
        let slack = (ns / 1_000_000).saturating_mul(self.drift_ppm);
        ns.saturating_add(slack).saturating_add(self.drift_ppm + 1)
    }

    /// Returns how long a borrower waits from one renewal to the next: so short that a question and an answer may be
    /// lost before loans end.
    pub(crate) const fn renewal_pause_ns(&self) -> u64 {
        self.loan_ns / 5 * 2
    }

    /// Returns how long before the end of a loan that is not renewed a borrower asks for it by itself.
    pub(crate) const fn margin_ns(&self) -> u64 {
        self.loan_ns / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loans_last_longer_among_many() {
        let seconds = [1, 5, 100, 101, 500, 1_000, 10_000, u32::MAX]
            .map(|nodes| Terms::among(nodes).loan_ns / 1_000_000_000);
        assert_eq!(seconds, [2, 2, 2, 4, 10, 20, 20, 20]);
        assert_eq!(Terms::among(5), Terms::DEFAULT);
        assert!(Terms::among(10_000).loan_ns < Terms::RENEWABLE_NS / 2);
    }
}
