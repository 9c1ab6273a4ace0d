//! The valid names of limits, lists, sieves and groups.

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
