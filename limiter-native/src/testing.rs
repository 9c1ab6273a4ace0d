//! Decisions on single frames in memory.

use limiter_common::{
    answer::Exchange,
    decide::{DecisionSteps, Pipeline, Scratch, Verdict},
    offender::OffenderTable,
    packet::Frame,
    policy::Tables,
    source_tables::SourceTables,
};

use super::FixedClock;

/// Decides as [`Pipeline::decide`] does on one frame that arrives at `now_ns`, with scratch memory
/// of its own. A caller that decides on many frames keeps one [`Scratch`] instead.
pub fn decide_once<F, T, B, O, R>(
    frame: &F,
    now_ns: u64,
    tables: &T,
    buckets: &B,
    offenders: &O,
    source_tables: &R,
) -> Verdict
where
    F: Frame,
    T: Tables,
    B: DecisionSteps,
    O: OffenderTable,
    R: SourceTables,
{
    let pipeline = Pipeline {
        clock: &FixedClock(now_ns),
        tables,
        buckets,
        offenders,
        source_tables,
    };
    let mut exchange = Exchange::EMPTY;
    pipeline.decide(frame, &mut Scratch::default(), &mut exchange)
}
