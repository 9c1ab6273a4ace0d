//! Sums up the results of test harnesses.

use std::{
    fmt,
    io::{self, BufRead, Write},
    ops::AddAssign,
};

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TestResults {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl TestResults {
    /// Copies a harness's output to `copy` as it arrives, and sums up its result lines.
    pub(crate) fn of_stream(output: impl BufRead, mut copy: impl Write) -> io::Result<Self> {
        let mut sum = Self::default();
        for line in output.split(b'\n') {
            let line = line?;
            copy.write_all(&line)?;
            copy.write_all(b"\n")?;
            sum.read(&String::from_utf8_lossy(&line));
        }
        Ok(sum)
    }

    /// Adds a line's numbers, if it is a result line.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(one) = Self::of_line(line) {
            *self += one;
        }
    }

    /// Parses `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
    fn of_line(line: &str) -> Option<Self> {
        let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let count = |what: &str| {
            counts
                .split(';')
                .find_map(|part| part.trim().strip_suffix(what)?.trim().parse().ok())
        };
        Some(Self {
            passed: count("passed")?,
            failed: count("failed")?,
        })
    }
}

impl AddAssign for TestResults {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for TestResults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_result_lines_and_copies_everything() {
        let output = "\nrunning 3 tests\ntest a ... ok\n\
            test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
            test prints `2 passed; 9 failed`\n\
            test result: ok. 40 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n";
        let mut copy = Vec::new();
        let sum = TestResults::of_stream(output.as_bytes(), &mut copy).unwrap();
        assert_eq!(sum.to_string(), "42 passed, 1 failed");
        assert_eq!(String::from_utf8(copy).unwrap(), output);
    }

    #[test]
    fn other_lines_are_no_results() {
        for line in [
            "",
            "test result: ok",
            "test result: ok. none",
            "running 1 test",
        ] {
            assert_eq!(TestResults::of_line(line), None, "{line:?}");
        }
    }
}
