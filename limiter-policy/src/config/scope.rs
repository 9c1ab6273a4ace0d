//! The field `scope` of limits: whether each host has the budget, or the fleet has it in common.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    diagnostics::FilePosition,
    rate::{self, RateContext, automatic},
    reader::{Fields, Reader},
};

/// The field's name.
pub(super) const FIELD: &str = "scope";

const HOST: &str = "host";
const FLEET: &str = "fleet";

/// Returns where the file says that the fleet has the budget in common; `None`: each host has it, or the
/// limit cannot be in common, which is noted.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    kind: automatic::Kind,
) -> Option<FilePosition> {
    let (name, node) = fields.named(FIELD)?;
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

/// Notes the field in a limit on connections.
pub(super) fn refuse(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.named(FIELD) {
        let message = format!(
            "'{FIELD}' is not for cost {}: connections that are open cannot be lent",
            Cost::Connections.name()
        );
        reader.error(name.at, message);
    }
}

/// Says what kind of limit the fleet cannot have in common, and why; `None`: it can have this one.
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
