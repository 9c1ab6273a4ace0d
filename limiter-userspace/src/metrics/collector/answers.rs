//! The metrics of answers.

use limiter_common::{answer::Answer, counters::Traffic};
use limiter_datapath::kernel::{Datapath, DatapathError};

use super::labelled::Labelled;

/// Returns what was sent for each limit that answers, by kind.
pub(super) fn by_answer(datapath: &Datapath) -> Result<Vec<Labelled<2, Traffic>>, DatapathError> {
    let mut rows = Vec::new();
    for limit in &datapath.manifest().policy.limits {
        let Some(deny) = limit.answers() else {
            continue;
        };
        for answer in Answer::ALL {
            if answer == Answer::Drop || !deny.sends(answer) {
                continue;
            }
            let labels = [
                ("limit", limit.name.clone()),
                ("answer", answer.name().to_owned()),
            ];
            rows.push((labels, datapath.answer_traffic(limit.id, answer)?));
        }
    }
    Ok(rows)
}
