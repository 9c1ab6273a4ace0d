//! The questions, the try at which each was answered, and the time it took.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use bench_common::Group;
use serde::Serialize;

use crate::float::to_f64;

/// The tries of a question; the second comes one second after the first, the third two seconds
/// later.
pub(crate) const TRIES: usize = 3;

/// A response within this time is prompt: a quarter of a client's time until the retry.
const PROMPT: Duration = Duration::from_millis(250);

/// The questions of a run, by number.
#[derive(Debug, Default)]
pub(in crate::service) struct Questions {
    all: Vec<Question>,
    /// The longest delay of a question after it was due.
    latest: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Question {
    group: Group,
    member: u32,
    asked: Instant,
    tries: usize,
    answered: Option<(usize, Duration)>,
}

/// The results of some clients' questions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Tally {
    pub(crate) asked: usize,
    /// Answered at the first, second and third try.
    pub(crate) answered: [usize; TRIES],
    /// Answered within 250 ms after the first try.
    pub(crate) prompt: usize,
    /// From the first try to the response, in milliseconds, of the answered questions.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl Tally {
    /// Returns the percentage answered by this try, counted from 1.
    pub(crate) fn answered_by(&self, attempt: usize) -> f64 {
        let answered: usize = self.answered.iter().take(attempt).sum();
        percent(answered, self.asked)
    }

    /// Returns the percentage answered within 250 ms.
    pub(crate) fn promptly(&self) -> f64 {
        percent(self.prompt, self.asked)
    }
}

#[expect(clippy::cast_precision_loss, reason = "some thousand questions")]
fn percent(part: usize, whole: usize) -> f64 {
    part as f64 * 100.0 / whole.max(1) as f64
}

impl Questions {
    /// Adds a question that is asked now, `late` after it was due; returns its number.
    pub(super) fn ask(
        &mut self,
        (group, member): (Group, u32),
        now: Instant,
        late: Duration,
    ) -> usize {
        self.latest = self.latest.max(late);
        self.all.push(Question {
            group,
            member,
            asked: now,
            tries: 1,
            answered: None,
        });
        self.all.len() - 1
    }

    /// Counts another try, unless the question has been answered; returns whether to retry.
    pub(super) fn ask_again(&mut self, number: usize) -> bool {
        let Some(question) = self.all.get_mut(number) else {
            return false;
        };
        let again = question.answered.is_none() && question.tries < TRIES;
        question.tries += usize::from(again);
        again
    }

