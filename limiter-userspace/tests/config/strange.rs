//! Texts that nobody would write.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::harness::load;

/// Pieces that configurations are made of, for making strange ones.
static PIECES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    "limits overrides mode PacketsPerIPAddress BytesPerIPv6Range PacketsPerIPAddress:10.0.0.1 \
     burst count period ids id comment 10.0.0.1 2001:db8:: 1s 0 5 -1 1.5 ~ off &a *a << [ ] { } \
     : , - ' \" | > # ! % ? ---"
        .split_whitespace()
        .chain([
            "\n", "\n  ", "\n    ", " ", ": ", "- ", "\u{feff}", "\r\n", "\t",
        ])
        .collect()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics_and_no_error_is_without_words(
        pieces in prop::collection::vec(prop::sample::select(PIECES.clone()), 0..40),
    ) {
        let text = pieces.concat();
        if let Err(errors) = load(&[("limiter.yaml", text.as_bytes())]) {
            prop_assert!(!errors.is_empty());
            for error in errors {
                prop_assert!(error.starts_with("limiter.yaml:"), "{}", error);
            }
        }
    }
}
