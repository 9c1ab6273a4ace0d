//! The policy's result for a server name.

use crate::packet::NameMatch;

/// The policy's result for the server name that a client asks for. It consists of plain numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Meaning {
    /// The limits that count by the name.
    pub limits: u64,
    /// The number of the policy's server name that covers it; 0: none does.
    pub name: u64,
    /// The policy of this result, by the [number](crate::policy::Features::server_names) of its server names;
    /// 0: the name is unknown.
    pub compiled_by: u64,
}

impl Meaning {
    /// The result for an unknown name.
    pub const NONE: Self = Self {
        limits: 0,
        name: 0,
        compiled_by: 0,
    };

    /// Makes the result of the policy with that number of server names.
    #[must_use]
    #[inline(always)]
    pub const fn new(compiled_by: u64, name_match: &NameMatch) -> Self {
        Self {
            limits: name_match.limits,
            name: name_match.zone,
            compiled_by,
        }
    }

    /// Returns the limits that count by the name, if this is the result of the policy with that number of
    /// server names.
    #[must_use]
    #[inline(always)]
    pub const fn limits_of(&self, server_names: u64) -> u64 {
        if self.compiled_by == server_names {
            self.limits
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_policy_says_is_nothing_to_another() {
        let name_match = NameMatch {
            limits: 0b101,
            zone: 9,
            ..NameMatch::NOTHING
        };
        let meaning = Meaning::new(3, &name_match);
        assert_eq!(meaning.limits_of(3), 0b101);
        assert_eq!(meaning.limits_of(4), 0);
        assert_eq!(Meaning::NONE.limits_of(3), 0);
    }
}
