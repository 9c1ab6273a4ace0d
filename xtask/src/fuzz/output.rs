//! Parses libFuzzer's output, line by line.

use std::fmt;

/// The progress so far. After a number and a tab, libFuzzer writes `pulse  cov: 312 ft: 901 corp:
/// 88/9Kb lim: 4 exec/s: 2048 rss: 40Mb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FuzzProgress {
    runs: u64,
    runs_per_second: u64,
    /// The number of locations in the code reached so far.
    coverage: u64,
    /// The number of inputs that reached something new.
    inputs: u64,
}

impl FuzzProgress {
    /// Parses a line; `None`: the line is about something else.
    pub(super) fn of_line(line: &str) -> Option<Self> {
        let (runs, rest) = line.strip_prefix('#')?.split_once('\t')?;
        let words: Vec<_> = rest.split_whitespace().collect();
        let after = |name: &str| {
            let index = words.iter().position(|word| *word == name)?;
            words.get(index + 1).copied()
        };
        Some(Self {
            runs: runs.parse().ok()?,
            runs_per_second: after("exec/s:")?.parse().ok()?,
            coverage: after("cov:")?.parse().ok()?,
            inputs: after("corp:")?.split('/').next()?.parse().ok()?,
        })
    }
}

impl fmt::Display for FuzzProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            runs,
            runs_per_second,
            coverage,
            inputs,
        } = self;
        write!(
            f,
            "{runs:>9} runs, {runs_per_second:>6}/s, coverage {coverage:>5}, {inputs:>4} inputs"
        )
    }
}

/// Returns the path of the saved failing input.
pub(super) fn saved_input(line: &str) -> Option<&str> {
    line.split_once("Test unit written to ")
        .map(|(_, path)| path.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_progress() {
        let expected = FuzzProgress {
            runs: 2048,
            runs_per_second: 1024,
            coverage: 312,
            inputs: 88,
        };
        for line in [
            "#2048\tpulse  cov: 312 ft: 901 corp: 88/9Kb lim: 4 exec/s: 1024 rss: 40Mb",
            "#2048\tNEW    cov: 312 ft: 901 corp: 88/9b lim: 4 exec/s: 1024 rss: 40Mb L: 3/4 MS: 1 CopyPart-",
            "#2048\tDONE   cov: 312 ft: 901 corp: 88/9Mb lim: 4 exec/s: 1024 rss: 40Mb",
        ] {
            assert_eq!(FuzzProgress::of_line(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_progress() {
        for line in [
            "",
            "INFO: Running with entropic power schedule (0xFF, 100).",
            "==77== ERROR: libFuzzer: deadly signal",
            "#0\tREAD units: 5",
            // Without instrumentation there is no coverage.
            "#2\tDONE   corp: 1/1b lim: 4 exec/s: 2 rss: 40Mb",
        ] {
            assert_eq!(FuzzProgress::of_line(line), None, "{line}");
        }
    }

    #[test]
    fn finds_what_was_saved() {
        let line = "artifact_prefix='a/'; Test unit written to a/crash-0beec7b5\n";
        assert_eq!(saved_input(line), Some("a/crash-0beec7b5"));
        assert_eq!(saved_input("Done 2 runs in 0 second(s)"), None);
    }
}
