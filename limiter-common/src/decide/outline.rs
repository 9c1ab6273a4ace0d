//! The steps of a decision that the kernel program makes functions of their own.

use super::{Charge, Intent, Plan, Workspace, decide_again, prepare, retry};
use crate::{
    bucket::{BucketStore, Decided, Updated},
    policy::Tables,
};

/// The parts of a decision that the kernel program makes separate functions: the verifier walks
/// each once and not once for each path that leads to it, and their stack is not the stage's.
/// Natively the defaults do.
pub trait Outline: BucketStore {
    /// Whether limits may have other strategies than GCRA. A pipeline without them is spared their
    /// cost.
    const WINDOWS: bool = true;

    /// Calls [`prepare`].
    #[inline(always)]
    fn prepare<T: Tables>(
        &self,
        tables: &T,
        workspace: &mut Workspace<Self::Location>,
        limit_index: u32,
        is_automatic: bool,
    ) -> u64
    where
        Self: Sized,
    {
        prepare(self, tables, workspace, limit_index, is_automatic)
    }

    /// Calls [`retry`].
    #[inline(always)]
    fn retry(&self, charge: &mut Charge<Self::Location>, intent: Intent) -> Updated
    where
        Self: Sized,
    {
        retry(self, charge, intent)
    }

    /// Calls [`decide_again`].
    #[inline(always)]
    fn decide_again(
        &self,
        location: &Self::Location,
        plan: &mut Plan<Self::Location>,
        intent: Intent,
        state: u64,
    ) -> Decided
    where
        Self: Sized,
    {
        decide_again(self, location, plan, intent, state)
    }
}