    /// Records a response. `tries` is how often TCP sent the question, because TCP retries by
    /// itself; `None` takes our own count. Only the first of several responses counts.
    pub(super) fn record_response(&mut self, number: usize, tries: Option<usize>, now: Instant) {
        if let Some(question) = self.all.get_mut(number)
            && question.answered.is_none()
        {
            let tries = tries.unwrap_or(question.tries);
            question.answered = Some((tries, now - question.asked));
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.all.iter().all(|question| question.answered.is_some())
    }

    /// Returns the longest delay of a question after it was due.
    pub(in crate::service) const fn latest(&self) -> Duration {
        self.latest
    }

    /// Returns the percentages of some clients' questions that were answered within 250 ms, over
    /// the time of asking: for each `step` its middle, in seconds from the start.
    pub(in crate::service) fn promptly(
        &self,
        start: Instant,
        step: Duration,
        of: impl Fn(Group, u32) -> bool,
    ) -> Vec<(f64, f64)> {
        let mut steps = BTreeMap::<u128, (usize, usize)>::new();
        for question in &self.all {
            if of(question.group, question.member) {
                let since = question.asked.saturating_duration_since(start);
                let (prompt, asked) = steps.entry(since.as_nanos() / step.as_nanos()).or_default();
                *asked += 1;
                *prompt += usize::from(question.answered.is_some_and(|(_, time)| time <= PROMPT));
            }
        }
        let middle = |number: u128| {
            step.as_secs_f64() * (to_f64(u64::try_from(number).unwrap_or(u64::MAX)) + 0.5)
        };
        let points = steps.into_iter();
        points
            .map(|(number, (prompt, asked))| (middle(number), percent(prompt, asked)))
            .collect()
    }

    /// Returns the results of some clients' questions.
    pub(in crate::service) fn tally(&self, of: impl Fn(Group, u32) -> bool) -> Tally {
        let of_them = || {
            self.all
                .iter()
                .filter(|question| of(question.group, question.member))
        };
        let mut tally = Tally {
            asked: of_them().count(),
            ..Tally::default()
        };
        let mut times: Vec<f64> = Vec::new();
        for (tries, time) in of_them().filter_map(|question| question.answered) {
            // More than three tries count as no response.
            if let Some(answered) = tally.answered.get_mut(tries - 1) {
                *answered += 1;
                tally.prompt += usize::from(time <= PROMPT);
                times.push(time.as_secs_f64() * 1e3);
            }
        }
        times.sort_by(f64::total_cmp);
        tally.p50_ms = quantile(&times, 50);
        tally.p99_ms = quantile(&times, 99);
        tally
    }
}

/// Returns the smallest of the sorted times that `percent` percent of them do not exceed; 0 without
/// times.
fn quantile(times: &[f64], percent: usize) -> f64 {
    let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(index).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_try_that_was_answered() {
        let start = Instant::now();
        let after = |ms| start + Duration::from_millis(ms);
        let mut questions = Questions::default();
        let late = Duration::from_micros(70);
        let [first, second, third, never] =
            [0, 0, 1, 1].map(|member| questions.ask((Group::Known, member), start, late));
        let new = questions.ask((Group::New, 0), start, Duration::ZERO);
        assert_eq!(questions.latest(), late);
        questions.record_response(first, None, after(1));
        for again in [second, third, never] {
            assert!(questions.ask_again(again));
        }
        assert!(!questions.ask_again(first));
        questions.record_response(second, None, after(1001));
        assert!(questions.ask_again(third) && questions.ask_again(never));
        assert!(!questions.ask_again(never), "there are three tries");
        questions.record_response(third, None, after(3002));
        // A second response to the same question.
        questions.record_response(first, None, after(3003));
        assert!(!questions.is_done());

        let of_known =
            |wanted: u32| questions.tally(|group, member| group == Group::Known && member < wanted);
        assert_eq!((of_known(1).asked, of_known(1).answered), (2, [1, 1, 0]));
        let tally = of_known(2);
        assert_eq!((tally.asked, tally.answered), (4, [1, 1, 1]));
        assert_eq!(tally.promptly().to_bits(), 25.0_f64.to_bits());
        let by = [1, 2, 3].map(|attempt| tally.answered_by(attempt));
        assert_eq!(by.map(f64::to_bits), [25.0, 50.0, 75.0].map(f64::to_bits));
        assert!((tally.p50_ms - 1001.0).abs() < 1e-6 && (tally.p99_ms - 3002.0).abs() < 1e-6);

        questions.record_response(new, Some(2), after(1100));
        let new = questions.tally(|group, _| group == Group::New);
        assert_eq!((new.answered, new.prompt), ([0, 1, 0], 0));
    }

    #[test]
    fn the_course_has_a_point_for_each_step() {
        let start = Instant::now();
        let mut questions = Questions::default();
        for (asked, answered) in [
            (0, Some(1)),
            (499, Some(750)),
            (500, Some(800)),
            (1_999, None),
        ] {
            let asked = start + Duration::from_millis(asked);
            let number = questions.ask((Group::New, 0), asked, Duration::ZERO);
            if let Some(answered) = answered {
                questions.record_response(number, None, start + Duration::from_millis(answered));
            }
        }
        let points = |group| {
            let step = Duration::from_millis(500);
            questions.promptly(start, step, |of, _| of == group)
        };
        assert_eq!(points(Group::New), [(0.25, 50.0), (0.75, 0.0), (1.75, 0.0)]);
        assert_eq!(points(Group::Known), []);
    }

    #[test]
    fn what_tcp_asked_too_often_is_not_answered() {
        let start = Instant::now();
        let mut questions = Questions::default();
        let number = questions.ask((Group::New, 0), start, Duration::ZERO);
        questions.record_response(number, Some(4), start + Duration::from_secs(7));
        assert_eq!(questions.tally(|_, _| true).answered, [0; 3]);
        assert!(questions.is_done());
    }

    #[test]
    fn quantiles_are_of_those_there_are() {
        let times: Vec<_> = (1..=200).map(f64::from).collect();
        let found = [50, 99].map(|percent| quantile(&times, percent).to_bits());
        assert_eq!(found, [100.0, 198.0].map(f64::to_bits));
        assert_eq!(quantile(&[], 99).to_bits(), 0.0_f64.to_bits());
        assert_eq!(quantile(&[7.0], 99).to_bits(), 7.0_f64.to_bits());
    }
}
