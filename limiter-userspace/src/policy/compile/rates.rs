//! Rates as buckets count with them, and the units that they have between them.

use std::collections::HashMap;

use limiter_common::{gcra::Gcra, unit::Unit};

use super::{CompileError, index};
use crate::policy::{Limit, Rate};

#[derive(Default)]
pub(super) struct Rates {
    /// The units, each once.
    pub(super) units: Vec<Unit>,
    known: HashMap<Unit, u32>,
}

impl Rates {
    /// The parameters of a limit's buckets. Their unit is its place in `units`, until all are known
    /// and have numbers.
    pub(super) fn gcra(&mut self, limit: &Limit, rate: Rate) -> Result<Gcra, CompileError> {
        let gcra = Gcra::new(rate.burst, rate.count, rate.period_ns);
        let gcra = gcra.ok_or_else(|| CompileError::Rate {
            limit: limit.name.clone(),
            rate,
        })?;
        let counted_in = Unit::new(&gcra, limit.cost);
        let next = index(self.units.len());
        let unit = *self.known.entry(counted_in).or_insert(next);
        if unit == next {
            self.units.push(counted_in);
        }
        Ok(Gcra { unit, ..gcra })
    }
}
