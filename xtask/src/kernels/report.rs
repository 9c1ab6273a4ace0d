//! Parses an emulated machine's report.

use crate::test_results::TestResults;

/// The steps of `init.sh`, in order.
const STEPS: [&str; 4] = ["interfaces", "attach", "count", "detach"];

/// The results that the console has shown.
#[derive(Debug, Default)]
pub(super) struct Report {
    passed: Vec<String>,
    tests: TestResults,
    failed_tests: Vec<String>,
    ended: bool,
}

impl Report {
    /// Parses a line.
    pub(super) fn read(&mut self, line: &str) {
        self.tests.read(line);
        // Before the first line the firmware sends terminal codes.
        if let Some((_, step)) = line.split_once("@step ")
            && let Some(name) = step.strip_suffix(" ok")
        {
            self.passed.push(name.to_owned());
        }
        if let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|heading| heading.strip_suffix(" stdout ----"))
        {
            self.failed_tests.push(name.to_owned());
        }
        self.ended |= line == "@end";
    }

    /// Returns the steps that passed.
    pub(super) fn steps(&self) -> String {
        self.passed.join(", ")
    }

    /// Returns how many tests passed and failed.
    pub(super) fn tests(&self) -> TestResults {
        self.tests
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
