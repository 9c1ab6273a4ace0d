//! Rates in the form that buckets compute with, and their units.

use std::collections::HashMap;

use limiter_common::{
    limit::Cost,
    strategy::{Parameters, Strategy},
    unit::Unit,
};

use super::bounds::{CompileError, index};
use crate::policy::{Limit, Rate, automatic::interval_of};

#[derive(Default)]
pub(super) struct Rates {
    /// The distinct units.
    pub(super) units: Vec<Unit>,
    known: HashMap<Unit, u32>,
}

impl Rates {
    /// Returns the parameters of a limit's buckets. Their units are indices into `units` until all units are
    /// known and numbered.
    pub(super) fn parameters(
        &mut self,
        limit: &Limit,
        rate: Rate,
    ) -> Result<Parameters, CompileError> {
        // An automatic rate counts in nanoseconds, so that its TATs keep their meaning when the rate changes.
        let in_ns = |interval| Parameters::new(limit.strategy, rate.burst, 1, interval);
        let parameters = match limit.ceiling {
            Some(_) => in_ns(interval_of(rate.count)),
            None => Parameters::new(limit.strategy, rate.burst, rate.count, rate.period_ns),
        };
        let parameters = parameters.ok_or_else(|| CompileError::Rate {
            limit: limit.name.clone(),
            rate,
        })?;
        let unit = self.number(Unit::new(&parameters, limit.cost));
        let stamp_unit = if limit.strategy.has_log() {
            self.number(Unit::of_stamps(limit.cost))
        } else {
            unit
        };
        Ok(Parameters {
            unit,
            stamp_unit,
            ..parameters
        })
    }

    /// Returns the parameters of the buckets of a limit of answers.
    pub(super) fn of_answers(&mut self, rate: Rate) -> Result<Parameters, CompileError> {
        let (burst, count, period_ns) = (rate.burst, rate.count, rate.period_ns);
        let parameters = Parameters::new(Strategy::Gcra, burst, count, period_ns);
        let parameters = parameters.ok_or_else(|| CompileError::Rate {
            limit: "answers".to_owned(),
            rate,
        })?;
        let unit = self.number(Unit::new(&parameters, Cost::Packets));
        Ok(Parameters {
            unit,
            stamp_unit: unit,
            ..parameters
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
