//! The stages that charge a packet to the buckets of its limits: enforcing limits all or none,
//! observing limits each by itself.

use super::{
    DecisionSteps, Intent, Pipeline, Progress, Scratch, Verdict,
    indices::{bit, contains, limit_indices},
};
use crate::{
    bucket::{Swap, UpdateOutcome},
    clock::Clock,
    offender::OffenderTable,
    policy::{Features, Tables},
    reason::Reason,
    source_tables::SourceTables,
    verdict::NO_LIMIT,
};

/// A packet being charged to the buckets of its limits.
///
/// Its loops keep their values in scratch memory instead of variables: the kernel's verifier does
/// not track the contents of this memory, and so walks each round once.
struct Charging<'a, T, B: DecisionSteps> {
    tables: &'a T,
    buckets: &'a B,
    scratch: &'a mut Scratch<B::Location>,
    /// The limits that may be asked and charged: the verifier walks no round for others.
    among: u64,
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    /// Charges the current packet to the limits that enforce; if one of them refuses it,
    /// records its source as an offender.
    #[inline(always)]
    pub(super) fn charge(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        if !charge(self.buckets, self.tables, scratch) {
            return Progress::Again;
        }
        let Some(limit_index) = scratch.verdict.refused_by() else {
            scratch.count_handshakes_once(self.tables.features());
            return Progress::Undecided;
        };
        if self.is_exempt(scratch) {
            scratch.exempt();
            return Progress::Decided;
        }
        if scratch.verdict.reason == Reason::OverLimit
            && contains(self.tables.features().reserving, limit_index)
        {
            if scratch.verdict.standing().is_none() {
                // It let an unknown source pass, but another CPU was faster.
                scratch.verdict.reopen();
                return Progress::Again;
            }
            self.record_reserved_refusal(scratch, limit_index);
        }
        self.record_refused(scratch, limit_index);
        self.refuse(scratch, limit_index)
    }

    /// Charges the current packet to the limits that only observe.
    #[inline(always)]
    pub(super) fn observe(&self, scratch: &mut Scratch<B::Location>) -> Progress {
        // In scratch memory: a variable would take stack.
        scratch.blocking = scratch.verdict.would_drop;
        observe(self.buckets, self.tables, scratch);
        let refused = scratch.verdict.would_drop & !scratch.blocking;
        if refused != 0 && self.is_exempt(scratch) {
            let verdict = &mut scratch.verdict;
            verdict.reason = Reason::OwnConnection;
            verdict.matched &= !refused;
            verdict.would_drop = scratch.blocking;
        }
        self.record_all_demand(scratch);
        scratch.count_handshakes_once(self.tables.features());
        Progress::Undecided
    }

    /// Records that the packet's key wants more of each shared limit that observes and would drop
    /// it.
    #[inline(always)]
    fn record_all_demand(&self, scratch: &Scratch<B::Location>) {
        let features = self.tables.features();
        let observing = features.shared & features.observing;
        if observing == 0 {
            return;
        }
        let wanting = self.tables.opaque(scratch.verdict.would_drop & observing);
        for limit_index in limit_indices(self.tables) {
            if contains(observing, limit_index) && contains(wanting, limit_index) {
                self.buckets
                    .record_demand(self.tables, &scratch.packet, limit_index);
            }
        }
    }
}

impl<Location> Scratch<Location> {
    /// Makes limits on handshakes count only the first packet of each passing handshake, not the
    /// last as well.
    #[inline(always)]
    const fn count_handshakes_once(&mut self, features: &Features) {
        if features.handshakes != 0 && !self.packet.facts.is_first_segment() {
            let Verdict {
                matched,
                would_drop,
                ..
            } = &mut self.verdict;
            *matched &= !features.handshakes | *would_drop;
        }
    }
}

