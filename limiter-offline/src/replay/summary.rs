//! Counts the packets of a capture by reason and by limit.

use std::time::Duration;

use limiter_common::{
    answer::Answer,
    counters::{LimitTraffic, Traffic},
    decide::Verdict,
    reason::{Action, REASON_COUNT, Reason},
    standing::Standing,
};

use super::{ReplayedPacket, judge::limit_indices};

/// Counts judged packets.
#[derive(Clone, Debug)]
pub struct Summary {
    reasons: [Traffic; REASON_COUNT as usize],
    limits: Vec<LimitTraffic>,
    standings: [LimitTraffic; Standing::COUNT],
    passed: Traffic,
    dropped: Traffic,
    /// The dropped packets that were answered, by the number of the answer.
    answered: [u64; Answer::COUNT],
    /// Packets that are truncated in the capture.
    pub cut: u64,
    first_ns: i64,
    last_ns: i64,
}

impl Summary {
    /// Makes an empty summary for a number of limits.
    #[must_use]
    pub fn new(limits: usize) -> Self {
        Self {
            reasons: [Traffic::default(); REASON_COUNT as usize],
            limits: vec![LimitTraffic::default(); limits],
            standings: [LimitTraffic::default(); Standing::COUNT],
            passed: Traffic::default(),
            dropped: Traffic::default(),
            answered: [0; Answer::COUNT],
            cut: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// Counts a packet.
    pub fn add(&mut self, packet: &ReplayedPacket) {
        let carried = Traffic::of_frame(packet.length);
        self.reasons[packet.verdict.reason as usize] += carried;
        self.cut += u64::from(packet.cut);
        self.first_ns = self.first_ns.min(packet.t_ns);
        self.last_ns = self.last_ns.max(packet.t_ns);
        let Verdict {
            matched,
            would_drop,
            ..
        } = packet.verdict;
        if let Some(standing) = packet.verdict.standing() {
            let traffic = &mut self.standings[standing as usize];
            match packet.action {
                Action::Pass => traffic.passed += carried,
                Action::Drop => traffic.dropped += carried,
            }
        }
        self.answered[packet.verdict.answer() as usize] += 1;
        match packet.action {
            Action::Pass => {
                self.passed += carried;
                for limit_index in limit_indices(matched & !would_drop) {
                    self.limits[limit_index as usize].passed += carried;
                }
                for limit_index in limit_indices(would_drop) {
                    self.limits[limit_index as usize].would_drop += carried;
                }
            }
            Action::Drop => {
                self.dropped += carried;
                if let Some(limit_index) = packet.verdict.refused_by() {
                    self.limits[limit_index as usize].dropped += carried;
                }
            }
        }
    }

    /// Returns the packets with a reason.
    #[must_use]
    pub const fn reason(&self, reason: Reason) -> Traffic {
        self.reasons[reason as usize]
    }

    /// Returns the packets that each limit passed and dropped, by limit index.
    #[must_use]
    pub fn limits(&self) -> &[LimitTraffic] {
        &self.limits
    }

    /// Returns by standing the packets that passed and were dropped, in the order of [`Standing::ALL`], as far
    /// as the standing was looked up.
    #[must_use]
    pub const fn standings(&self) -> &[LimitTraffic; Standing::COUNT] {
        &self.standings
    }

    /// Returns the packets that passed or were dropped.
    #[must_use]
    pub const fn of(&self, action: Action) -> Traffic {
        match action {
            Action::Pass => self.passed,
            Action::Drop => self.dropped,
        }
    }

    /// Returns the sent answers, each with its number.
    pub fn answered(&self) -> impl Iterator<Item = (Answer, u64)> {
        let answered = Answer::ALL.into_iter().zip(self.answered);
        answered.filter(|(answer, number)| *answer != Answer::Drop && *number > 0)
    }

    /// Returns the time from the earliest packet to the latest.
    #[must_use]
    pub const fn duration(&self) -> Duration {
        Duration::from_nanos(self.last_ns.abs_diff(self.first_ns))
    }
}
