//! Automatic rates in a replay. A capture shows no overload, so each rate stays at an assumed value.

use std::{collections::BTreeMap, io::Write};

use anyhow::bail;
use limiter_policy::policy::{
    Policy,
    automatic::{AUTOMATIC_RATES, at_floor},
};

use limiter_report::render::count;

/// Holds every automatic rate at `rate`, within its bounds; without a value, at its floor.
pub(super) fn assume(policy: &mut Policy, rate: Option<u64>) -> anyhow::Result<()> {
    let Some(rate) = rate else {
        return Ok(());
    };
    let mut is_used = false;
    for limit in &mut policy.limits {
        if let Some((floor, ceiling)) = limit.automatic() {
            limit.default = Some(at_floor(rate.clamp(floor, ceiling)));
            is_used = true;
        }
    }
    if !is_used {
        bail!("no rate need be assumed: no limit has an automatic one");
    }
    Ok(())
}

/// Returns the assumed automatic rates, in tokens a second.
pub(super) fn rates(policy: &Policy) -> BTreeMap<&str, u64> {
    let limits = policy.limits.iter();
    let rates = limits.filter_map(|limit| Some((limit.name.as_str(), limit.automatic()?.0)));
    rates.collect()
}

pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    for (limit, rate) in rates(policy) {
        writeln!(
            out,
            "{limit} is judged at {} a second: its rate is automatic, and a capture shows no \
             overload; --assume-rate takes another",
            count(rate)
        )?;
    }
    Ok(())
}

pub(super) fn parse(text: &str) -> Result<u64, String> {
    let rate = text
        .parse()
        .ok()
        .filter(|rate| AUTOMATIC_RATES.contains(rate));
    let (least, most) = (AUTOMATIC_RATES.start(), AUTOMATIC_RATES.end());
    rate.ok_or_else(|| format!("expected tokens a second, from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::total;

    #[test]
    fn at_the_floor_unless_told() {
        let judged_at = |rate: Option<u64>| {
            let mut policy = total("count: auto, floor: 2000, ceiling: 9000");
            assume(&mut policy, rate).unwrap();
            let mut reported = Vec::new();
            print(&mut reported, &policy).unwrap();
            let reported = String::from_utf8(reported).unwrap();
            (
                rates(&policy)["All"],
                reported.chars().take(25).collect::<String>(),
            )
        };
        assert_eq!(
            judged_at(None),
            (2_000, "All is judged at 2 000 a ".to_owned())
        );
        assert_eq!(judged_at(Some(7_000)).0, 7_000);
        assert_eq!(judged_at(Some(500)).0, 2_000);
        assert_eq!(judged_at(Some(50_000)).0, 9_000);
        let mut fixed = total("burst: 1, count: 1, period: 1s");
        assert!(assume(&mut fixed, Some(500)).is_err());
        assert!(parse("99").is_err() && parse("x").is_err());
        assert_eq!(parse("100"), Ok(100));
    }
}
