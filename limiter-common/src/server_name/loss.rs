//! Why userspace is not told a segment that may have first bytes of a connection.

/// Why a segment is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Loss {
    /// It is of a connection, and too many others were told in that time.
    Allowance = 0,
    /// The network stack has noted no connection for it, and too many such were looked up in that time.
    Unknown = 1,
    /// Userspace does not read fast enough: there is no room.
    Room = 2,
}

impl Loss {
    /// Every one, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Allowance, Self::Unknown, Self::Room];

    /// Returns the name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allowance => "allowance",
            Self::Unknown => "unknown",
            Self::Room => "room",
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
