//! A slot of the table of a policy's names.

/// What a policy says of a name, and of those below it. A name's slot is the first one free from that
/// on which the lowest bits of its hash are the index of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct NameSlot {
    /// The keyed hash of the name, never 0; 0: the slot is free.
    pub hash: u64,
    /// The number of the longest zone that has the name; 0: none.
    pub zone: u64,
    /// The index of the set of limits that count questions for this very name.
    pub of_name: u32,
    /// The index of the set of those that count questions for names below it.
    pub below: u32,
    /// How many labels the registered domain of it and of the names below it has, as far as they have
    /// so many.
    pub domain_labels: u32,
    /// Nothing, so that a slot never crosses a cache line.
    pub reserved: u32,
}
