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
}

impl Terms {
    /// Loans of two seconds, among nodes whose clocks differ by a thousandth at most.
    pub const DEFAULT: Self = Self {
        loan_ns: 2_000_000_000,
        drift_ppm: 1_000,
        patience_ns: 500_000_000,
    };

    /// Returns after what time, by its own clock, a bank may be sure that a loan of now is over for the
    /// borrower: who asked before, and whose clock may run slower.
    #[must_use]
    pub const fn lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(self.loan_ns)
    }

    /// Returns for how long a loan is renewed at most, from when it was asked for, by the borrower's clock, in
    /// nanoseconds. So what a borrower has forgotten, its bank does, too.
    pub(crate) const fn renewable_ns(&self) -> u64 {
        self.loan_ns.saturating_mul(30)
    }

    /// Returns the same from when a bank has lent, by its clock, in nanoseconds.
    pub(crate) const fn renewable_lent_ns(&self) -> u64 {
        self.as_counted_by_a_bank(self.renewable_ns())
    }

    /// Returns a time in which a borrower's clock that runs slower has counted so many nanoseconds.
    const fn as_counted_by_a_bank(&self, ns: u64) -> u64 {
        let slack = (ns / 1_000_000).saturating_mul(self.drift_ppm);
        ns.saturating_add(slack).saturating_add(self.drift_ppm + 1)
    }

    /// Returns how long a borrower waits at least between two questions to a bank, in nanoseconds.
    pub(crate) const fn shortest_pause_ns(&self) -> u64 {
        self.loan_ns / 20
    }

    /// Returns how long it waits from one renewal to the next: so short that a question and an answer may be
    /// lost before loans end.
    pub(crate) const fn renewal_pause_ns(&self) -> u64 {
        self.loan_ns / 5 * 2
    }

    /// Returns how long before the end of a loan that is not renewed a borrower asks for it by itself.
    pub(crate) const fn margin_ns(&self) -> u64 {
        self.loan_ns / 4
    }
}
