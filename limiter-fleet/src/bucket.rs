//! What a node's share is a share of.

use crate::Share;

/// The node's bucket of a limit: what it admits. Its burst and rate are the share's parts of the
/// limit's.
pub trait Bucket {
    /// Changes the share. If it becomes smaller, the same part of the tokens goes: returns them, in
    /// thousandths, rounded down. Then puts some in, in thousandths; what does not fit is lost.
    fn change(&mut self, now_ns: u64, to: Share, gained_millitokens: u64) -> u64;
}
