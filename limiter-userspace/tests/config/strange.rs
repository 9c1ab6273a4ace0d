//! Texts that no user would write: random and almost valid ones.

use std::sync::LazyLock;

use limiter_policy::config;
use proptest::prelude::*;

/// Pieces from which the test builds strange configurations.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "limits overrides mode PacketsPerIPAddress BytesPerIPv6Range PacketsPerIPAddress:10.0.0.1 \
     subscribers malformed Own Own:1 cost match packets new-connections total regId prefix-length \
     protocol tcp destination-port 1-2 source-port tcp-flags syn,!ack !ack icmp-type echo-request destination fragments \
     prefixes burst count period ids id comment 10.0.0.1 2001:db8:: 1s 0 5 -1 1.5 ~ off &a *a << [ ] { } \
     : , - ' \" | > # ! % ? ---"
        .split_whitespace()
        .chain([
            "\n", "\n  ", "\n    ", " ", ": ", "- ", "\u{feff}", "\r\n", "\t",
        ])
        .collect()
});

/// A valid configuration, from which the test derives almost valid ones.
const RIGHT: &str = "
malformed: pass
subscribers:
  1002: 2001:db8:2::/48
  1001: {prefixes: [198.51.100.0/24, '2001:db8:1::', 192.0.2.1], comment: a note}
limits:
  Own:
    <<: {id: ipAddress, cost: packets}
    mode: observe
    burst: 20
    count: 10
    period: 1s
    match:
      protocol: tcp
      destination-port: [443, '8000-8099', 80]
      tcp-flags: 'syn, !ack'
      destination: [192.0.2.0/24, 2001:db8::1]
      fragments: ignore
  Icmp: {id: total, cost: bytes, mode: off, match: {protocol: [icmpv6, 47]}}
  PacketsPerIPv6Range: {mode: observe, prefix-length: 56}
overrides:
  - PacketsPerSubscriber: {burst: 9, count: 8, period: 1s, ids: [1002, {id: 1001, comment: x}]}
  - Own: {burst: 9, count: 8, period: 1s, ids: [192.0.2.0/28, 2001:db8::/32, 192.0.2.1]}
  - PacketsPerIPv6Range: {burst: 9, count: 8, period: 1s, ids: ['2001:db8::/56']}
";

/// Parses a text. This must not panic, and every error must have a position.
fn read(text: &str) -> Result<(), TestCaseError> {
    if let Err(errors) = config::parse(text, "text") {
        prop_assert!(errors.iter().next().is_some());
        for error in errors.iter() {
            let line = error.to_string();
            prop_assert!(
                line.starts_with("text:") && !line.contains('\n'),
                "{}",
                line
            );
        }
    }
    Ok(())
}

#[test]
fn what_is_almost_right_is_right_at_first() {
    assert!(config::parse(RIGHT, "text").is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_text_panics_and_no_error_is_without_words(
        pieces in prop::collection::vec(prop::sample::select(PIECES.clone()), 0..40),
    ) {
        read(&pieces.concat())?;
    }

    #[test]
    fn nothing_that_is_almost_right_panics(
        changes in prop::collection::vec(
            (any::<prop::sample::Index>(), 0usize..4, prop::sample::select(PIECES.clone())),
            1..6,
        ),
    ) {
        let mut text = RIGHT.to_owned();
        for (position, length, piece) in changes {
            let position = position.index(text.len());
            let end = (position + length).min(text.len());
            if text.is_char_boundary(position) && text.is_char_boundary(end) {
                text.replace_range(position..end, piece);
            }
        }
        read(&text)?;
    }

    #[test]
    fn no_characters_panic(text in "\\PC{0,60}|.*") {
        read(&text)?;
    }
}
