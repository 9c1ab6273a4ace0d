//! Rates as buckets count with them, and the tick lengths that they have between them.

use std::collections::HashMap;

use limiter_common::{gcra::Gcra, ratio::Ratio, table::Scale};

use super::{CompileError, index};
use crate::policy::{Limit, Rate};

pub(super) struct Rates {
    /// The tick lengths; the first is a nanosecond.
    pub(super) scales: Vec<Scale>,
    known: HashMap<Ratio, u32>,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            scales: vec![Scale::NANOSECOND],
            known: HashMap::from([(Ratio::ONE, 0)]),
        }
    }
}

impl Rates {
    pub(super) fn gcra(&mut self, limit: &Limit, rate: Rate) -> Result<Gcra, CompileError> {
        let gcra = Gcra::new(rate.burst, rate.count, rate.period_ns);
        let gcra = gcra.ok_or_else(|| CompileError::Rate {
            limit: limit.name.clone(),
            rate,
        })?;
        let next = index(self.scales.len());
        let scale = *self.known.entry(gcra.ticks_per_ns).or_insert(next);
        if scale == next {
            self.scales.push(Scale {
                ticks_per_ns: gcra.ticks_per_ns,
                ns_per_tick: gcra.ns_per_tick,
            });
        }
        Ok(Gcra { scale, ..gcra })
    }
}
