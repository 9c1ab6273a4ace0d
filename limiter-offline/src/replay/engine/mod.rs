//! The engines that decide: the core in this process, or the program in the kernel.

mod kernel;
mod native;

use limiter_capture::CapturedFrame;
use limiter_common::{
    ban::{Ban, BanKey, Hits},
    connection::Ends,
    cookie::CookieKeys,
    decide::Verdict,
    key::BucketKey,
    offender::{Offender, OffenderKey},
    packet::TcpState,
    sieve::{Pressure, SieveTraffic},
    standing::{Event, SourceId},
};
use limiter_datapath::kernel::DatapathError;
use limiter_native::{PrefixStanding, SieveMemory};
use limiter_policy::policy::CompiledPolicy;
use thiserror::Error;

pub use self::{kernel::KernelEngine, native::NativeEngine};

/// Decides on frames and keeps the buckets.
pub trait Engine {
    /// Decides on a frame at a time of the engine's clock, in nanoseconds.
    fn decide(
        &mut self,
        policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Verdict, EngineError>;

    /// Sets the connection state of further segments that open no connection; at first it is established.
    fn assume_tcp_state(&mut self, state: TcpState) -> Result<(), EngineError>;

    /// Returns the answer to the last frame. Precondition: its verdict requires an answer.
    fn answer(&self, frame: &CapturedFrame<'_>) -> Vec<u8>;

    /// Sets the keys of DNS cookies.
    fn set_cookie_keys(&mut self, keys: CookieKeys) -> Result<(), EngineError>;

    /// Returns the number of valid DNS cookies so far.
    fn valid_cookies(&self) -> Result<u64, EngineError>;

    /// Sets the pressure at an index.
    fn set_pressure(&mut self, index: u32, pressure: Pressure) -> Result<(), EngineError>;

    /// Returns the counters of a sieve's use at an index.
    fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, EngineError>;

    /// Counts a connection, established at a time of the engine's clock, in nanoseconds.
    fn opened(
        &mut self,
        policy: &CompiledPolicy,
        ends: &Ends,
        now_ns: u64,
    ) -> Result<(), EngineError>;

    /// Charges a handshake, completed at a time of the engine's clock, in nanoseconds.
    fn completed(
        &mut self,
        policy: &CompiledPolicy,
        ends: &Ends,
        now_ns: u64,
    ) -> Result<(), EngineError>;

    /// Removes a closed connection from the counts.
    fn closed(&mut self, policy: &CompiledPolicy, ends: &Ends) -> Result<(), EngineError>;

    /// Returns how many connections the key of a bucket has open.
    fn open_connections(&self, key: &BucketKey) -> Result<u64, EngineError>;

    /// Returns the contents of the sieves.
    fn sieves(&self) -> SieveMemory<'_>;

    /// Returns the state of a bucket, if it exists.
    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError>;

    /// Returns the recorded offenders, in no order.
    fn offenders(&self) -> Result<Vec<(OffenderKey, Offender)>, EngineError>;

    /// Returns the standing of a prefix at a time of the engine's clock, in nanoseconds.
    fn standing_of(
        &self,
        policy: &CompiledPolicy,
        prefix: &BanKey,
        now_ns: u64,
    ) -> Result<PrefixStanding, EngineError>;

    /// Bans a prefix and replaces any ban that it has.
    fn ban(&mut self, key: BanKey, ban: &Ban) -> Result<(), EngineError>;

    /// Records an event of a source at a time of the engine's clock, in nanoseconds, for its standing. Visits
    /// and retries are not events. Precondition: the policy uses standing.
    fn record_event(
        &mut self,
        policy: &CompiledPolicy,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Result<(), EngineError>;

    /// Returns the packets that bans of a prefix have dropped.
    fn hits(&self, key: &BanKey) -> Result<Hits, EngineError>;

    /// Lifts the ban of a prefix, if any, and resets its hits.
    fn unban(&mut self, key: &BanKey) -> Result<(), EngineError>;
}

/// An engine could not decide.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The kernel or its maps failed.
    #[error(transparent)]
    Datapath(#[from] DatapathError),
    /// Only connections of the kernel's own network stack could be counted.
    #[error(
        "the kernel counts the connections of its own network stack, not those of a capture: replay \
         it with `--engine native`"
    )]
    Connections,
    /// The frame is too long for the kernel to run a program on.
    #[error(
        "the frame has {length} bytes, but the kernel runs a program on at most {longest}: replay \
         it with `--engine native`"
    )]
    TooLong {
        /// The frame's length in bytes.
        length: usize,
        /// The longest frame in bytes.
        longest: usize,
    },
}