/// Charges the current packet to the buckets of the enforcing limits that count it. If one of
/// them refuses, none is charged and the verdict says so. Returns false if the source's standing
/// decides, which has not been looked up.
#[inline(always)]
fn charge<T: Tables, B: DecisionSteps>(
    buckets: &B,
    tables: &T,
    scratch: &mut Scratch<B::Location>,
) -> bool {
    let limits = scratch.verdict.matched & tables.features().enforcing();
    scratch.search.single = u32::from(is_single(tables, limits));
    let mut charging = Charging {
        tables,
        buckets,
        scratch,
        among: u64::MAX,
    };
    charging.check(limits, true);
    if !charging.passes_unknown(limits) {
        return false;
    }
    let Scratch {
        strictest, verdict, ..
    } = &mut *charging.scratch;
    if let Some(reason) = strictest.reason() {
        verdict.reason = reason;
        verdict.refused_by = strictest.limit_index;
        charging.refuse();
    } else {
        charging.charge_all(limits & !tables.features().handshakes);
    }
    true
}

/// Whether `limits` has at most one limit, which is charged as soon as it is asked. Limits on
/// handshakes are asked only.
#[inline(always)]
fn is_single<T: Tables>(tables: &T, limits: u64) -> bool {
    let rest = limits & limits.wrapping_sub(1) | limits & tables.features().handshakes;
    rest == 0
}

/// Charges the packet to the buckets of the observing limits that count it, each by itself, and
/// records in the verdict which limits would drop it.
#[inline(always)]
fn observe<T: Tables, B: DecisionSteps>(
    buckets: &B,
    tables: &T,
    scratch: &mut Scratch<B::Location>,
) {
    let Verdict {
        matched,
        would_drop,
        ..
    } = scratch.verdict;
    let limits = matched & tables.features().charged_observing() & !would_drop;
    // Each is charged by itself.
    scratch.search.single = u32::from(limits & tables.features().handshakes == 0);
    let mut charging = Charging {
        tables,
        buckets,
        scratch,
        among: u64::MAX,
    };
    charging.check(limits, true);
    let refused = charging.scratch.refused;
    charging.scratch.verdict.would_drop |= refused;
    charging.refuse();
    charging.charge_each(limits & !refused & !tables.features().handshakes);
}

/// Charges the answer to the limits of answers, or a connection made by a SYN cookie to the limits
/// of such connections. Returns false if a limit refuses or has no room for a bucket. The verdict
/// stays.
#[inline(always)]
pub(super) fn charge_answer<T: Tables, B: DecisionSteps>(
    buckets: &B,
    tables: &T,
    scratch: &mut Scratch<B::Location>,
) -> bool {
    let family = scratch.packet.facts.source.family;
    let features = tables.features();
    let limits = if scratch.passes_by == Some(Reason::ValidSynCookie) {
        features.of_cookies(family)
    } else {
        features.of_answers(family)
    };
    let limits = tables.opaque(limits);
    let [answers_v4, answers_v6] = features.of_answers;
    let [cookies_v4, cookies_v6] = features.of_cookies;
    let Verdict {
        reason, refused_by, ..
    } = scratch.verdict;
    scratch.verdict.reopen();
    scratch.strictest.strictness = 0;
    scratch.search.single = 0;
    let mut charging = Charging {
        tables,
        buckets,
        scratch,
        among: answers_v4 | answers_v6 | cookies_v4 | cookies_v6,
    };
    charging.check(limits, false);
    if charging.scratch.refused == 0 {
        charging.charge_all(limits);
    }
    let Scratch {
        verdict, refused, ..
    } = scratch;
    let is_charged = *refused == 0 && verdict.reason == Reason::WithinLimits;
    verdict.drop_by(reason, refused_by);
    is_charged
}

