//! Sieves that limits name.

use super::super::diagnostics::Place;

/// A sieve that a limit names, and where.
pub(in super::super) struct NamedSieve {
    pub(in super::super) name: String,
    pub(in super::super) place: Place,
}
