//! What is to become of a bucket's state: a decision that a store may have to repeat.

#[cfg(not(target_arch = "bpf"))]
use super::NO_STATE;
use super::{
    Layout, Strategy, gcra,
    rule::{Rule as _, State as _},
    window::Window,
};
use crate::bucket::Updated;

/// How long to wait for what never passes.
pub const NEVER: u64 = u64::MAX;

/// What was decided on a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The state that the bucket is to have. Of some strategies it is another one also after a
    /// refusal.
    pub state: u64,
    /// How long until it would pass, in ticks; 0: it does. [`NEVER`]: no waiting will make it.
    pub wait: u64,
}

impl Decision {
    /// It passes.
    #[must_use]
    #[inline(always)]
    pub const fn pass(state: u64) -> Self {
        Self { state, wait: 0 }
    }

    #[inline(always)]
    pub(crate) const fn refuse(state: u64, wait: u64) -> Self {
        Self { state, wait }
    }

    /// How an update ends that stores the state.
    #[must_use]
    #[inline(always)]
    pub const fn ended(&self) -> Updated {
        if self.passes() {
            Updated::Stored
        } else {
            Updated::Declined
        }
    }

    /// Whether it passes.
    #[must_use]
    #[inline(always)]
    pub const fn passes(&self) -> bool {
        self.wait == 0
    }
}

/// What a packet takes from a bucket, in plain numbers: all that is left to know is the bucket's
/// state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Spend {
    /// The time, in ticks. Of a swap, the state that is expected.
    now: u64,
    /// The cost: of GCRA in ticks, of windows in tokens. Of a swap, the state to be put in its
    /// place.
    increment: u64,
    /// Of GCRA the latest TAT that it may lead to; of windows the most tokens.
    most: u64,
    /// Of windows, the period in ticks.
    period: u64,
    /// Whose state it is.
    layout: Layout,
    /// [`SPEND`] or [`SWAP`].
    kind: u32,
}

const SPEND: u32 = 0;
/// Not a decision, but one that was taken already.
const SWAP: u32 = 1;

impl Spend {
    /// From no bucket.
    pub const NONE: Self = Self::of_gcra(gcra::Spend::NONE);

    /// From a bucket of GCRA.
    #[must_use]
    #[inline(always)]
    pub const fn of_gcra(spend: gcra::Spend) -> Self {
        let gcra::Spend {
            now,
            increment,
            latest,
        } = spend;
        Self {
            now,
            increment,
            most: latest,
            period: 0,
            layout: Layout::GCRA,
            kind: SPEND,
        }
    }

    /// `cost` tokens of a window at the time `now`, in ticks.
    #[inline(always)]
    pub(super) const fn of_window(window: &Window, now: u64, cost: u64) -> Self {
        Self {
            now,
            increment: cost,
            most: window.count,
            period: window.period,
            layout: window.layout,
            kind: SPEND,
        }
    }

    /// The state `wanted`, if the bucket still is in the state `expected`.
    #[must_use]
    pub const fn swap(expected: u64, wanted: u64) -> Self {
        let mut spend = Self::NONE;
        spend.set_swap(expected, wanted);
        spend
    }

    /// Becomes a [`Self::swap`]. In place, and no more than what is read: to write a whole one is
    /// a call to a loop over bytes in BPF. So with the next ones.
    #[inline(always)]
    pub const fn set_swap(&mut self, expected: u64, wanted: u64) {
        self.now = expected;
        self.increment = wanted;
        self.layout = Layout::GCRA;
        self.kind = SWAP;
    }

    /// Becomes one of GCRA, where it never was another.
    #[inline(always)]
    pub(crate) const fn set_gcra(&mut self, spend: &gcra::Spend) {
        self.now = spend.now;
        self.increment = spend.increment;
        self.most = spend.latest;
    }

    /// Becomes one for a TAT of at least `tat`, whatever the bucket holds.
    #[inline(always)]
    pub(crate) const fn set_at_least(&mut self, tat: u64) {
        self.now = tat;
        self.increment = 0;
        self.most = u64::MAX;
        self.layout = Layout::GCRA;
        self.kind = SPEND;
    }

    /// Becomes one that no strategy counts.
    #[inline(always)]
    pub(crate) const fn set_none(&mut self) {
        self.layout = Layout::GCRA;
        self.kind = SPEND;
    }