impl<T: Tables, B: DecisionSteps> Charging<'_, T, B> {
    /// Checks whether the buckets of all `limits` let the packet pass; records which refuse, and
    /// the strictest of them. `moving`: some of the rates may move.
    ///
    /// Limits that let it pass in an earlier stage are skipped: the swap detects whether their
    /// buckets have changed since.
    #[inline(always)]
    fn check(&mut self, limits: u64, moving: bool) {
        self.scratch.refused = 0;
        let limits = if self.is_unchecked() {
            limits
        } else {
            limits & !self.scratch.passing
        };
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(limits, limit_index) {
                // Looked up in each round: a set of limits would take stack.
                let is_moving = moving && self.tables.features().is_moving(limit_index);
                let strictness =
                    self.buckets
                        .prepare(self.tables, self.scratch, limit_index, is_moving);
                let strictness = self.tables.opaque(strictness);
                self.scratch.strictest.consider(limit_index, strictness);
                if strictness != 0 {
                    self.scratch.refused |= bit(limit_index);
                }
            }
        }
    }

    /// Whether the source's standing has not been looked up, or no limit reserves anything.
    #[inline(always)]
    fn is_unchecked(&self) -> bool {
        self.tables.features().reserving == 0 || self.scratch.verdict.standing().is_none()
    }

    /// Whether the reserving limits among `limits`, already checked, let the packet pass regardless
    /// of its source. If its standing was not looked up, they must let even an unknown source pass.
    #[inline(always)]
    fn passes_unknown(&mut self, limits: u64) -> bool {
        let reserving = limits & self.tables.features().reserving;
        reserving == 0
            || !self.is_unchecked()
            || self.scratch.refused & reserving == 0
                && self
                    .buckets
                    .passes_above_reserves(self.tables, self.scratch, reserving)
    }

    /// Charges all `limits`; or, if one refuses, none, and sets the verdict.
    #[inline(always)]
    fn charge_all(&mut self, limits: u64) {
        // The verifier tracks the bits tested so far; it would walk the rest once for each set of
        // them.
        let limits = self.tables.opaque(limits);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(limits, limit_index) {
                let limit_index = self.opaque_index(limit_index);
                let updated = self.change(limit_index, Intent::Spend);
                if !self.scratch.verdict.apply_update(limit_index, updated) {
                    break;
                }
            }
        }
        let refused_by = self.scratch.verdict.refused_by;
        if refused_by == NO_LIMIT {
            return;
        }
        let charged = limits & (bit(refused_by) - 1);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(charged, limit_index) {
                let limit_index = self.opaque_index(limit_index);
                // If the refund fails, the bucket is charged too much, never too little.
                self.buckets
                    .retry(self.scratch.charge(limit_index), Intent::Refund);
            }
        }
    }

    /// Charges each of `limits` by itself if it has the tokens, and records the others.
    #[inline(always)]
    fn charge_each(&mut self, limits: u64) {
        let limits = self.tables.opaque(limits);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(limits, limit_index) {
                let limit_index = self.opaque_index(limit_index);
                if !matches!(
                    self.change(limit_index, Intent::Spend),
                    UpdateOutcome::Stored | UpdateOutcome::Untracked
                ) {
                    self.scratch.verdict.would_drop |= bit(limit_index);
                }
            }
        }
    }

    /// Makes the limits that refused the packet count it, if their strategy counts refusals.
    #[inline(always)]
    fn refuse(&mut self) {
        if !B::WINDOWS {
            return;
        }
        let limits = self.tables.opaque(self.scratch.refused);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(limits, limit_index) {
                let limit_index = self.opaque_index(limit_index);
                if self.scratch.charge(limit_index).plan.changes_state() {
                    // If other CPUs win every attempt, they have as good as filled the window.
                    self.change(limit_index, Intent::Refuse);
                }
            }
        }
    }

    /// Returns the index, and hides all but its bounds from the verifier.
    ///
    /// In a loop that calls a function, the verifier compares all numbers and pointers that it knows, also dead ones. An
    /// index left over from an earlier round makes another verifier state of each later round, and the verifier walks
    /// the loop once for each pair of limits.
    #[inline(always)]
    fn opaque_index(&self, limit_index: u32) -> u32 {
        (self.tables.opaque(limit_index.into()) & 63) as u32
    }

    #[inline(always)]
    fn change(&mut self, limit_index: u32, intent: Intent) -> UpdateOutcome {
        let charge = self.scratch.charge(limit_index);
        match charge.swap(self.buckets) {
            Swap::Stored => UpdateOutcome::Stored,
            Swap::Unavailable => UpdateOutcome::Unavailable,
            Swap::Untracked => UpdateOutcome::Untracked,
            Swap::Changed | Swap::Misplaced => self.buckets.retry(charge, intent),
        }
    }
}
