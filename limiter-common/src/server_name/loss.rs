//! Why userspace is not told a segment that may have first bytes of a connection, or a datagram that may say a
//! name.

/// Why a segment or a datagram is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Loss {
    /// It is of a connection, and too many others were told in that time.
    Allowance = 0,
    /// The network stack has noted no connection for it, and too many such were looked up in that time.
    Unknown = 1,
    /// Userspace does not read fast enough: there is no room.
    Room = 2,
    /// It is a datagram, and too many others were told in that time.
    Datagrams = 3,
    /// It is a datagram, and userspace does not read fast enough: what room there is is for segments.
    DatagramRoom = 4,
}

impl Loss {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Allowance,
        Self::Unknown,
        Self::Room,
        Self::Datagrams,
        Self::DatagramRoom,
    ];

    /// Those of segments.
    pub const OF_SEGMENTS: [Self; 3] = [Self::Allowance, Self::Unknown, Self::Room];

    /// Those of datagrams.
    pub const OF_DATAGRAMS: [Self; 2] = [Self::Datagrams, Self::DatagramRoom];

    /// Returns the name in metrics, of which segments and datagrams have their own.
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
    fn numbers_are_places() {
        for (number, loss) in (0..).zip(Loss::ALL) {
            assert_eq!(loss as u32, number, "{}", loss.name());
        }
    }
}
