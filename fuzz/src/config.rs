//! Any text as a configuration: it is refused with errors that have a place, or it is right.

use std::{fs, io, path::Path};

use limiter_userspace::{
    config::{self, Config, Diagnostics, Position},
    policy::CompiledPolicy,
};

/// Reads a configuration, and compiles the policy of a good one.
pub fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    match load(text).expect("a temporary file to write the configuration to") {
        // Nothing is checked again after the configuration.
        Ok(config) => drop(CompiledPolicy::new(&config.policy).expect("a policy that compiles")),
        Err(diagnostics) => check(text, &diagnostics),
    }
}

fn load(text: &str) -> io::Result<Result<Config, Diagnostics>> {
    let directory = tempfile::tempdir_in(memory())?;
    let path = directory.path().join("limiter.yaml");
    fs::write(&path, text)?;
    Ok(config::load(&path))
}

/// A directory that costs no disk, where there is one.
fn memory() -> &'static Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        memory
    } else {
        Path::new("/tmp")
    }
}

/// Every error stands on one line and is somewhere in the text.
fn check(text: &str, diagnostics: &Diagnostics) {
    assert!(diagnostics.iter().next().is_some());
    for diagnostic in diagnostics.iter() {
        assert!(!diagnostic.message.is_empty());
        assert_eq!(diagnostic.to_string().lines().count(), 1);
        let named_here = diagnostic.file.ends_with("/limiter.yaml");
        if let Some(at) = diagnostic.at
            && named_here
        {
            assert_in(text, at);
        }
    }
}

/// A place in the text, or just behind its end. YAML breaks lines at carriage returns, too.
fn assert_in(text: &str, at: Position) {
    let lines = text.split(['\n', '\r']).count() as u64;
    assert!((1..=lines + 1).contains(&at.line), "{at} of {lines} lines");
    assert!(at.column >= 1, "{at}");
}
