//! Counters that only grow: the difference of two readings.

use std::time::Duration;

/// Counters that only grow.
pub(super) trait MonotonicCounter {
    /// Returns the growth since `before`.
    fn since(&self, before: &Self) -> Self;
}

impl MonotonicCounter for u64 {
    fn since(&self, before: &Self) -> Self {
        self.saturating_sub(*before)
    }
}

impl MonotonicCounter for Duration {
    fn since(&self, before: &Self) -> Self {
        self.saturating_sub(*before)
    }
}

/// Defines a struct that implements [`MonotonicCounter`], as each of its fields does.
macro_rules! growing {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $Counters:ident {
            $($(#[$about:meta])* $field_visibility:vis $field:ident: $Counter:ty,)+
        }
    ) => {
        $(#[$meta])*
        $visibility struct $Counters {
            $($(#[$about])* $field_visibility $field: $Counter,)+
        }

        impl $crate::service::growth::MonotonicCounter for $Counters {
            fn since(&self, before: &Self) -> Self {
                Self {
                    $($field: $crate::service::growth::MonotonicCounter::since(&self.$field, &before.$field),)+
                }
            }
        }
    };
}

pub(super) use growing;
