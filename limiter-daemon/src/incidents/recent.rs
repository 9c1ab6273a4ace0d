//! The last log lines about incidents, kept for the page.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use limiter_protocol::web::IncidentLine;

/// More lines than the log allows in a quarter of an hour.
const MOST: usize = 256;

/// The newest lines.
#[derive(Default)]
pub(crate) struct RecentIncidents(Mutex<VecDeque<IncidentLine>>);

impl RecentIncidents {
    /// Returns the lines, oldest first.
    pub(crate) fn all(&self) -> Vec<IncidentLine> {
        self.locked().iter().cloned().collect()
    }

    pub(super) fn add(&self, line: IncidentLine) {
        let mut all = self.locked();
        if all.len() >= MOST {
            all.pop_front();
        }
        all.push_back(line);
    }

    fn locked(&self) -> MutexGuard<'_, VecDeque<IncidentLine>> {
        // A panic elsewhere spoils no text.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn only_the_newest_are_kept() {
        let recent = RecentIncidents::default();
        for number in 0..MOST + 3 {
            recent.add(IncidentLine {
                at: Timestamp::UNIX_EPOCH,
                began: true,
                text: number.to_string(),
            });
        }
        let all = recent.all();
        assert_eq!(all.len(), MOST);
        assert_eq!(all[0].text, "3");
    }
}
