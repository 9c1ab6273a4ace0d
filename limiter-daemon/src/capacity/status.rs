//! The status of automatic rates.

use limiter_datapath::kernel::{Datapath, DatapathError, monotonic_now};
use limiter_policy::policy::Limit;
use limiter_protocol::{AutomaticRate, OverloadKind, OverloadStatus};

use super::{Capacity, OverloadCounts};

/// Returns the rate in force of a limit; `None`: it is not automatic. `capacity` is the daemon's, if one runs.
pub(crate) fn status(
    datapath: &Datapath,
    capacity: Option<&Capacity>,
    limit: &Limit,
) -> Result<Option<AutomaticRate>, DatapathError> {
    let (Some((floor, ceiling)), Some(rate)) =
        (limit.automatic(), datapath.automatic_rate(limit.id)?)
    else {
        return Ok(None);
    };
    let (overload, error) = match capacity {
        Some(capacity) => {
            let (overload, error) = capacity.of(limit.id);
            (overload, error.map(|error| error.to_string()))
        }
        None => (OverloadCounts::default(), Some("no daemon runs".to_owned())),
    };
    let now_ns = monotonic_now();
    let heard = OverloadKind::ALL.into_iter().zip(overload);
    let heard = heard.filter_map(|(kind, heard)| Some((kind, heard?)));
    Ok(Some(AutomaticRate {
        rate,
        floor,
        ceiling,
        overload: heard
            .map(|(kind, heard)| OverloadStatus {
                kind: kind.name().to_owned(),
                intervals: heard.intervals,
                ago_ns: now_ns.saturating_sub(heard.last_ns),
            })
            .collect(),
        error,
    }))
}
