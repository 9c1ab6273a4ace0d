//! The tables of `limiter top`.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Subject {
    /// The sources dropped within the last minute.
    #[default]
    Offenders,
    /// The passed and refused packets of each limit.
    Limits,
    /// The passed and refused packets by the standing of sources.
    Standing,
    /// The limits on open connections.
    Connections,
}

impl Subject {
    /// All tables, in the order of their keys.
    const ALL: [Self; 4] = [
        Self::Offenders,
        Self::Limits,
        Self::Standing,
        Self::Connections,
    ];

    /// Returns the table with a digit as its key.
    pub(super) fn of_digit(digit: char) -> Option<Self> {
        let number = digit.to_digit(10)?.checked_sub(1)?;
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Offenders => "offenders",
            Self::Limits => "limits",
            Self::Standing => "standing",
            Self::Connections => "connections",
        }
    }

    /// Returns the next table; after the last comes the first.
    pub(super) const fn next(self) -> Self {
        match self {
            Self::Offenders => Self::Limits,
            Self::Limits => Self::Standing,
            Self::Standing => Self::Connections,
            Self::Connections => Self::Offenders,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_digit() {
        let mut subject = Subject::default();
        for digit in ['1', '2', '3', '4'] {
            assert_eq!(Subject::of_digit(digit), Some(subject));
            subject = subject.next();
        }
        assert_eq!(subject, Subject::default());
        for other in ['0', '5', 'v'] {
            assert_eq!(Subject::of_digit(other), None);
        }
    }
}
