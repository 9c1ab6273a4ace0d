//! Layouts read back from saved data.

use crate::strategy::{Layout, Strategy, rule::Ledger as _};

impl Layout {
    /// Makes a layout from the bytes of [`Self::parts`]; `None`: no strategy has such a layout.
    #[must_use]
    pub fn from_parts([strategy, shift, count_bits, previous_bits]: [u8; 4]) -> Option<Self> {
        let strategy = Strategy::of_number(strategy)?;
        let layout = Self::new(strategy, shift, count_bits, previous_bits);
        dispatch!(strategy, Rule => Rule::is_layout(layout)).then_some(layout)
    }
}
