//! Offenders over plain memory.

use std::{cell::RefCell, collections::HashMap};

use limiter_common::{
    classified_packet::ClassifiedPacket,
    offender::{Dropper, Offender, OffenderKey, OffenderTable, RecordOutcome, Recording},
    policy::Tables,
};

/// Offenders without a capacity, recorded within the allowance of one CPU.
#[derive(Clone, Debug, Default)]
pub struct MemoryOffenders(RefCell<Records>);

#[derive(Clone, Debug, Default)]
struct Records {
    recording: Recording,
    offenders: HashMap<OffenderKey, Offender>,
}

impl MemoryOffenders {
    /// Every offending source, in no order.
    #[must_use]
    pub fn list(&self) -> Vec<(OffenderKey, Offender)> {
        self.listed(|key| key.name().is_none())
    }

    /// Every name in refused packets, in no order.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn names(&self) -> Vec<(OffenderKey, Offender)> {
        self.listed(|key| key.name().is_some())
    }

    fn listed(&self, wanted: impl Fn(&OffenderKey) -> bool) -> Vec<(OffenderKey, Offender)> {
        let records = self.0.borrow();
        let offenders = records.offenders.iter().filter(|(key, _)| wanted(key));
        offenders.map(|(key, offender)| (*key, *offender)).collect()
    }

    /// The counters of drops.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn counts(&self) -> limiter_common::offender::RecordingCounts {
        self.0.borrow().recording.counts
    }
}

impl OffenderTable for MemoryOffenders {
    fn record<T: Tables>(
        &self,
        tables: &T,
        packet: &ClassifiedPacket,
        limit_index: u32,
        by: Dropper,
    ) {
        let Some(key) = OffenderKey::of_packet(tables, packet, limit_index, by) else {
            return;
        };
        let name = OffenderKey::of_packet_name(tables, packet, limit_index, by);
        let Records {
            recording,
            offenders,
        } = &mut *self.0.borrow_mut();
        let offenders = RefCell::new(offenders);
        let enter = |key| enter(&mut offenders.borrow_mut(), key, packet.now);
        recording.record(packet.now, || enter(key), || name.map(enter));
    }
}

fn enter(
    offenders: &mut HashMap<OffenderKey, Offender>,
    key: OffenderKey,
    now_ns: u64,
) -> RecordOutcome {
    if let Some(offender) = offenders.get_mut(&key) {
        offender.drops += 1;
        offender.last_drop_ns = now_ns;
        RecordOutcome::Again
    } else {
        offenders.insert(key, Offender::new(now_ns));
        RecordOutcome::Anew
    }
}
