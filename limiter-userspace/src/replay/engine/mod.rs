//! Who decides: the core in this process, or the program in the kernel.

mod kernel;
mod native;

use limiter_common::{
    ban::{Ban, BanKey},
    decide::Verdict,
    offender::{Offender, OffenderKey},
    owner::BucketKey,
    sieve::{Pressure, SieveTraffic},
};
use limiter_datapath::{kernel::DatapathError, native::SieveMemory};
use limiter_policy::policy::CompiledPolicy;
use thiserror::Error;

pub use self::{kernel::KernelEngine, native::NativeEngine};
use super::CapturedFrame;

/// Decides on frames, and keeps the buckets.
pub trait Engine {
    /// Decides on a frame at a time of the engine's clock, in nanoseconds.
    fn decide(
        &mut self,
        policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Verdict, EngineError>;

    /// Sets the pressure at an index.
    fn set_pressure(&mut self, index: u32, pressure: Pressure) -> Result<(), EngineError>;

    /// What was counted at an index of uses of sieves.
    fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, EngineError>;

    /// What is in the sieves.
    fn sieves(&self) -> SieveMemory<'_>;

    /// The state of a bucket; `None`: there is none.
    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError>;

    /// Those who were dropped, if they are recorded, in no order.
    fn offenders(&self) -> Result<Vec<(OffenderKey, Offender)>, EngineError>;

    /// Bans a prefix, in place of a ban that it has.
    fn ban(&mut self, key: BanKey, ban: &Ban) -> Result<(), EngineError>;

    /// Lifts the ban of a prefix, if it has one.
    fn unban(&mut self, key: &BanKey) -> Result<(), EngineError>;
}

/// An engine could not decide.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The kernel or its maps.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// The kernel runs programs on shorter frames only.
    #[error(
        "a frame of {length} bytes: the kernel runs a program on {longest} at most; replay it \
         with `--engine native`"
    )]
    TooLong {
        /// The frame's length in bytes.
        length: usize,
        /// The longest in bytes.
        longest: usize,
    },
}
