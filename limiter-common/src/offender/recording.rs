//! An allowance for recording drops. It keeps records cheaper than decisions in a flood.

use crate::strategy::gcra::Gcra;

/// The number of drops that each CPU records per second.
///
/// A record takes about a microsecond when it evicts another offender, and much less otherwise: at most a tenth of a
/// CPU.
pub const RECORDS_PER_SECOND: u64 = 100_000;

/// The number of drops that each CPU records at once after an idle period.
pub const RECORDS_BURST: u64 = 4_096;

/// Written out, because the code that derives parameters from rates does not compile for BPF.
const RECORDS: Gcra = Gcra {
    emission_interval: INTERVAL_NS,
    burst: RECORDS_BURST,
    burst_offset: RECORDS_BURST * INTERVAL_NS,
    ..Gcra::NONE
};

const INTERVAL_NS: u64 = 1_000_000_000 / RECORDS_PER_SECOND;

/// The result of recording a drop that was within the allowance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordOutcome {
    /// The drop was added to a known offender.
    Again,
    /// The drop created a record: the offender was new, or had been evicted.
    Anew,
    /// The table has no room for the offender.
    NoRoom,
}

/// The records of one CPU: its remaining allowance and its counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Recording {
    /// The allowance's TAT: the time at which it is full again, in nanoseconds of the decision's clock.
    full_again_ns: u64,
    /// The counters.
    pub counts: RecordingCounts,
}

/// Counters of drops: each drop is recorded or skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RecordingCounts {
    /// Recorded drops.
    pub recorded: u64,
    /// Recorded drops that created a record for their offender or name.
    pub inserted: u64,
    /// Drops not recorded for lack of allowance or room.
    pub skipped: u64,
}

const _: () = assert!(size_of::<Recording>() == 4 * 8, "no padding");

impl core::ops::AddAssign for RecordingCounts {
    fn add_assign(&mut self, other: Self) {
        self.recorded = self.recorded.wrapping_add(other.recorded);
        self.inserted = self.inserted.wrapping_add(other.inserted);
        self.skipped = self.skipped.wrapping_add(other.skipped);
    }
}

impl Recording {
    /// Records a drop at `now_ns` by `enter`, and the packet's name by `enter_name`, unless the allowance is spent;
    /// counts it either way.
    #[inline(always)]
    pub fn record(
        &mut self,
        now_ns: u64,
        enter: impl FnOnce() -> RecordOutcome,
        enter_name: impl FnOnce() -> Option<RecordOutcome>,
    ) {
        let outcome = if RECORDS.take(now_ns, &mut self.full_again_ns) {
            if enter_name() == Some(RecordOutcome::Anew) {
                self.counts.inserted = self.counts.inserted.wrapping_add(1);
            }
            enter()
        } else {
            RecordOutcome::NoRoom
        };
        let counts = &mut self.counts;
        match outcome {
            RecordOutcome::Again => counts.recorded = counts.recorded.wrapping_add(1),
            RecordOutcome::Anew => {
                counts.recorded = counts.recorded.wrapping_add(1);
                counts.inserted = counts.inserted.wrapping_add(1);
            }
            RecordOutcome::NoRoom => counts.skipped = counts.skipped.wrapping_add(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_000_000_000_000;

    /// Records `count` drops at one time.
    fn record(recording: &mut Recording, now_ns: u64, count: u64, outcome: RecordOutcome) {
        for _ in 0..count {
            recording.record(now_ns, || outcome, || None);
        }
    }

    #[test]
    fn the_allowance_is_the_documented_rate() {
        assert_eq!(
            Gcra::new(RECORDS_BURST, RECORDS_PER_SECOND, 1_000_000_000),
            Some(RECORDS)
        );
    }

    #[test]
    fn a_burst_and_then_the_rate() {
        let mut recording = Recording::default();
        record(
            &mut recording,
            START,
            RECORDS_BURST + 7,
            RecordOutcome::Again,
        );
        assert_eq!(recording.counts.recorded, RECORDS_BURST);
        assert_eq!(recording.counts.skipped, 7);

        // One more record for each whole interval that has passed.
        record(
            &mut recording,
            START + INTERVAL_NS - 1,
            1,
            RecordOutcome::Again,
        );
        assert_eq!(recording.counts.recorded, RECORDS_BURST);
        record(
            &mut recording,
            START + 5 * INTERVAL_NS,
            9,
            RecordOutcome::Again,
        );
        assert_eq!(recording.counts.recorded, RECORDS_BURST + 5);

        // Any rest saves at most a burst.
        record(
            &mut recording,
            2 * START,
            2 * RECORDS_BURST,
            RecordOutcome::Again,
        );
        assert_eq!(recording.counts.recorded, 2 * RECORDS_BURST + 5);
    }

    #[test]
    fn what_is_not_stored_is_skipped() {
        let mut recording = Recording::default();
        record(&mut recording, START, 2, RecordOutcome::Anew);
        record(&mut recording, START, 3, RecordOutcome::Again);
        record(&mut recording, START, 4, RecordOutcome::NoRoom);
        let expected = RecordingCounts {
            recorded: 5,
            inserted: 2,
            skipped: 4,
        };
        assert_eq!(recording.counts, expected);
    }

    #[test]
    fn a_name_is_no_drop_of_its_own() {
        let mut recording = Recording::default();
        for outcome in [
            RecordOutcome::Anew,
            RecordOutcome::Again,
            RecordOutcome::NoRoom,
        ] {
            recording.record(START, || RecordOutcome::Again, || Some(outcome));
        }
        let expected = RecordingCounts {
            recorded: 3,
            inserted: 1,
            skipped: 0,
        };
        assert_eq!(recording.counts, expected);
    }

    #[test]
    fn a_spent_allowance_stores_nothing() {
        let mut recording = Recording::default();
        record(&mut recording, START, RECORDS_BURST, RecordOutcome::Again);
        recording.record(
            START,
            || unreachable!("the allowance is spent"),
            || unreachable!("the allowance is spent"),
        );
        assert_eq!(recording.counts.skipped, 1);
    }

    #[test]
    fn sums() {
        let mut total = RecordingCounts::default();
        for number in 1..=2 {
            total += RecordingCounts {
                recorded: 10 * number,
                inserted: 5 * number,
                skipped: number,
            };
        }
        let expected = RecordingCounts {
            recorded: 30,
            inserted: 15,
            skipped: 3,
        };
        assert_eq!(total, expected);
    }
}
