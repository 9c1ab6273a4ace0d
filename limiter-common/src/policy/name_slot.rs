//! A slot of the table of a policy's names.

/// The policy's entry for a name and the names below it. The lowest bits of a name's hash are the
/// index of its first candidate slot; the name takes the first free slot from there on.
///
/// Questions and server names have slots only if overrides name them. Such a slot has their number
/// as the hash, and no other entry but the overrides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct NameSlot {
    /// The keyed hash of the name, or the number, never 0; 0: the slot is free.
    pub hash: u64,
    /// The number of the longest zone that has the name; 0: none.
    pub zone: u64,
    /// The index of the set of limits that count questions for exactly this name.
    pub of_name: u32,
    /// The index of the set of limits that count questions for names below it.
    pub below: u32,
    /// The number of labels of the registered domain of this name and the names below it, if they
    /// have that many.
    pub domain_labels: u16,
    /// The number of labels of the shortest names below it in the table; 0: there are none.
    pub next_labels: u16,
    /// The overrides for the name and the names below it: one more than the index of the child that
    /// starts the look-up of their class by an IPv4 source. The next child is for IPv6. 0: no
    /// overrides.
    pub overrides: u32,
}
