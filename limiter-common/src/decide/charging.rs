//! The stages that charge a packet to the buckets of its limits: enforcing limits all or none,
//! observing limits each by itself.

use super::{
    Intent, Outline, Pipeline, Progress, Verdict, Workspace,
    indices::{bit, contains, limit_indices},
};
use crate::{
    bucket::{Swap, UpdateOutcome},
    clock::Clock,
    offender::OffenderStore,
    policy::{Shape, Tables},
    reason::Reason,
    reputation::Reputation,
    verdict::NO_LIMIT,
};

/// A packet being charged to the buckets of its limits.
///
/// Its loops keep their values in the workspace instead of variables: the kernel's verifier does
/// not track the contents of this memory, and so walks each round once.
struct Charging<'a, T, B: Outline> {
    tables: &'a T,
    buckets: &'a B,
    workspace: &'a mut Workspace<B::Location>,
    /// The limits that may be asked and charged: the verifier walks no round for others.
    among: u64,
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: Outline,
    O: OffenderStore,
    R: Reputation,
{
    /// Charges the workspace's packet to the limits that enforce; if one of them refuses it,
    /// records its source as an offender.
    #[inline(always)]
    pub(super) fn charge(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        if !charge(self.buckets, self.tables, workspace) {
            return Progress::Again;
        }
        let Some(limit_index) = workspace.verdict.denied_by() else {
            workspace.leave_handshakes(self.tables.shape());
            return Progress::Undecided;
        };
        if self.is_exempt(workspace) {
            workspace.exempt();
            return Progress::Decided;
        }
        if workspace.verdict.reason == Reason::OverLimit
            && contains(self.tables.shape().reserving, limit_index)
        {
            if workspace.verdict.standing().is_none() {
                // It let an unknown source pass, but another CPU was faster.
                workspace.verdict.reopen();
                return Progress::Again;
            }
            self.note_shortage(workspace, limit_index);
        }
        self.record_refused(workspace, limit_index);
        self.refuse(workspace, limit_index)
    }

    /// Charges the workspace's packet to the limits that only observe.
    #[inline(always)]
    pub(super) fn observe(&self, workspace: &mut Workspace<B::Location>) -> Progress {
        // In the workspace: a variable would take stack.
        workspace.blocking = workspace.verdict.would_drop;
        observe(self.buckets, self.tables, workspace);
        let refused = workspace.verdict.would_drop & !workspace.blocking;
        if refused != 0 && self.is_exempt(workspace) {
            let verdict = &mut workspace.verdict;
            verdict.reason = Reason::OwnConnection;
            verdict.matched &= !refused;
            verdict.would_drop = workspace.blocking;
        }
        self.note_all_wanting(workspace);
        workspace.leave_handshakes(self.tables.shape());
        Progress::Undecided
    }

    /// Notes that the packet's owner wants more of each shared limit that observes and would drop
    /// it.
    #[inline(always)]
    fn note_all_wanting(&self, workspace: &Workspace<B::Location>) {
        let shape = self.tables.shape();
        let observing = shape.in_common & shape.observing;
        if observing == 0 {
            return;
        }
        let wanting = self.tables.opaque(workspace.verdict.would_drop & observing);
        for limit_index in limit_indices(self.tables) {
            if contains(observing, limit_index) && contains(wanting, limit_index) {
                self.buckets
                    .note_wanting(self.tables, &workspace.packet, limit_index);
            }
        }
    }
}

impl<Location> Workspace<Location> {
    /// Makes limits on handshakes count only the first packet of each passing handshake, not the
    /// last as well.
    #[inline(always)]
    const fn leave_handshakes(&mut self, shape: &Shape) {
        if shape.handshakes != 0 && !self.packet.facts.is_first_segment() {
            let Verdict {
                matched,
                would_drop,
                ..
            } = &mut self.verdict;
            *matched &= !shape.handshakes | *would_drop;
        }
    }
}

/// Charges the workspace's packet to the buckets of the enforcing limits that count it. If one of
/// them refuses, none is charged and the verdict says so. Returns false if the source's standing
/// decides, which has not been looked up.
#[inline(always)]
fn charge<T: Tables, B: Outline>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Location>,
) -> bool {
    let limits = workspace.verdict.matched & tables.shape().enforcing();
    workspace.search.single = u32::from(is_single(tables, limits));
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
        among: u64::MAX,
    };
    charging.ask(limits, true);
    if !charging.passes_unknown(limits) {
        return false;
    }
    let Workspace {
        strictest, verdict, ..
    } = &mut *charging.workspace;
    if let Some(reason) = strictest.reason() {
        verdict.reason = reason;
        verdict.denied_by = strictest.limit_index;
        charging.refuse();
    } else {
        charging.charge_all(limits & !tables.shape().handshakes);
    }
    true
}

/// Whether `limits` has at most one limit, which is charged as soon as it is asked. Limits on
/// handshakes are asked only.
#[inline(always)]
fn is_single<T: Tables>(tables: &T, limits: u64) -> bool {
    let rest = limits & limits.wrapping_sub(1) | limits & tables.shape().handshakes;
    rest == 0
}

/// Charges the packet to the buckets of the observing limits that count it, each by itself, and
/// notes in the verdict which limits would drop it.
#[inline(always)]
fn observe<T: Tables, B: Outline>(buckets: &B, tables: &T, workspace: &mut Workspace<B::Location>) {
    let Verdict {
        matched,
        would_drop,
        ..
    } = workspace.verdict;
    let limits = matched & tables.shape().charged_observing() & !would_drop;
    // Each is charged by itself.
    workspace.search.single = u32::from(limits & tables.shape().handshakes == 0);
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
        among: u64::MAX,
    };
    charging.ask(limits, true);
    let refused = charging.workspace.refused;
    charging.workspace.verdict.would_drop |= refused;
    charging.refuse();
    charging.charge_each(limits & !refused & !tables.shape().handshakes);
}

