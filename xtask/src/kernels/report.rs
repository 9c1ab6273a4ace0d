//! Parses an emulated machine's report.

use std::collections::VecDeque;

use crate::test_results::TestResults;

/// The steps of `init.sh`, in order.
const STEPS: [&str; 4] = ["interfaces", "attach", "count", "detach"];

/// The results on the console so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    passed: Vec<String>,
    tests: TestResults,
    failed_tests: Vec<String>,
    /// Whether the current lines are the output of passed tests.
    shows_passed: bool,
    ended: bool,
    /// The lines to show for a failure: the failed tests' output, or the last lines.
    part: VecDeque<String>,
}

/// The most lines of [`Report::part`].
const PART: usize = 60;

impl Report {
    pub(super) fn read(&mut self, line: &str) {
        self.tests.read(line);
        self.keep(line);
        // Before the first line the firmware sends terminal codes.
        if let Some((_, step)) = line.split_once("@step ")
            && let Some(name) = step.strip_suffix(" ok")
        {
            self.passed.push(name.to_owned());
        }
        match line {
            "successes:" => self.shows_passed = true,
            "failures:" => self.shows_passed = false,
            _ => {}
        }
        if !self.shows_passed
            && let Some(name) = line
                .strip_prefix("---- ")
                .and_then(|heading| heading.strip_suffix(" stdout ----"))
        {
            self.failed_tests.push(name.to_owned());
        }
        self.ended |= line == "@end";
    }

    /// Keeps the first lines of the tests' failures. Until there are any, keeps the last lines.
    fn keep(&mut self, line: &str) {
        if self.failed_tests.is_empty() {
            if line == "failures:" {
                self.part.clear();
            }
            if self.part.len() == PART {
                self.part.pop_front();
            }
        } else if self.part.len() == PART {
            return;
        }
        self.part.push_back(line.to_owned());
    }

    /// Returns the most telling lines of a failure.
    pub(super) fn part(&self) -> String {
        let lines: Vec<_> = self.part.iter().map(String::as_str).collect();
        lines.join("\n")
    }

    pub(super) fn steps(&self) -> String {
        self.passed.join(", ")
    }

    /// Returns the numbers of passed and failed tests.
    pub(super) fn tests(&self) -> &TestResults {
        &self.tests
    }

    /// Returns the failures, one line each.
    pub(super) fn problems(&self) -> Vec<String> {
        let missing = STEPS
            .iter()
            .filter(|step| !self.passed.iter().any(|passed| passed == *step))
            .map(|step| format!("the daemon's step {step} failed"));
        let mut problems: Vec<_> = missing.collect();
        problems.extend(
            self.failed_tests
                .iter()
                .map(|test| format!("{test} failed")),
        );
        if !self.ended {
            problems.push("it did not finish".to_owned());
        } else if self.tests.passed == 0 || self.tests.failed > self.failed_tests.len() {
            problems.push(format!("tests: {}", self.tests));
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: [&str; 6] = [
        "\x1b[2J@step interfaces ok",
        "@step attach ok",
        "@step count ok",
        "@step detach ok",
        "test result: ok. 30 passed; 0 failed; 0 ignored; 0 measured; 9 filtered out; finished in 1s",
        "@end",
    ];

    fn problems<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<String> {
        let mut report = Report::default();
        lines.into_iter().for_each(|line| report.read(line));
        report.problems()
    }

    #[test]
    fn nothing_is_wrong_if_everything_is_told() {
        assert_eq!(problems(GOOD), Vec::<String>::new());
    }

    #[test]
    fn every_line_counts() {
        for left_out in GOOD {
            let found = problems(GOOD.into_iter().filter(|line| *line != left_out));
            assert_eq!(found.len(), 1, "{found:?} without {left_out}");
        }
    }

    #[test]
    fn a_part_is_the_last_lines_or_the_first_failures() {
        let mut report = Report::default();
        let read = |report: &mut Report, numbers: std::ops::Range<usize>| {
            numbers.for_each(|number| report.read(&format!("line {number}")));
        };
        read(&mut report, 0..100);
        assert_eq!(report.part().lines().count(), PART);
        assert!(report.part().ends_with("line 99"));
        report.read("failures:");
        report.read("---- limits::bursts stdout ----");
        read(&mut report, 0..100);
        assert!(report.part().starts_with("failures:\n---- limits::bursts"));
        assert!(report.part().ends_with(&format!("line {}", PART - 3)));
    }

    #[test]
    fn what_passed_tests_write_is_no_failure() {
        let shown = ["successes:", "---- object::budget stdout ----", "9 at most"];
        assert_eq!(
            problems(shown.into_iter().chain(GOOD)),
            Vec::<String>::new()
        );
    }

    #[test]
    fn names_what_failed() {
        let lines = [
            "@step interfaces ok",
            "@step attach ok",
            "@step count ok",
            "---- limits::bursts stdout ----",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1s",
            "@end",
        ];
        let expected = ["the daemon's step detach failed", "limits::bursts failed"];
        assert_eq!(problems(lines), expected);
    }
}
