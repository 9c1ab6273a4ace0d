//! A slot of the table of a policy's names.

/// What a policy says of a name, and of those below it. A name's slot is the first one free from that
/// on which the lowest bits of its hash are the index of.
///
/// Questions and server names have slots only if overrides name them. Such a slot has their number as the
/// hash, and says nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct NameSlot {
    /// The keyed hash of the name, or the number, never 0; 0: the slot is free.
    pub hash: u64,
    /// The number of the longest zone that has the name; 0: none.
    pub zone: u64,
    /// The index of the set of limits that count questions for this very name.
    pub of_name: u32,
    /// The index of the set of those that count questions for names below it.
    pub below: u32,
    /// How many labels the registered domain of it and of the names below it has, as far as they have
    /// so many.
    pub domain_labels: u16,
    /// How many labels the shortest names below it in the table have; 0: there are none.
    pub next_labels: u16,
    /// Which overrides hold for it and for the names below it: one more than the index of the child in which
    /// the look-up of their class by an IPv4 source starts. That for IPv6 is the next. 0: none hold.
    pub overrides: u32,
}
