//! Reasons for not sending a segment with first bytes of a connection, or a datagram with a name, to userspace.

/// Why a segment or a datagram is not sent to userspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Loss {
    /// It is a segment of a recorded connection, and too many others were sent in that time.
    Allowance = 0,
    /// The network stack has recorded no connection for it, and too many such connections were looked up in
    /// that time.
    Unknown = 1,
    /// Userspace reads too slowly: there is no room.
    Room = 2,
    /// It is a datagram, and too many others were sent in that time.
    Datagrams = 3,
    /// It is a datagram, and userspace reads too slowly: the remaining room is for segments.
    DatagramRoom = 4,
}

impl Loss {
    /// Every reason, in the order of the numbers.
    pub const ALL: [Self; 5] = [
        Self::Allowance,
        Self::Unknown,
        Self::Room,
        Self::Datagrams,
        Self::DatagramRoom,
    ];

    /// The reasons for segments.
    pub const OF_SEGMENTS: [Self; 3] = [Self::Allowance, Self::Unknown, Self::Room];

    /// The reasons for datagrams.
    pub const OF_DATAGRAMS: [Self; 2] = [Self::Datagrams, Self::DatagramRoom];

    /// The name in metrics; segments and datagrams have separate metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowance | Self::Datagrams => "allowance",
            Self::Unknown => "unknown",
            Self::Room | Self::DatagramRoom => "room",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positions() {
        for (number, loss) in (0..).zip(Loss::ALL) {
            assert_eq!(loss as u32, number, "{}", loss.name());
        }
    }
}
