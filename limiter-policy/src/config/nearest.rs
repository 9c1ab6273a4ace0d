//! Names: which are valid, and which was probably intended.

use std::fmt;

use super::foreign::{ELSEWHERE, SYNONYMS};

/// The longest name, in bytes.
const MAX_NAME: usize = 64;

/// Returns whether a text is a valid name of a limit, a list, a sieve or a group.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    text.len() <= MAX_NAME
        && text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(is_part)
}

pub(super) fn expected_name() -> String {
    format!(
        "expected a letter followed by up to {} letters, digits, '-', '_' or '.'",
        MAX_NAME - 1
    )
}

/// Returns the message for a name that is not in `known`: it suggests the nearest, or lists all if
/// none is near.
#[must_use]
pub(super) fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let elsewhere = ELSEWHERE
        .iter()
        .find(|(word, here, _)| *word == name && known.contains(here));
    if let Some((_, _, why)) = elsewhere {
        return format!("unknown {kind} '{name}': {why}");
    }
    match nearest(name, known) {
        Some(near) => format!("unknown {kind} '{name}', did you mean '{near}'?"),
        None => format!(
            "unknown {kind} '{name}', must be one of {}",
            known.join(", ")
        ),
    }
}

/// An unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownName {
    /// The kind of thing, such as `limit`.
    kind: &'static str,
    name: String,
    known: Vec<String>,
}

impl UnknownName {
    /// Returns the error for a `name` outside the known names.
    #[must_use]
    pub fn new<'k>(kind: &'static str, name: &str, known: impl Iterator<Item = &'k str>) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            known: known.map(ToOwned::to_owned).collect(),
        }
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, known } = self;
        if known.is_empty() {
            return write!(
                formatter,
                "unknown {kind} '{name}': the policy in force has no {kind}s"
            );
        }
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        formatter.write_str(&unknown(kind, name, &known))
    }
}

/// Joins names as a choice: `auto, native or generic`.
pub(super) fn alternatives(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Returns the known name that `name` most likely stands for: a synonym, or a name that differs in at most a
/// third of its letters, ignoring case.
pub(super) fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    /// Far longer than any known name; the distance takes quadratic time.
    const LONGEST: usize = 100;
    if name.len() > LONGEST {
        return None;
    }
    let name = name.to_lowercase();
    let mut synonyms = SYNONYMS.iter().filter(|(word, _)| *word == name);
    if let Some(known) = synonyms.find_map(|(_, ours)| known.iter().find(|known| *known == ours)) {
        return Some(known);
    }
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
    fn knows_the_words_of_others() {
        let fields = ["protocol", "destination-port", "source-port"];
        assert_eq!(nearest("Proto", &fields), Some("protocol"));
        assert_eq!(nearest("port", &fields), Some("destination-port"));
        assert_eq!(nearest("dry-run", &fields), None);
        assert_eq!(nearest("dry-run", &["enforce", "observe"]), Some("observe"));
        assert_eq!(
            unknown("field", "source", &fields),
            "unknown field 'source': sources are chosen by 'exclude', 'block' and 'overrides'"
        );
        assert!(unknown("field", "source", &["cidr", "file"]).ends_with("one of cidr, file"));
        assert!(unknown("mode", "dry-run", &["auto", "generic"]).contains("belong to a limit"));
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
