//! The metrics of answers.

use limiter_common::counters::Traffic;
use limiter_datapath::kernel::{Datapath, DatapathError};

use super::labelled::LabelledRow;

/// Returns the answers sent for each limit, by kind.
pub(super) fn by_answer(
    datapath: &Datapath,
) -> Result<Vec<LabelledRow<2, Traffic>>, DatapathError> {
    let mut rows = Vec::new();
    for limit in &datapath.manifest().policy.limits {
        for (answer, traffic) in datapath.answer_traffic(limit)? {
            let labels = [
                ("limit", limit.name.clone()),
                ("answer", answer.name().to_owned()),
            ];
            rows.push((labels, traffic));
        }
    }
    Ok(rows)
}
