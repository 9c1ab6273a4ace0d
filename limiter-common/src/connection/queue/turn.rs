//! Whether it is a client's turn.

/// The decision on a client that tries to connect. Bit 0: it may not; bit 1: it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Turn {
    /// It is let in.
    Now = 0,
    /// It is turned away: its ticket has expired, or the queue is full.
    Never = 0b01,
    /// It waits, or is remembered: its next try counts. No answer may make it give up.
    Later = 0b11,
}

impl Turn {
    /// The turn of that number.
    #[must_use]
    #[inline(always)]
    pub const fn of_number(number: u32) -> Self {
        match number {
            0 => Self::Now,
            0b01 => Self::Never,
            _ => Self::Later,
        }
    }
}
