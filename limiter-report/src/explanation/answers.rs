//! The answers of limits to packets of an address.

use limiter_common::answer::Answer;

use limiter_protocol::{Explanation, LimitExplanation};

/// Describes the answer to a refused packet, for each limit that answers.
pub fn answers(explanation: &Explanation) -> Vec<String> {
    let limits = explanation.limits.iter();
    limits.filter_map(line).collect()
}

fn line(limit: &LimitExplanation) -> Option<String> {
    let name = &limit.limit;
    Some(match (limit.answer?, limit.slip) {
        (Answer::Drop, _) => format!("{name}: refused packets get no answer"),
        (answer, None) => format!("{name}: refused packets are answered: {}", answer.name()),
        (answer, Some(slip)) => {
            let answer = answer.name();
            format!("{name}: one of {slip} refused packets is answered: {answer}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_protocol::testing;

    #[test]
    fn what_refused_packets_get() {
        let check = |answer, slip, expected: &[&str]| {
            let mut explanation = testing::explanation("192.0.2.1");
            explanation.limits[0].answer = answer;
            explanation.limits[0].slip = slip;
            assert_eq!(answers(&explanation), expected);
        };
        check(None, None, &[]);
        check(
            Some(Answer::Drop),
            None,
            &["PacketsPerIPAddress: refused packets get no answer"],
        );
        check(
            Some(Answer::Prohibited),
            None,
            &["PacketsPerIPAddress: refused packets are answered: prohibited"],
        );
        check(
            Some(Answer::Truncate),
            Some(2),
            &["PacketsPerIPAddress: one of 2 refused packets is answered: truncate"],
        );
    }
}
