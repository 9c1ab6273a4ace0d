//! The loops of the search for a name: separate functions in the kernel, inline elsewhere.

use super::Message;
use crate::{name_hash::NameKeys, policy::Tables};

/// The loops. The kernel's program makes each a separate function, which the verifier walks once instead of
/// once for each path that leads to it.
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
