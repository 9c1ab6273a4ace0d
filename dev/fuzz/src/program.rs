//! A target as a program: a fuzzer, or a way to replay its findings.

use std::{env, fs, process::ExitCode};

/// Makes a program of a target.
///
/// With `--cfg fuzzing`, which `cargo xtask fuzz` and cargo-fuzz set, it is a fuzzer. Any other
/// build needs no libFuzzer, and runs the target on the files in its arguments, so that `cargo test
/// --all-targets` does not fuzz forever.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $crate::$name::run(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::run_on_files($crate::$name::run)
        }
    };
}

/// Runs a target on the files named as arguments.
#[must_use]
pub fn run_on_files(run: fn(&[u8])) -> ExitCode {
    for path in env::args_os().skip(1) {
        match fs::read(&path) {
            Ok(data) => run(&data),
            Err(error) => {
                eprintln!("error: cannot read {}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
