//! Sieves that limits name.

use super::super::diagnostics::FilePosition;

/// A sieve's name in a limit, with its position.
pub(in super::super) struct NamedSieve {
    pub(in super::super) name: String,
    pub(in super::super) position: FilePosition,
}
