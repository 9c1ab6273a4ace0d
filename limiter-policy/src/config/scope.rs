//! The field `scope` of a limit: each host has the budget, or the fleet shares it.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    diagnostics::FilePosition,
    fields::Given,
    rate::{self, RateContext, automatic},
};

pub(super) const FIELD: &str = "scope";

const HOST: &str = "host";
const FLEET: &str = "fleet";

/// Returns the position of `scope: fleet`; `None`: each host has its own budget, or an error was reported.
pub(super) fn read(given: &mut Given<'_, '_, '_>, kind: automatic::Kind) -> Option<FilePosition> {
    let mut is_of_fleet = false;
    given.choice(&mut is_of_fleet, [(HOST, false), (FLEET, true)]);
    if !is_of_fleet {
        return None;
    }
    let problem = if automatic::is_meant(given.fields) {
        Some("is not for 'count: auto': each host finds what it bears by itself".to_owned())
    } else if rate::is_absent(given.fields) {
        Some(format!("needs {}", rate::EXPECTED))
    } else {
        misfit(kind).map(|why| format!("is not for {why}"))
    };
    match problem {
        Some(problem) => {
            given
                .reader
                .error(given.name.at, format!("'{FIELD}: {FLEET}' {problem}"));
            None
        }
        None => Some(given.position()),
    }
}

/// Says why the fleet cannot share a limit of this kind; `None`: it can.
fn misfit(kind: automatic::Kind) -> Option<String> {
    let automatic::Kind {
        context: RateContext { cost, strategy },
        ..
    } = kind;
    if let Some(cost) = cost
        && !matches!(
            cost,
            Cost::Packets | Cost::Bytes | Cost::NewConnections | Cost::NewNames
        )
    {
        return Some(format!(
            "cost {}, only for cost {}, {}, {} and {}: packets are charged to them",
            cost.name(),
            Cost::Packets.name(),
            Cost::Bytes.name(),
            Cost::NewConnections.name(),
            Cost::NewNames.name()
        ));
    }
    let strategy = strategy.filter(|strategy| *strategy != Strategy::Gcra)?;
    Some(format!(
        "strategy {}, only for strategy {}: a window's count cannot move",
        strategy.name(),
        Strategy::Gcra.name()
    ))
}