/// Charges the answer to the limits of answers, or a connection made by a SYN cookie to the limits
/// of such connections. Returns false if a limit refuses or has no room for a bucket. The verdict
/// stays.
#[inline(always)]
pub(super) fn charge_answer<T: Tables, B: Outline>(
    buckets: &B,
    tables: &T,
    workspace: &mut Workspace<B::Location>,
) -> bool {
    let family = workspace.packet.facts.source.family;
    let shape = tables.shape();
    let limits = if workspace.passes_by == Some(Reason::ValidSynCookie) {
        shape.of_cookies(family)
    } else {
        shape.of_answers(family)
    };
    let limits = tables.opaque(limits);
    let [answers_v4, answers_v6] = shape.of_answers;
    let [cookies_v4, cookies_v6] = shape.of_cookies;
    let Verdict {
        reason, denied_by, ..
    } = workspace.verdict;
    workspace.verdict.reopen();
    workspace.strictest.strictness = 0;
    workspace.search.single = 0;
    let mut charging = Charging {
        tables,
        buckets,
        workspace,
        among: answers_v4 | answers_v6 | cookies_v4 | cookies_v6,
    };
    charging.ask(limits, false);
    if charging.workspace.refused == 0 {
        charging.charge_all(limits);
    }
    let Workspace {
        verdict, refused, ..
    } = workspace;
    let is_charged = *refused == 0 && verdict.reason == Reason::WithinLimits;
    verdict.drop_by(reason, denied_by);
    is_charged
}

impl<T: Tables, B: Outline> Charging<'_, T, B> {
    /// Asks the buckets of all `limits` whether they let the packet pass; notes which refuse, and
    /// the strictest of them. `moving`: some of the rates may move.
    ///
    /// Limits that let it pass in an earlier stage are skipped: the swap detects whether their
    /// buckets have changed since.
    #[inline(always)]
    fn ask(&mut self, limits: u64, moving: bool) {
        self.workspace.refused = 0;
        let limits = if self.is_unasked() {
            limits
        } else {
            limits & !self.workspace.asked
        };
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(limits, limit_index) {
                // Looked up in each round: a set of limits would take stack.
                let is_moving = moving && self.tables.shape().is_moving(limit_index);
                let strictness =
                    self.buckets
                        .prepare(self.tables, self.workspace, limit_index, is_moving);
                let strictness = self.tables.opaque(strictness);
                self.workspace.strictest.consider(limit_index, strictness);
                if strictness != 0 {
                    self.workspace.refused |= bit(limit_index);
                }
            }
        }
    }

    /// Whether the source's standing has not been looked up, or no limit reserves anything.
    #[inline(always)]
    fn is_unasked(&self) -> bool {
        self.tables.shape().reserving == 0 || self.workspace.verdict.standing().is_none()
    }

    /// Whether the reserving limits among `limits`, already asked, let the packet pass regardless
    /// of its source. If its standing was not looked up, they must let even an unknown source pass.
    #[inline(always)]
    fn passes_unknown(&mut self, limits: u64) -> bool {
        let reserving = limits & self.tables.shape().reserving;
        reserving == 0
            || !self.is_unasked()
            || self.workspace.refused & reserving == 0
                && self
                    .buckets
                    .keep_reserves(self.tables, self.workspace, reserving)
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
                if !self.workspace.verdict.apply_update(limit_index, updated) {
                    break;
                }
            }
        }
        let refused_by = self.workspace.verdict.denied_by;
        if refused_by == NO_LIMIT {
            return;
        }
        let charged = limits & (bit(refused_by) - 1);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index) && contains(charged, limit_index) {
                // If the refund fails, the bucket is charged too much, never too little.
                self.buckets
                    .retry(self.workspace.charge(limit_index), Intent::Refund);
            }
        }
    }

    /// Charges each of `limits` by itself if it has the tokens, and notes the others.
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
                    self.workspace.verdict.would_drop |= bit(limit_index);
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
        let limits = self.tables.opaque(self.workspace.refused);
        for limit_index in limit_indices(self.tables) {
            if contains(self.among, limit_index)
                && contains(limits, limit_index)
                && self.workspace.charge(limit_index).plan.changes()
            {
                // If other CPUs win every attempt, they have as good as filled the window.
                self.change(limit_index, Intent::Refuse);
            }
        }
    }

    /// Returns the index, and hides all but its bounds from the verifier.
    ///
    /// In a loop that calls a function, verifiers before Linux 6.5 compare all numbers that they
    /// know, also dead ones. An index left over from an earlier round makes another verifier state
    /// of each later round, and the verifier walks the loop once for each pair of limits.
    #[inline(always)]
    fn opaque_index(&self, limit_index: u32) -> u32 {
        (self.tables.opaque(limit_index.into()) & 63) as u32
    }

    #[inline(always)]
    fn change(&mut self, limit_index: u32, intent: Intent) -> UpdateOutcome {
        let charge = self.workspace.charge(limit_index);
        match charge.swap(self.buckets) {
            Swap::Stored => UpdateOutcome::Stored,
            Swap::Unavailable => UpdateOutcome::Unavailable,
            Swap::Untracked => UpdateOutcome::Untracked,
            Swap::Changed | Swap::Misplaced => self.buckets.retry(charge, intent),
        }
    }
}
