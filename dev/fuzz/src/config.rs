//! Any text as a configuration: it is valid, or it is refused with errors that have a position.

use limiter_policy::{
    config::{self, Diagnostics, Position},
    policy::CompiledPolicy,
};

/// The number of CPUs that policies are compiled for.
const CPUS: u32 = 4;

/// The name of the text in errors.
const NAME: &str = "limiter.yaml";

/// Reads a configuration, and compiles the policy of a valid one.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match config::parse(text, NAME) {
        // Nothing checks the configuration after this, so its policy must compile.
        Ok(config) => {
            drop(CompiledPolicy::new(&config.policy, CPUS).expect("a policy that compiles"));
        }
        Err(diagnostics) => check(text, &diagnostics),
    }
}

/// Every error is a single line, with a position in the text.
fn check(text: &str, diagnostics: &Diagnostics) {
    assert!(diagnostics.iter().next().is_some());
    for diagnostic in diagnostics.iter() {
        assert!(!diagnostic.message.is_empty());
        assert_eq!(diagnostic.to_string().lines().count(), 1);
        assert_eq!(diagnostic.file.as_ref(), NAME);
        if let Some(at) = diagnostic.at {
            assert_in(text, at);
        }
    }
}

/// Checks that a position is inside the text, or just behind its end. YAML also breaks lines at
/// carriage returns.
fn assert_in(text: &str, at: Position) {
    let lines = text.split(['\n', '\r']).count() as u64;
    assert!((1..=lines + 1).contains(&at.line), "{at} of {lines} lines");
    assert!(at.column >= 1, "{at}");
}
