//! How long loans last.

/// The terms of loans, equal on all nodes of a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The time of a loan from its request, by the borrower's clock, in nanoseconds.
    pub loan_ns: u64,
    /// By how much one node's clock may run faster than another's, in millionths.
    pub drift_ppm: u64,
    /// How long a borrower waits for a reply before it sends a request again, in nanoseconds.
    pub patience_ns: u64,
    /// The longest loan of an earlier start, in nanoseconds: its terms may have differed.
    pub earlier_ns: u64,
}

/// Up to so many nodes use the default terms.
const FEW_NODES: u32 = 100;

/// The longest loans are so many times as long as the default.
const LONGEST: u32 = 10;

impl Terms {
    /// Loans of two seconds, among nodes with clocks that differ by a thousandth at most.
    pub const DEFAULT: Self = Self {
        loan_ns: 2_000_000_000,
        drift_ppm: 1_000,
        patience_ns: 500_000_000,
        earlier_ns: 2_000_000_000,
    };

    /// How long renewals can lengthen a loan, from its request, by the borrower's clock, in nanoseconds:
    /// several times the longest loan. So the bank too is free of a loan that its borrower has forgotten.
    pub(crate) const RENEWABLE_NS: u64 = 60_000_000_000;

    /// The shortest pause between two requests to a bank about one owner, in nanoseconds.
    pub(crate) const SHORTEST_PAUSE_NS: u64 = 100_000_000;

    /// Returns the terms among so many nodes. In a larger fleet a node renews loans with more others, so
    /// loans last longer: two seconds for each hundred nodes, at most twenty.
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

    /// Returns how long a bank waits before it hints a borrower to return a share for others: a borrower
    /// with less traffic finds out by itself.
    pub(crate) const fn hint_ns(&self) -> u64 {
        self.patience_ns / 10 * 3
    }

    /// Returns how long a bank holds back a reply while others return the missing share: longer than
    /// [`Self::hint_ns`], so that they have a hint, but less than the borrower's patience.
    pub(crate) const fn hold_ns(&self) -> u64 {
        self.patience_ns / 10 * 7
    }

    /// Returns when a loan given now is surely over for the borrower, in nanoseconds of the bank's clock:
    /// the borrower sent its request earlier, but its clock may run slower.
    #[must_use]
    pub const fn lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(self.loan_ns)
    }

    /// Returns how long a starting node stays silent, in nanoseconds: until all loans of its earlier start
    /// are over.
    #[must_use]
    pub const fn silent_ns(&self) -> u64 {
        let lent = self.lent_ns();
        let earlier = self.as_counted_by_a_bank(self.earlier_ns);
        if lent > earlier { lent } else { earlier }
    }

    /// Returns [`Self::RENEWABLE_NS`] from the bank's reply, by the bank's clock, in nanoseconds.
    pub(crate) const fn renewable_lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(Self::RENEWABLE_NS)
    }

    /// Returns a time long enough for a slower clock to count `ns` nanoseconds.
    const fn as_counted_by_a_bank(&self, ns: u64) -> u64 {
        let slack = (ns / 1_000_000).saturating_mul(self.drift_ppm);
        ns.saturating_add(slack).saturating_add(self.drift_ppm + 1)
    }

    /// Returns the pause between two renewals: short enough that one request and one reply may be lost
    /// before loans end.
    pub(crate) const fn renewal_pause_ns(&self) -> u64 {
        self.loan_ns / 5 * 2
    }

    /// Returns how long before the end of a loan the borrower requests it alone, if it is not renewed.
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
