//! An amount of traffic.

/// Packets and their bytes, from the Ethernet header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Traffic {
    /// Packets.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
}

impl Traffic {
    /// The traffic of one frame with `length` bytes.
    #[must_use]
    #[inline(always)]
    pub const fn of_frame(length: u64) -> Self {
        Self {
            packets: 1,
            bytes: length,
        }
    }

    pub(crate) const fn without(self, part: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(part.packets),
            bytes: self.bytes.saturating_sub(part.bytes),
        }
    }
}

impl core::ops::AddAssign for Traffic {
    #[inline(always)]
    fn add_assign(&mut self, other: Self) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
    }
}
