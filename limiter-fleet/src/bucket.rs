//! The bucket that a share scales.

use crate::Share;

/// A node's bucket of a limit. Its burst and rate are the share's parts of the limit's.
pub trait Bucket {
    /// Sets the share. A smaller share takes the same fraction of the tokens: returns them, in thousandths,
    /// rounded down. Then adds `gained_millitokens`; tokens that do not fit are lost.
    fn change(&mut self, now_ns: u64, to: Share, gained_millitokens: u64) -> u64;
}
