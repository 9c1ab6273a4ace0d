//! Suggests the name that was probably meant.

use std::fmt;

/// Returns the message for a name that is not in `known`: it suggests the nearest, or lists all if
/// none is near.
#[must_use]
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match nearest(name, known) {
        Some(near) => format!("unknown {what} '{name}', did you mean '{near}'?"),
        None => format!(
            "unknown {what} '{name}', must be one of {}",
            known.join(", ")
        ),
    }
}

/// A name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    /// What it should name, such as `limit`.
    what: &'static str,
    name: String,
    known: Vec<String>,
}

impl UnknownName {
    /// Returns the error that `name` is none of those that are known.
    #[must_use]
    pub fn new<'k>(what: &'static str, name: &str, known: impl Iterator<Item = &'k str>) -> Self {
        Self {
            what,
            name: name.to_owned(),
            known: known.map(ToOwned::to_owned).collect(),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, name, known } = self;
        if known.is_empty() {
            return write!(
                formatter,
                "unknown {what} '{name}': the policy in force has no {what}s"
            );
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        formatter.write_str(&unknown(what, name, &known))
    }
}

/// Joins names as a choice: `auto, native or generic`.
pub(super) fn alternatives(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the known name that `name` most likely misspells: at most a third of its letters differ,
/// ignoring case.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    /// Far longer than any known name; the distance takes quadratic time.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    known
        .iter()
        .map(|known| {
            (
                strsim::damerau_levenshtein(&name, &known.to_lowercase()),
                *known,
            )
        })
        .filter(|(distance, known)| *distance <= (known.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_nearest() {
        let known = ["burst", "count", "period"];
        for (name, expected) in [
            ("bust", Some("burst")),
            ("COUNT", Some("count")),
            ("perido", Some("period")),
            ("mode", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, &known), expected, "{name}");
        }
    }

    #[test]
    fn names_the_choice() {
        assert_eq!(alternatives(&[]), "");
        assert_eq!(alternatives(&["off"]), "off");
        assert_eq!(alternatives(&["drop", "pass"]), "drop or pass");
        assert_eq!(
            alternatives(&["auto", "native", "generic"]),
            "auto, native or generic"
        );
    }

    #[test]
    fn lists_the_known_when_none_is_near() {
        assert_eq!(
            unknown("field", "x", &["burst", "count"]),
            "unknown field 'x', must be one of burst, count"
        );
        let error = |known: &[&str]| {
            let error = UnknownName::new("sieve", "man", known.iter().copied());
            error.to_string()
        };
        assert_eq!(
            error(&["main", "other"]),
            "unknown sieve 'man', did you mean 'main'?"
        );
        assert_eq!(
            error(&[]),
            "unknown sieve 'man': the policy in force has no sieves"
        );
    }
}
