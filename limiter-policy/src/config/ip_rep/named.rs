//! Sieves that limits name.

use super::super::diagnostics::FilePosition;

/// A sieve that a limit names, and where it does.
pub(in super::super) struct NamedSieve {
    pub(in super::super) name: String,
    pub(in super::super) position: FilePosition,
}
