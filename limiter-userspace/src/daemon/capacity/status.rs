//! What is told of automatic rates.

use limiter_datapath::kernel::{Datapath, DatapathError, monotonic_now};
use limiter_policy::policy::Limit;

use super::Capacity;
use crate::{
    capacity::Kind,
    protocol::{AutomaticRate, DistressStatus},
};

/// Returns the rate in force of a limit; `None`: it is not automatic. `capacity` is the daemon's, if
/// one runs.
pub(in crate::daemon) fn status(
    datapath: &Datapath,
    capacity: Option<&Capacity>,
    limit: &Limit,
) -> Result<Option<AutomaticRate>, DatapathError> {
    let (Some((floor, ceiling)), Some(rate)) =
        (limit.automatic(), datapath.automatic_rate(limit.id)?)
    else {
        return Ok(None);
    };
    let found = capacity.map(Capacity::found);
    let (finder, error) = match &found {
        Some(found) => (found.finders.get(&limit.id), found.error.clone()),
        None => (None, Some("no daemon runs".to_owned())),
    };
    let now_ns = monotonic_now();
    let distress = finder.map_or_else(Vec::new, |finder| {
        let each = Kind::ALL.iter().zip(finder.heard());
        let heard = each.filter_map(|(kind, heard)| Some((kind, (*heard)?)));
        heard
            .map(|(kind, heard)| DistressStatus {
                kind: kind.name().to_owned(),
                intervals: heard.intervals,
                ago_ns: now_ns.saturating_sub(heard.last_ns),
            })
            .collect()
    });
    Ok(Some(AutomaticRate {
        rate,
        floor,
        ceiling,
        distress,
        error,
    }))
}
