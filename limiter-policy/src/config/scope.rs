//! The field `scope` of a limit: each host has the budget, or the fleet shares it. Other sections must allow a
//! shared limit (`scope: fleet`).

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    diagnostics::{FilePosition, Problems},
    fields::Given,
    limits::Limits,
    overrides::Overrides,
    rate::{self, RateContext, automatic},
    room::{Buckets, Scope},
};
use crate::{
    fleet::Fleet,
    policy::{
        OverrideId,
        shared_limits::{self, LONGEST_FRAME},
    },
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

/// Reports shared limits (`scope: fleet`) that the other sections rule out.
pub(super) fn check_shared(
    (limits, overrides): (&Limits, &Overrides),
    fleet: Option<&Fleet>,
    buckets: Buckets,
    problems: &mut Problems,
) {
    for (index, limit) in limits.iter() {
        let Some(position) = limit.fields.fleet else {
            continue;
        };
        let needs = |what: &str| format!("'scope: fleet' needs {what}");
        let Some(fleet) = fleet else {
            let message = needs("a section 'fleet' with the store");
            problems.report_at(position, message);
            continue;
        };
        if buckets.scope != Scope::Host {
            problems.report_at(position, needs("`buckets: {scope: host}`"));
        }
        let nodes = fleet.nodes;
        let least = shared_limits::least_burst(limit.cost, nodes);
        for (part, rate) in limit.rates.iter().enumerate() {
            let others = overrides.get(&(index, part)).into_iter().flatten();
            let mut wanting = others.filter(|other| other.rate.burst < least);
            if rate.burst < least {
                problems.report_at(position, too_small(limit.cost, nodes, least, None));
            } else if let Some(other) = wanting.next() {
                problems.report_at(
                    position,
                    too_small(limit.cost, nodes, least, Some(&other.id)),
                );
            }
        }
    }
}

fn too_small(cost: Cost, nodes: u32, least: u64, of: Option<&OverrideId>) -> String {
    let held = match cost {
        Cost::Bytes => format!("a frame of {LONGEST_FRAME} bytes"),
        _ => "a token".to_owned(),
    };
    let also = of.map_or_else(String::new, |id| format!(", also in the override '{id}'"));
    format!(
        "'scope: fleet' among {nodes} nodes needs a burst of at least {least}{also}: a minimum share is a twentieth of \
         it, divided by the nodes, and holds {held}; `fleet: {{nodes: …}}` is the most nodes that run at once"
    )
}
