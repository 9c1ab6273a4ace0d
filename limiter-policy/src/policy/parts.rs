//! Limits with several rates. Each rate makes a limit: the first has the limit's name, the others add their
//! number, `Web#2`. Their decisions combine as for any limits.

use super::{FlatMetrics, Limit};

/// Separates a part's number; no configured name contains it.
const MARK: char = '#';

/// Returns the name of the limit for a rate of `name`; `part` counts from 0.
#[must_use]
pub fn part_name(name: &str, part: usize) -> String {
    match part {
        0 => name.to_owned(),
        _ => format!("{name}{MARK}{}", part + 1),
    }
}

/// Returns the configured name of the limit that a part belongs to.
#[must_use]
pub fn configured_name(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

impl Limit {
    /// Returns whether it stands for the whole configured limit, in settings that all its rates share, such
    /// as lists.
    #[must_use]
    pub fn is_first_part(&self) -> bool {
        configured_name(&self.name) == self.name
    }
}

impl FlatMetrics {
    /// Returns the metrics for one of the limit's rates, with a tag of its own; `part` counts from
    /// 0.
    #[must_use]
    pub fn of_part(&self, part: usize) -> Self {
        let tag = match part {
            0 => self.tag.clone(),
            _ => format!("{}-{}", self.tag, part + 1),
        };
        let prefix = self.prefix.clone();
        Self { prefix, tag }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_names_of_their_own() {
        for (part, name) in [(0, "Web"), (1, "Web#2"), (9, "Web#10")] {
            assert_eq!(part_name("Web", part), name);
            assert_eq!(configured_name(name), "Web");
        }
    }
}
