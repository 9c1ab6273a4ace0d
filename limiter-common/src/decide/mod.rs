//! The decision: a pipeline of stages, from a frame to its verdict.
//!
//! ```text
//! entry: parse, match, standing ─▶ sieves ─▶ charge ─▶ observe ─▶ verdict
//! ```
//!
//! The entry finds the facts of the packet, what is known of its source, and the limits that count
//! it. The strongest word comes first: an excluded source passes; a blocked or banned one is
//! dropped; so is one that is blocked by a limit that counts the packet, or that is too busy under
//! pressure.
//!
//! Then every matching limit is asked. One denial drops the packet, and nothing is charged;
//! otherwise all are charged. (But a fixed window counts what it refuses itself.) That takes two
//! passes. The first only reads: most denials end there, having touched nothing. The second charges
//! each bucket by compare-and-swap, from the state that the first has seen, or else decides again
//! on the state that it finds. Where another CPU has emptied a bucket in between, what was charged
//! before it is refunded, and the packet is dropped. In that window other packets of the same
//! source may be denied that would have passed; none passes that would have been denied.
//!
//! Limits that only observe come last, on packets that the others let pass, each by itself:
//! Boulder's spend-only transactions.
//!
//! The stages hand over in the [`Workspace`]. A new one is a file here, a line in the table of
//! [`Stage`], an arm in [`Pipeline::run`], and an entry in the kernel's object.

mod charging;
mod entry;
mod stage;
mod strictest;
mod verdict;
mod window;

pub use self::charging::prepare;
pub use self::{
    stage::{STAGE_COUNT, Stage},
    verdict::Verdict,
    window::{WindowChange, change_window, decide_window},
};
pub(crate) use self::{strictest::Strictest, window::Steps};
use crate::{
    bucket::BucketStore,
    charge::Workspace,
    offender::{Dropper, OffenderStore},
    packet::Headers,
    policy::Tables,
    reputation::Reputation,
};

/// The time.
pub trait Clock {
    /// Nanoseconds since any fixed moment, the same for all CPUs but for microseconds.
    fn now(&self) -> u64;
}

/// What a packet is decided by: the time, the policy, and what is kept of sources.
#[derive(Clone, Copy, Debug)]
pub struct Pipeline<'a, C, T, B, O, R> {
    /// The time.
    pub clock: &'a C,
    /// The policy.
    pub tables: &'a T,
    /// What sources have spent.
    pub buckets: &'a B,
    /// Where sources are recorded that a limit or a sieve drops.
    pub offenders: &'a O,
    /// What is known of sources besides.
    pub reputation: &'a R,
}

/// How a stage ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The verdict in the workspace is the last word.
    Decided,
    /// It is that of the next stage, if there is one.
    Undecided,
}

impl<C, T, B, O, R> Pipeline<'_, C, T, B, O, R>
where
    C: Clock,
    T: Tables,
    B: BucketStore,
    O: OffenderStore,
    R: Reputation,
{
    /// Decides on a frame: charges the buckets that it is to be charged to, or records the limit or
    /// the sieve that drops it.
    #[inline(always)]
    pub fn decide<H: Headers>(&self, headers: &H, workspace: &mut Workspace<B::Found>) -> Verdict {
        if let Some(verdict) = self.enter(headers, workspace) {
            return verdict;
        }
        let mut next = Stage::first(self.tables.shape());
        while let Some(stage) = next {
            if self.run(stage, workspace) == Progress::Decided {
                break;
            }
            next = stage.next(self.tables.shape());
        }
        *workspace.verdict()
    }

    /// Decides on a frame, if that takes no stage. If it does (`None`), the workspace has all that
    /// they need.
    #[inline(always)]
    pub fn enter<H: Headers>(
        &self,
        headers: &H,
        workspace: &mut Workspace<B::Found>,
    ) -> Option<Verdict> {
        entry::enter(headers, self.clock, self.tables, self.reputation, workspace)
    }

    /// Runs one stage on the packet in the workspace.
    #[inline(always)]
    pub fn run(&self, stage: Stage, workspace: &mut Workspace<B::Found>) -> Progress {
        match stage {
            Stage::Sieves => self.sift(workspace),
            Stage::Charge => self.charge(workspace),
            Stage::Observe => {
                charging::observe(self.buckets, self.tables, workspace);
                Progress::Undecided
            }
        }
    }

    #[inline(always)]
    fn sift(&self, workspace: &mut Workspace<B::Found>) -> Progress {
        let Workspace {
            packet, verdict, ..
        } = workspace;
        if self.reputation.sift(self.tables, packet, verdict) {
            let (slot, by) = (verdict.denied_by, Dropper::Sieve);
            self.offenders.record(self.tables, packet, slot, by);
            return Progress::Decided;
        }
        if verdict.matched == 0 {
            Progress::Decided
        } else {
            Progress::Undecided
        }
    }

    #[inline(always)]
    fn charge(&self, workspace: &mut Workspace<B::Found>) -> Progress {
        charging::charge(self.buckets, self.tables, workspace);
        let Workspace {
            packet, verdict, ..
        } = workspace;
        let Some(slot) = verdict.denied_by() else {
            return Progress::Undecided;
        };
        let by = Dropper::Budget;
        self.offenders.record(self.tables, packet, slot, by);
        Progress::Decided
    }
}
