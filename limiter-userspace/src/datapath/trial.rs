//! The kernel's program on trial: attached to nothing, one frame at a time, on a clock that
//! the caller sets.

use limiter_common::reason::{REASON_COUNT, Reason};

use super::{Clocking, DatapathError, Instance, LogLevel, Settings, SharedMaps};
use crate::policy::CompiledPolicy;

/// An instance whose reason for each frame can be told.
pub struct Trial {
    instance: Instance,
    maps: SharedMaps,
    /// The packets counted under each reason so far.
    counted: [u64; REASON_COUNT as usize],
}

impl Trial {
    /// Loads the program with buckets and counters of its own.
    pub fn new(policy: &CompiledPolicy, bucket_capacity: u32) -> Result<Self, DatapathError> {
        let settings = Settings {
            bucket_capacity,
            log: LogLevel::Off,
        };
        let mut instance = Instance::load(policy, 0, settings, Clocking::Test, None)?;
        let maps = instance.take_maps()?;
        Ok(Self {
            instance,
            maps,
            counted: [0; REASON_COUNT as usize],
        })
    }

    /// Decides on a frame at a time of the program's clock, in nanoseconds.
    ///
    /// # Errors
    ///
    /// The kernel's; and [`DatapathError::NoReason`] unless just one reason's counter has
    /// moved, by one packet, and that reason's action is what the program returned.
    pub fn judge(&mut self, now_ns: u64, frame: &[u8]) -> Result<Reason, DatapathError> {
        let action = self.instance.test(now_ns, frame)?;
        let reason = self.reason_just_counted()?;
        if reason.action() == action {
            Ok(reason)
        } else {
            Err(DatapathError::NoReason)
        }
    }

    /// The buckets and counters.
    #[must_use]
    pub const fn maps(&self) -> &SharedMaps {
        &self.maps
    }

    /// The program's return value tells only what is done to the packet.
    fn reason_just_counted(&mut self) -> Result<Reason, DatapathError> {
        let mut moved = None;
        for (reason, counted) in Reason::ALL.iter().zip(&mut self.counted) {
            let packets = self.maps.reason_traffic(0, *reason)?.packets;
            match packets - *counted {
                0 => {}
                1 if moved.is_none() => moved = Some(*reason),
                _ => return Err(DatapathError::NoReason),
            }
            *counted = packets;
        }
        moved.ok_or(DatapathError::NoReason)
    }
}
