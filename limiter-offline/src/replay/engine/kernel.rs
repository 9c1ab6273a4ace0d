//! The daemon's program, run through `BPF_PROG_TEST_RUN` with the capture's clock.

use limiter_capture::CapturedFrame;
use limiter_common::{
    ban::{Ban, BanKey, Hits},
    connection::Ends,
    cookie::{CookieCheck, CookieKeys},
    decide::Verdict,
    key::BucketKey,
    offender::{Offender, OffenderKey},
    packet::Frame as _,
    packet::TcpState,
    sieve::{Pressure, SieveTraffic},
    standing::{Event, SourceId},
};
use limiter_datapath::kernel::{Trial, preflight::longest_test_frame};
use limiter_native::{PrefixStanding, SieveMemory};
use limiter_policy::{
    config::{Buckets, Offenders},
    policy::CompiledPolicy,
};

use super::{Engine, EngineError};

/// The offset of the Ethernet source address, and its group bit.
const ETHERNET_SOURCE: usize = 6;
const GROUP: u8 = 1;

/// Decides in the kernel.
pub struct KernelEngine {
    trial: Trial,
    /// The frame passed to the kernel.
    frame: Vec<u8>,
    /// The keys of DNS cookies.
    cookie_keys: CookieKeys,
}

impl KernelEngine {
    /// Loads the program, attached to nothing.
    pub fn new(
        policy: &CompiledPolicy,
        buckets: Buckets,
        offenders: Offenders,
    ) -> Result<Self, EngineError> {
        Ok(Self {
            trial: Trial::with_same_secret(policy, buckets, offenders)?,
            frame: Vec::new(),
            cookie_keys: CookieKeys::NONE,
        })
    }

    fn judge(&mut self, now_ns: u64) -> Result<Verdict, EngineError> {
        Ok(self.trial.judge(now_ns, &self.frame)?)
    }

    fn write_cookie_keys(&self, keys: CookieKeys) -> Result<(), EngineError> {
        Ok(self.trial.source_maps().cookies().set(keys)?)
    }
}

impl Engine for KernelEngine {
    fn decide(
        &mut self,
        _policy: &CompiledPolicy,
        now_ns: u64,
        frame: &CapturedFrame<'_>,
    ) -> Result<Verdict, EngineError> {
        let longest = longest_test_frame();
        if frame.length() > longest {
            return Err(EngineError::TooLong {
                length: frame.length(),
                longest,
            });
        }
        self.frame.clear();
        self.frame.extend_from_slice(frame.data);
        // Pads the part that the capture lacks: the frame's length counts, and its missing bytes matter only in
        // an answer.
        self.frame.resize(frame.length(), 0);
        if frame.is_cut()
            && let Some(first) = self.frame.get_mut(ETHERNET_SOURCE)
        {
            // An answer needs the missing bytes. A group address as the sender prevents the answer, and changes
            // no count.
            *first |= GROUP;
        }
        if !frame.is_cut() || self.cookie_keys == CookieKeys::NONE {
            return self.judge(now_ns);
        }
        // A truncated packet has no cookie to check.
        self.write_cookie_keys(CookieKeys::NONE)?;
        let verdict = self.judge(now_ns);
        self.write_cookie_keys(self.cookie_keys)?;
        verdict
    }

    fn assume_tcp_state(&mut self, state: TcpState) -> Result<(), EngineError> {
        Ok(self.trial.set_tcp_state(state)?)
    }

    fn answer(&self, _frame: &CapturedFrame<'_>) -> Vec<u8> {
        self.trial.answer().to_vec()
    }

    fn set_cookie_keys(&mut self, keys: CookieKeys) -> Result<(), EngineError> {
        self.cookie_keys = keys;
        self.write_cookie_keys(keys)
    }

    fn valid_cookies(&self) -> Result<u64, EngineError> {
        let cookies = self.trial.source_maps().cookies();
        Ok(cookies.count(CookieCheck::Valid)?)
    }

    fn set_pressure(&mut self, index: u32, pressure: Pressure) -> Result<(), EngineError> {
        let sieves = self.trial.source_maps().sieves();
        Ok(sieves.pressures().set_pressure(index, pressure)?)
    }

    fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, EngineError> {
        Ok(self.trial.source_maps().sieves().traffic(index)?)
    }

    fn opened(
        &mut self,
        _policy: &CompiledPolicy,
        _ends: &Ends,
        _now_ns: u64,
    ) -> Result<(), EngineError> {
        Err(EngineError::Connections)
    }

    fn completed(
        &mut self,
        _policy: &CompiledPolicy,
        _ends: &Ends,
        _now_ns: u64,
    ) -> Result<(), EngineError> {
        Err(EngineError::Connections)
    }

    fn closed(&mut self, _policy: &CompiledPolicy, _ends: &Ends) -> Result<(), EngineError> {
        Err(EngineError::Connections)
    }

    fn open_connections(&self, _key: &BucketKey) -> Result<u64, EngineError> {
        Err(EngineError::Connections)
    }

    fn sieves(&self) -> SieveMemory<'_> {
        self.trial.source_maps().sieves().memory()
    }

    fn bucket(&self, key: &BucketKey) -> Result<Option<u64>, EngineError> {
        let bucket = self.trial.maps().bucket(key)?;
        Ok(bucket.map(|bucket| bucket.state))
    }

    fn offenders(&self) -> Result<Vec<(OffenderKey, Offender)>, EngineError> {
        Ok(self.trial.maps().offenders().read()?.offenders)
    }

    fn standing_of(
        &self,
        _policy: &CompiledPolicy,
        prefix: &BanKey,
        now_ns: u64,
    ) -> Result<PrefixStanding, EngineError> {
        Ok(self.trial.standing_of(prefix, now_ns)?)
    }

    fn ban(&mut self, key: BanKey, ban: &Ban) -> Result<(), EngineError> {
        Ok(self.trial.source_maps_mut().bans().insert(key, *ban)?)
    }

    fn record_event(
        &mut self,
        policy: &CompiledPolicy,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Result<(), EngineError> {
        let standing = self.trial.source_maps().standing();
        standing.record_event(&policy.features, source, event, now_ns)?;
        Ok(())
    }

    fn hits(&self, key: &BanKey) -> Result<Hits, EngineError> {
        Ok(self.trial.source_maps().bans().hits(key)?)
    }

    fn unban(&mut self, key: &BanKey) -> Result<(), EngineError> {
        self.trial.source_maps_mut().bans().remove(key)?;
        Ok(())
    }
}
