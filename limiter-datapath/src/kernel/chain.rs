//! Formats errors on one line.

/// Joins an error and its causes on one line, since aya's texts often name only the step. Shortens
/// a verifier's log to its first and last line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = one_line(&error.to_string());
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    match (lines.next(), lines.next_back()) {
        (Some(first), Some(last)) => format!("{} … {}", first.trim(), last.trim()),
        (Some(only), None) => only.trim().to_owned(),
        (None, _) => String::new(),
    }
}
