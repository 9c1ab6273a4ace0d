//! Limits of several rates. Each rate makes a limit of its own: the first under the limit's name,
//! the others under that with their number, `Web#2`. They are judged together, like any limits.

use super::{FlatMetrics, Limit};

/// What stands before a part's number: no name of a configuration has it.
const MARK: char = '#';

/// The name of a limit for one of the rates of `name`, which are counted from 0.
#[must_use]
pub fn part_name(name: &str, part: usize) -> String {
    match part {
        0 => name.to_owned(),
        _ => format!("{name}{MARK}{}", part + 1),
    }
}

/// The name that the configuration has of a limit, whichever of its rates that is of.
#[must_use]
pub fn configured_name(name: &str) -> &str {
    name.split_once(MARK).map_or(name, |(name, _)| name)
}

impl Limit {
    /// Whether it stands for the limit as the configuration has it: for what is the same of all its
    /// rates, such as lists.
    #[must_use]
    pub fn is_first_part(&self) -> bool {
        configured_name(&self.name) == self.name
    }
}

impl FlatMetrics {
    /// Those of a limit for one of the rates, which are counted from 0: with a tag of its own.
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
