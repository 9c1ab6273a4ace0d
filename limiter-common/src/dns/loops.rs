//! The search of a name asks this of the place where it runs.

use super::Message;
use crate::{name_hash::NameKeys, policy::Tables};

/// The loops. The kernel's program makes each a function of its own, which the verifier walks once,
/// and not once for each path that leads to it.
pub trait NameLoops: Sized {
    /// Calls [`walk`](super::walk).
    fn walk(&self, message: &mut Message) -> u64;

    /// Calls [`sum`](super::sum).
    fn sum(&self, keys: &NameKeys, message: &mut Message, start: u32, end: u32);

    /// Calls [`probe_further`](super::probe_further).
    fn probe_further<T: Tables>(&self, tables: &T, hash: u64) -> u32;

    /// Calls [`find_longer`](super::find_longer).
    fn find_longer<T: Tables>(
        &self,
        tables: &T,
        message: &mut Message,
        count: u32,
        end: u32,
        labels: u32,
    ) -> u64;

    /// Returns the eight bytes of a message at an offset as a little-endian number.
    fn word(&self, message: &Message, at: u32) -> u64;
}
