//! What became of a capture's packets, by reason and by limit.

use std::time::Duration;

use limiter_common::{
    counters::{LimitTraffic, Traffic},
    decide::Verdict,
    reason::{Action, REASON_COUNT, Reason},
};

use super::{Judged, judge::slots};

/// Counts judged packets.
#[derive(Clone, Debug)]
pub struct Summary {
    reasons: [Traffic; REASON_COUNT as usize],
    limits: Vec<LimitTraffic>,
    passed: Traffic,
    dropped: Traffic,
    /// Packets whose end the capture lacks.
    pub cut: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Summary {
    /// Of no packet, under so many limits.
    #[must_use]
    pub fn new(limits: usize) -> Self {
        Self {
            reasons: [Traffic::default(); REASON_COUNT as usize],
            limits: vec![LimitTraffic::default(); limits],
            passed: Traffic::default(),
            dropped: Traffic::default(),
            cut: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// Counts a packet.
    pub fn add(&mut self, packet: &Judged) {
        self.reasons[packet.verdict.reason as usize].add(packet.length);
        self.cut += u64::from(packet.cut);
        self.first_ns = self.first_ns.min(packet.t_ns);
        self.last_ns = self.last_ns.max(packet.t_ns);
        let Verdict {
            matched,
            would_drop,
            ..
        } = packet.verdict;
        match packet.action {
            Action::Pass => {
                self.passed.add(packet.length);
                for slot in slots(matched & !would_drop) {
                    self.limits[slot as usize].passed.add(packet.length);
                }
                for slot in slots(would_drop) {
                    self.limits[slot as usize].would_drop.add(packet.length);
                }
            }
            Action::Drop => {
                self.dropped.add(packet.length);
                if let Some(slot) = packet.verdict.denied_by() {
                    self.limits[slot as usize].dropped.add(packet.length);
                }
            }
        }
    }

    /// What was counted under a reason.
    #[must_use]
    pub const fn reason(&self, reason: Reason) -> Traffic {
        self.reasons[reason as usize]
    }

    /// What was counted for the limits, by slot: charged to them, and dropped by them.
    #[must_use]
    pub fn limits(&self) -> &[LimitTraffic] {
        &self.limits
    }

    /// What passed or was dropped.
    #[must_use]
    pub const fn of(&self, action: Action) -> Traffic {
        match action {
            Action::Pass => self.passed,
            Action::Drop => self.dropped,
        }
    }

    /// From the earliest packet to the latest.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        Duration::from_nanos(self.last_ns.abs_diff(self.first_ns))
    }
}
