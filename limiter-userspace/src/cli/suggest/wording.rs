//! Phrases that the output uses in several places.

use limiter_offline::suggest::Suggestion;
use limiter_policy::text::one_line;

use limiter_report::render::{count, counted, duration};

/// Formats a fraction from 0 to 1 as a percentage.
pub(super) fn fraction(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent < 0.001 {
        "< 0.001 %".to_owned()
    } else if percent < 1.0 {
        let text = format!("{percent:.3}");
        format!("{} %", text.trim_end_matches('0'))
    } else {
        format!("{percent:.1} %")
    }
}

pub(super) fn summary(suggestion: &Suggestion, from: &str) -> String {
    format!(
        "{} in {} of {}, {} to {}",
        counted(whole(suggestion.ways.packets), "packet"),
        duration(suggestion.duration_ns),
        one_line(from),
        count(suggestion.ways.to_services),
        counted(suggestion.services.len(), "service"),
    )
}

pub(super) fn why_nothing(suggestion: &Suggestion, from: &str) -> String {
    let ways = &suggestion.ways;
    let from = one_line(from);
    if ways.packets == 0 {
        return format!("nothing to suggest limits from: {from} has no packets");
    }
    if ways.to_services == 0 {
        return format!(
            "nothing to suggest limits from: none of the {} of {from} goes to a service of this \
             host, as far as they show ({} to other ports, {} sent by it or others); name services \
             with --service, or this host's addresses with --host",
            counted(whole(ways.packets), "packet"),
            count(ways.unserved),
            count(ways.not_incoming),
        );
    }
    let services: Vec<_> = (suggestion.services.iter())
        .map(|proposed| format!("{} {}", count(proposed.packets), proposed.service))
        .collect();
    format!(
        "nothing to suggest limits from: {from} has too few packets to a service, fewer than 100 \
         ({}): watch for longer",
        services.join(", ")
    )
}

/// Converts a number of packets, for a plural.
fn whole(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