    /// `increment` at the time `now`, both in ticks of GCRA, whatever the bucket holds: for those
    /// who move debts, and not for packets. It refuses to make a state that is none, a lock.
    #[cfg(not(target_arch = "bpf"))]
    #[must_use]
    pub const fn unbounded(now: u64, increment: u64) -> Self {
        Self::of_gcra(gcra::Spend::new(now, increment, NO_STATE - 1))
    }

    /// By which rule it is decided on.
    #[must_use]
    #[inline(always)]
    pub const fn strategy(&self) -> Strategy {
        self.layout.strategy()
    }

    /// Whether it is one of GCRA, as most are: [`Self::gcra`] tells what it takes.
    #[must_use]
    #[inline(always)]
    pub const fn is_gcra(&self) -> bool {
        matches!(self.layout.strategy(), Strategy::Gcra) && self.kind == SPEND
    }

    /// What one of GCRA takes.
    #[must_use]
    #[inline(always)]
    pub const fn gcra(&self) -> gcra::Spend {
        gcra::Spend::new(self.now, self.increment, self.most)
    }

    /// What a window takes it from.
    #[must_use]
    #[inline(always)]
    pub const fn window(&self) -> Window {
        Window {
            count: self.most,
            period: self.period,
            layout: self.layout,
            reserved: 0,
        }
    }

    /// Decides on a bucket in that state, and on no more than that: a moving window takes its log
    /// besides, and refuses here.
    #[must_use]
    #[inline(always)]
    pub fn apply(&self, state: u64) -> Decision {
        ask!(self.strategy(), Rule => Rule::decide(self, state))
    }

    /// The state of a bucket that gets back what a packet was charged. A bucket that has refilled
    /// in between is not overfilled; [`super::moving_window`] tells how a log is given back.
    #[must_use]
    #[inline(always)]
    pub fn undo(&self, state: u64) -> u64 {
        ask!(self.strategy(), Rule => Rule::undo(self, state))
    }

    /// The state of a bucket that gets this back, what it owes at most: for people, and not for
    /// packets. [`without_last`](super::moving_window::Cursor::without_last) does so for moving
    /// windows.
    #[must_use]
    #[inline(always)]
    pub fn refunded(&self, state: u64) -> u64 {
        ask_state!(self.strategy(), State => State::refunded(self, state))
    }

    /// What the bits of the bucket's states mean.
    #[must_use]
    #[inline(always)]
    pub const fn layout(&self) -> Layout {
        self.layout
    }

    /// The time, in ticks.
    #[inline(always)]
    pub(super) const fn now(&self) -> u64 {
        self.now
    }

    /// What it takes from a window, in tokens.
    #[inline(always)]
    pub(super) const fn cost(&self) -> u64 {
        self.increment
    }

    /// The most tokens of the window.
    #[inline(always)]
    pub(crate) const fn count(&self) -> u64 {
        self.most
    }

    /// Whether a bucket that refuses it counts it.
    #[inline(always)]
    pub(crate) const fn counts_refusal(&self) -> bool {
        ask!(self.strategy(), Rule => Rule::COUNTS_REFUSALS)
    }

    /// Of a swap the state that is expected, and the one that is to take its place.
    #[inline(always)]
    pub(crate) const fn swapped(&self) -> Option<(u64, u64)> {
        if self.kind == SWAP {
            Some((self.now, self.increment))
        } else {
            None
        }
    }
}

/// What a store is to do to a bucket. Those of windows are swapped: their spends are none of its
/// business.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// To take tokens, if it has them, or to swap the state, if it is the expected one.
    Spend(&'a Spend),
    /// To give them back.
    Refund(&'a Spend),
}

impl Change<'_> {
    /// Whether it gives tokens back.
    #[must_use]
    #[inline(always)]
    pub const fn is_refund(&self) -> bool {
        matches!(self, Self::Refund(_))
    }

    /// Decides on a bucket in that state; a refund always passes.
    #[must_use]
    #[inline(always)]
    pub const fn apply(&self, state: u64) -> Decision {
        match self {
            Self::Spend(spend) => match spend.swapped() {
                Some((expected, wanted)) if state == expected => Decision::pass(wanted),
                Some(_) => Decision::refuse(state, 1),
                None => spend.gcra().decide(state),
            },
            Self::Refund(spend) => Decision::pass(spend.gcra().undo(state)),
        }
    }
}
