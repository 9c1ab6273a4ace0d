//! The field `scope` of a limit: each host has the budget, or the fleet shares it.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    diagnostics::FilePosition,
    rate::{self, RateContext, automatic},
    reader::{Fields, Reader},
};

pub(super) const FIELD: &str = "scope";

const HOST: &str = "host";
const FLEET: &str = "fleet";

/// Returns the position of `scope: fleet`; `None`: each host has its own budget, or an error was reported.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    kind: automatic::Kind,
) -> Option<FilePosition> {
    let (name, node) = fields.find(FIELD)?;
    let is_of_fleet = reader.choice(node, FIELD, [(HOST, false), (FLEET, true)])?;
    if !is_of_fleet {
        return None;
    }
    let problem = if automatic::is_meant(fields) {
        Some("is not for 'count: auto': each host finds what it bears by itself".to_owned())
    } else if rate::is_absent(fields) {
        Some(format!("needs {}", rate::EXPECTED))
    } else {
        misfit(kind).map(|why| format!("is not for {why}"))
    };
    match problem {
        Some(problem) => {
            reader.error(name.at, format!("'{FIELD}: {FLEET}' {problem}"));
            None
        }
        None => Some(reader.position(name.at)),
    }
}

/// Reports the field in a limit on connections.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.find(FIELD) {
        let message = format!(
            "'{FIELD}' is not for cost {}: connections that are open cannot be lent",
            Cost::Connections.name()
        );
        reader.error(name.at, message);
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
