//! The policy's look-up result for a packet's name: its DNS question, or the server name of its
//! connection.

/// The policy's look-up result for a packet's name. No packet has both a question and a server
/// name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct NameMatch {
    /// The limits that count it, among the limits by name.
    pub limits: u64,
    /// The number of its zone, or of its server name in the policy; 0: it has none.
    pub zone: u64,
    /// The number of its registered domain; 0: no limit asks for it.
    pub domain: u64,
    /// The number of the question: its name, type and class.
    pub question: u64,
    /// The keyed hash of its name; 0: no limit asks for it.
    pub name: u64,
    /// The limits that have an override for it. This and the next field are written if any limit
    /// has overrides by name.
    pub overridden: u64,
    /// The index of the first of these overrides; the others follow in the order of the limits.
    pub first_override: u32,
    /// The position of these overrides, as in [`crate::policy::NameSlot::overrides`].
    pub overrides: u32,
    /// 1: a query with an unreadable question, which may be for any name; else 0.
    pub unreadable: u64,
}

impl NameMatch {
    /// The result for a packet without a name.
    pub const NOTHING: Self = Self {
        limits: 0,
        zone: 0,
        domain: 0,
        question: 0,
        name: 0,
        overridden: 0,
        first_override: 0,
        overrides: 0,
        unreadable: 0,
    };
}
