//! What a policy says of a packet's DNS question.

/// What a policy says of a packet's question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Asked {
    /// The limits that count it, among those that count packets by their question.
    pub limits: u64,
    /// The number of its zone; 0: it has none.
    pub zone: u64,
    /// The number of its registered domain; 0: no limit asks for it.
    pub domain: u64,
    /// The number of the question: its name, type and class.
    pub question: u64,
}

impl Asked {
    /// What it says of a packet without a question.
    pub const NOTHING: Self = Self {
        limits: 0,
        zone: 0,
        domain: 0,
        question: 0,
    };
}
