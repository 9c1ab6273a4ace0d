//! Rates as buckets count with them, and the units that they have between them.

use std::collections::HashMap;

use limiter_common::{strategy::Budget, unit::Unit};

use super::{CompileError, index};
use crate::policy::{Limit, Rate};

#[derive(Default)]
pub(super) struct Rates {
    /// The units, each once.
    pub(super) units: Vec<Unit>,
    known: HashMap<Unit, u32>,
}

impl Rates {
    /// The parameters of a limit's buckets. Their units are their places in `units`, until all are
    /// known and have numbers.
    pub(super) fn budget(&mut self, limit: &Limit, rate: Rate) -> Result<Budget, CompileError> {
        let budget = Budget::new(limit.strategy, rate.burst, rate.count, rate.period_ns);
        let budget = budget.ok_or_else(|| CompileError::Rate {
            limit: limit.name.clone(),
            rate,
        })?;
        let unit = self.number(Unit::new(&budget, limit.cost));
        let stamp_unit = if limit.strategy.has_log() {
            self.number(Unit::of_stamps(limit.cost))
        } else {
            unit
        };
        Ok(Budget {
            unit,
            stamp_unit,
            ..budget
        })
    }

    fn number(&mut self, counted_in: Unit) -> u32 {
        let next = index(self.units.len());
        let unit = *self.known.entry(counted_in).or_insert(next);
        if unit == next {
            self.units.push(counted_in);
        }
        unit
    }
}
