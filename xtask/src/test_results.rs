//! Sums up the results of test harnesses.

use std::{
    fmt,
    io::{self, BufRead, Write},
    time::Duration,
};

use anyhow::{Result, ensure};

/// The numbers of passed and failed tests, and their times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TestResults {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    times: Vec<(Duration, String)>,
    /// The first lines of each failed test's error, after a line with the test's name.
    errors: Vec<String>,
    /// Whether the next lines are the output of the last test in `errors`.
    is_in_output: bool,
}

/// The most lines of an error that are repeated at the end.
const ERROR_LINES: usize = 8;

impl TestResults {
    /// Copies a harness's output to `copy` as it arrives, and adds its results.
    pub(crate) fn read_all(
        &mut self,
        output: impl BufRead,
        mut copy: impl Write,
    ) -> io::Result<()> {
        for line in output.split(b'\n') {
            let line = line?;
            copy.write_all(&line)?;
            copy.write_all(b"\n")?;
            self.read(&String::from_utf8_lossy(&line));
        }
        Ok(())
    }

    /// Adds a line's numbers, if it is a result line, or the time of a test.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some((passed, failed)) = counts(line) {
            self.passed += passed;
            self.failed += failed;
        }
        self.times.extend(time(line));
        self.read_error(line);
    }

    /// Adds a line to the error of the failed test with this output.
    fn read_error(&mut self, line: &str) {
        let heading = line.strip_prefix("---- ");
        if let Some(test) = heading.and_then(|line| line.strip_suffix(" stdout ----")) {
            self.errors.push(test.to_owned());
            self.is_in_output = true;
        } else if line == "failures:" || line.starts_with("stack backtrace:") {
            self.is_in_output = false;
        } else if let Some(error) = self.errors.last_mut().filter(|_| self.is_in_output) {
            let lines = error.lines().count() - 1;
            let begins = line.starts_with("Error: ") || line.contains(" panicked at ");
            if begins || (1..ERROR_LINES).contains(&lines) {
                error.push_str("\n    ");
                error.push_str(line);
            }
        }
    }

    /// Returns the names of the failed tests, each with the first lines of its error.
    pub(crate) fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Fails if a test failed.
    pub(crate) fn check(&self) -> Result<()> {
        ensure!(self.failed == 0, "{} failed", self.failed);
        Ok(())
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.times.extend_from_slice(&other.times);
        self.errors.extend_from_slice(&other.errors);
    }

    /// Returns the names and times of the slowest tests, the slowest first.
    pub(crate) fn slowest(&self, most: usize) -> Vec<(Duration, &str)> {
        let mut times: Vec<_> = self.times.iter().collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        let slowest = times.into_iter().take(most);
        slowest.map(|(time, name)| (*time, name.as_str())).collect()
    }
}

/// Parses `test result: ok. 4 passed; 0 failed; 1 ignored; ...`.
fn counts(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |name: &str| {
        counts
            .split(';')
            .find_map(|part| part.trim().strip_suffix(name)?.trim().parse().ok())
    };
    Some((count("passed")?, count("failed")?))
}

/// Parses `test limits::bursts ... ok <1.234s>`.
fn time(line: &str) -> Option<(Duration, String)> {
    let (name, outcome) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let (_, time) = outcome.strip_suffix("s>")?.rsplit_once('<')?;
    let time = Duration::try_from_secs_f64(time.parse().ok()?).ok()?;
    Some((time, name.to_owned()))
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
        let mut sum = TestResults::default();
        sum.read_all(output.as_bytes(), &mut copy).unwrap();
        assert_eq!(sum.to_string(), "42 passed, 1 failed");
        assert_eq!(String::from_utf8(copy).unwrap(), output);
    }

    #[test]
    fn errors_are_kept_without_the_output_before_and_the_backtrace() {
        let mut results = TestResults::default();
        let output = "test a ... FAILED <0.1s>\n\nfailures:\n\n---- a stdout ----\nprinted\n\n\
            thread 'a' (1) panicked at src/a.rs:1:2:\n100 in round 10\nstack backtrace:\n   0: main\n\n\
            ---- b::c stdout ----\nprinted\nError: too many\n2\n3\n4\n5\n6\n7\n8\n9\n\n\n\
            failures:\n    a\n    b::c\n\ntest result: FAILED. 0 passed; 2 failed; 0 ignored\n";
        for line in output.lines() {
            results.read(line);
        }
        let expected = [
            "a\n    thread 'a' (1) panicked at src/a.rs:1:2:\n    100 in round 10",
            "b::c\n    Error: too many\n    2\n    3\n    4\n    5\n    6\n    7\n    8",
        ];
        assert_eq!(results.errors(), expected);
    }

    #[test]
    fn other_lines_are_no_results() {
        for line in [
            "",
            "test result: ok",
            "test result: ok. none",
            "running 1 test",
        ] {
            assert_eq!(counts(line), None, "{line:?}");
        }
    }

    #[test]
    fn the_slowest_come_first() {
        let mut results = TestResults::default();
        for line in [
            "test a::quick ... ok <0.001s>",
            "test b::slow ... FAILED <12.500s>",
            "test c ... ok",
            "test d - should panic ... ok <2.000s>",
        ] {
            results.read(line);
        }
        let expected = [
            (Duration::from_millis(12_500), "b::slow"),
            (Duration::from_secs(2), "d - should panic"),
        ];
        assert_eq!(results.slowest(2), expected);
    }
}
