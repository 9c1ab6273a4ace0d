//! Measures the pressure of sieves in the capture's time, at the daemon's interval, and sets it in the engine.

use std::time::Duration;

use limiter_common::{key::BucketKey, sieve::Pressure};
use limiter_policy::policy::{Policy, SieveUse};
use limiter_reputation::pressure::{EVERY, Gauge, HOLDS_NS, WINDOW};

use super::engine::{Engine, EngineError};

/// Measures pressures, and sums up how long they lasted.
#[derive(Debug)]
pub(super) struct Pressures {
    gauge: Gauge,
    /// The time of the first measurement, in nanoseconds of the engine's clock: just before the first packet.
    first_ns: Option<u64>,
    /// The time of the last measurement, in intervals from the first.
    polls: u64,
    /// In the order of the uses.
    lasted: Vec<PressureSummary>,
}

/// The pressure on a use of a sieve in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PressureSummary {
    /// The use.
    pub used: SieveUse,
    /// How long the pressure was above 0, so that a list was rejected.
    pub duration: Duration,
    /// The most lists rejected at once.
    pub highest: u8,
}

impl Pressures {
    pub(super) fn new(policy: &Policy) -> Self {
        let gauge = Gauge::new(policy);
        let lasted = gauge.uses().map(|used| PressureSummary {
            used,
            duration: Duration::ZERO,
            highest: 0,
        });
        Self {
            lasted: lasted.collect(),
            first_ns: None,
            polls: 0,
            gauge,
        }
    }

    /// Makes all measurements due until `now_ns` of the engine's clock.
    pub(super) fn until(
        &mut self,
        now_ns: u64,
        engine: &mut dyn Engine,
    ) -> Result<(), EngineError> {
        if self.gauge.is_idle() {
            return Ok(());
        }
        let Some(first_ns) = self.first_ns else {
            self.first_ns = Some(now_ns);
            return self.measure(now_ns, engine);
        };
        let every_ns = nanoseconds(EVERY);
        let now = now_ns.saturating_sub(first_ns) / every_ns;
        let in_window = nanoseconds(WINDOW).div_ceil(every_ns);
        let last = self.polls;
        // In a long pause, measurements at its start and its end suffice.
        let fades = last + in_window;
        let polls =
            (last + 1..=now.min(fades)).chain(now.saturating_sub(in_window).max(fades + 1)..=now);
        for poll in polls {
            self.measure(first_ns + poll * every_ns, engine)?;
            self.polls = poll;
        }
        Ok(())
    }

    fn measure(&mut self, at_ns: u64, engine: &mut dyn Engine) -> Result<(), EngineError> {
        let measured = {
            let engine = &*engine;
            let traffic = |index| engine.sieve_traffic(index);
            let open = |limit| engine.open_connections(&BucketKey::of_host(limit));
            self.gauge.measure(at_ns, traffic, open)?
        };
        for (one, lasted) in measured.iter().zip(&mut self.lasted) {
            let pressure = one.pressure.map_or_else(Pressure::default, |pressure| {
                Pressure::new(pressure.into(), at_ns.saturating_add(HOLDS_NS))
            });
            engine.set_pressure(one.index, pressure)?;
            if let Some(pressure @ 1..) = one.pressure {
                lasted.duration += EVERY;
                lasted.highest = lasted.highest.max(pressure);
            }
        }
        Ok(())
    }

    /// Returns the pressure on each use so far.
    pub(super) fn lasted(&self) -> &[PressureSummary] {
        &self.lasted
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
