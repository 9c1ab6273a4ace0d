//! Offenders over plain memory.

use std::{cell::RefCell, collections::HashMap};

use limiter_common::{
    judged::Packet,
    offender::{Dropper, Offender, OffenderKey, OffenderStore, Recording, Stored},
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
    /// Returns every offender, in no order.
    #[must_use]
    pub fn list(&self) -> Vec<(OffenderKey, Offender)> {
        let records = self.0.borrow();
        let offenders = records.offenders.iter();
        offenders.map(|(key, offender)| (*key, *offender)).collect()
    }

    /// Returns the counters of drops.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn counts(&self) -> limiter_common::offender::Counts {
        self.0.borrow().recording.counts
    }
}

impl OffenderStore for MemoryOffenders {
    fn record<T: Tables>(&self, tables: &T, packet: &Packet, limit_index: u32, by: Dropper) {
        let Some(key) = OffenderKey::of_packet(tables, packet, limit_index, by) else {
            return;
        };
        let Records {
            recording,
            offenders,
        } = &mut *self.0.borrow_mut();
        recording.record(packet.now, || {
            if let Some(offender) = offenders.get_mut(&key) {
                offender.drops += 1;
                offender.last_drop_ns = packet.now;
                Stored::Again
            } else {
                offenders.insert(key, Offender::new(packet.now));
                Stored::Anew
            }
        });
    }
}
