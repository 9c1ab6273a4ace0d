//! The budgets that the nodes of a fleet share, in `limiter check`.

use std::io::Write;

use limiter_common::limit::IdFormat;
use limiter_policy::policy::{Limit, Policy};

use limiter_report::render::counted;

/// Prints a line for each limit with a shared budget.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    for line in policy.limits.iter().filter_map(line) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn line(limit: &Limit) -> Option<String> {
    let nodes = usize::try_from(limit.fleet_nodes?).ok()?;
    let minimum_share = limit.default?.of_share(limit.minimum_share()?);
    let budget = match limit.id_format {
        IdFormat::Total => "one budget for all of the fleet",
        _ => "each key has one budget for all of the fleet",
    };
    Some(format!(
        "{}: {budget}, among at most {}; each has at least {} of it, whatever the others do",
        limit.name,
        counted(nodes, "node"),
        minimum_share,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::total;

    #[test]
    fn what_is_told() {
        let mut policy = total("burst: 1000, count: 100000, period: 1s");
        let shown = |policy: &Policy| {
            let mut out = Vec::new();
            print(&mut out, policy).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(&policy), "");
        policy.limits[0].fleet_nodes = Some(2);
        assert_eq!(
            shown(&policy),
            "All: one budget for all of the fleet, among at most 2 nodes; each has at least \
             {burst: 25, count: 2500, period: 1s} of it, whatever the others do\n"
        );
    }
}
