//! Sources dropped by sieves are recorded as offenders, apart from sources dropped by limits.

use std::{collections::HashMap, net::IpAddr};

use anyhow::Result;
use limiter_common::{
    address::Address,
    limit::LimitId,
    offender::{Dropper, OffenderKey},
    reason::Reason::{self, Iprep, OverLimit, WithinLimits},
    sieve::{pressure_of_limit, pressure_of_sieve},
};
use limiter_policy::policy::{Limit, Mode, PressureOf, Sieve};

use super::{LONG, SECOND, from, policy, rate, sieve, total};
use crate::engine::Engines;

/// The number of [`from`]'s source.
const WHO: u32 = 1;

fn key(limit: u16, by: Dropper) -> OffenderKey {
    let source = IpAddr::from((0x0a00_0000 | WHO).to_be_bytes());
    OffenderKey::new(LimitId(limit), by, &Address::from(source))
}

/// The kernel's drops by key; the native ones are equal.
fn recorded(engines: &Engines) -> Result<HashMap<OffenderKey, u64>> {
    engines.assert_same_state();
    let recorded = engines.maps().offenders().read()?.offenders;
    let drops = recorded.iter().map(|(key, found)| (*key, found.drops));
    Ok(drops.collect())
}

fn judge(engines: &mut Engines, now: u64, reasons: &[Reason]) {
    for reason in reasons {
        assert_eq!(engines.judge(now, &from(WHO)), *reason);
    }
}

#[test]
fn drops_by_a_sieve_and_by_its_limit() -> Result<()> {
    let limit = Limit {
        default: Some(rate(2)),
        ..total(20, "main")
    };
    let mut engines = Engines::new(&policy([limit], [sieve("main", 3, 5)]))?;
    judge(&mut engines, 0, &[WithinLimits, WithinLimits, OverLimit]);
    engines.press(pressure_of_limit(LimitId(20)), 3, LONG)?;
    // The limit was not asked meanwhile, so it has tokens again.
    judge(&mut engines, SECOND, &[WithinLimits, Iprep, Iprep]);
    let expected = [(key(20, Dropper::Budget), 1), (key(20, Dropper::Sieve), 2)];
    assert_eq!(recorded(&engines)?, HashMap::from(expected));
    Ok(())
}

#[test]
fn drops_by_a_sieve_for_all_packets() -> Result<()> {
    let everywhere = Sieve {
        pressure: Some(PressureOf::PacketsPerSecond(1_000)),
        ..sieve("main", 3, 5)
    };
    let observing = Limit {
        mode: Mode::Observe,
        ip_rep: None,
        ..total(20, "")
    };
    let mut engines = Engines::new(&policy([observing], [everywhere]))?;
    engines.press(pressure_of_sieve(0), 3, LONG)?;
    judge(&mut engines, 0, &[WithinLimits, Iprep, Iprep]);
    let expected = [(key(0, Dropper::Sieve), 2)];
    assert_eq!(recorded(&engines)?, HashMap::from(expected));
    Ok(())
}

/// An observing limit's sieve drops nothing, so nothing is recorded.
#[test]
fn sources_that_a_sieve_does_not_drop() -> Result<()> {
    let observing = Limit {
        mode: Mode::Observe,
        ..total(20, "main")
    };
    let mut engines = Engines::new(&policy([observing], [sieve("main", 3, 5)]))?;
    engines.press(pressure_of_limit(LimitId(20)), 3, LONG)?;
    judge(&mut engines, 0, &[WithinLimits; 4]);
    assert_eq!(recorded(&engines)?, HashMap::new());
    Ok(())
}
