//! Answers in `limiter check`, and warnings of answers that forgers can direct at others.

use std::io::Write;

use limiter_common::{answer::Answer, standing::Standing};
use limiter_policy::policy::{Deny, ForgeryReason, Limit, Policy, configured_name};

use crate::cli::output;

/// Prints the answers of each limit, and their maximum rates; prints nothing if no limit answers.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    for limit in &policy.limits {
        if let Some(deny) = limit.answers() {
            writeln!(out, "{}: answers refused packets: {deny}", limit.name)?;
        }
    }
    if let Some(rates) = policy.answers_in_use() {
        writeln!(out, "answers: {rates}")?;
    }
    Ok(())
}

/// Warns on stderr of limits that answer sources which may be forged.
pub(super) fn warn(policy: &Policy) {
    for warning in policy.limits.iter().filter_map(backscatter) {
        output::warn(&warning);
    }
    if policy.answers.is_some() && policy.answers_in_use().is_none() {
        let warning = "nothing uses the section `answers`: no limit that enforces has a `deny` \
                       that answers";
        output::warn(&warning);
    }
}

/// Warns of a limit that sends answers to a forged source. Truncated DNS answers are excepted: they are no
/// longer than the query.
fn backscatter(limit: &Limit) -> Option<String> {
    let deny = limit.answers().filter(|_| limit.is_first_part())?;
    let answer = [Answer::Reset, Answer::Prohibited];
    let answer = answer
        .into_iter()
        .find(|answer| reaches_strangers(limit, &deny, *answer))?;
    let (name, answer) = (configured_name(&limit.name), answer.name());
    let why = ForgeryReason::of(&limit.matching).why();
    Some(format!(
        "limit {name} sends '{answer}' to the named source, also if that is forged \
         ({why}), up to the rates of `answers`; `deny: {{unknown: drop, retried: drop, else: \
         {answer}}}` answers only sources that are known"
    ))
}

/// Returns whether a hardly known source gets that answer.
fn reaches_strangers(limit: &Limit, deny: &Deny, answer: Answer) -> bool {
    let counted = &limit.matching.standing;
    [Standing::Unknown, Standing::Retried]
        .into_iter()
        .filter(|standing| counted.is_empty() || counted.contains(standing))
        .any(|standing| deny.to(standing) == answer)
}

#[cfg(test)]
mod tests {
    use limiter_policy::config;

    use super::*;

    fn warnings(deny: &str) -> Vec<String> {
        let text = format!(
            "limits: {{Own: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, {deny}}}}}"
        );
        let policy = config::parse(&text, "test").unwrap().policy;
        policy.limits.iter().filter_map(backscatter).collect()
    }

    #[test]
    fn what_is_answered() {
        let shown = |deny: &str| {
            let text = format!(
                "limits: {{Own: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, {deny}}}}}"
            );
            let mut shown = Vec::new();
            print(&mut shown, &config::parse(&text, "test").unwrap().policy).unwrap();
            String::from_utf8(shown).unwrap()
        };
        assert_eq!(shown("deny: drop"), "");
        assert_eq!(shown("deny: reset, mode: observe"), "");
        assert_eq!(
            shown("deny: {unknown: truncate, else: drop}, slip: 2"),
            "Own: answers refused packets: {unknown: truncate, else: drop}, slip: 2\n\
             answers: {per-prefix: {burst: 100, count: 100, period: 1s}, total: {burst: \
             100000, count: 1000000, period: 1s}}\n"
        );
    }

    #[test]
    fn what_forgers_can_have_sent() {
        for safe in [
            "deny: drop",
            "deny: truncate",
            "deny: reset, mode: observe",
            "deny: {unknown: truncate, retried: drop, else: reset}",
            "deny: prohibited, match: {standing: [proven, fresh]}",
        ] {
            assert_eq!(warnings(safe), Vec::<String>::new(), "{safe}");
        }
        for (deny, named) in [
            ("deny: reset", "sends 'reset'"),
            ("deny: prohibited", "sends 'prohibited'"),
            ("deny: {unknown: drop, else: reset}", "sends 'reset'"),
        ] {
            let [warning] = &warnings(deny)[..] else {
                panic!("{deny}");
            };
            assert!(warning.contains(named), "{warning}");
        }
    }
}
