//! Whether this host makes the SYN cookies that a policy answers with.

use std::fs;

use limiter_common::answer::Answer;
use limiter_policy::policy::Policy;
use tracing::warn;

/// Where Linux says whether the network namespace makes them: 0 for never.
const SETTING: &str = "/proc/sys/net/ipv4/tcp_syncookies";

/// Warns of limits whose answers this host does not make.
pub(super) fn warn_of(policy: &Policy) {
    // A kernel without SYN cookies has no such file.
    let setting = fs::read_to_string(SETTING).ok();
    if let Some(warning) = warning(policy, setting.as_deref()) {
        warn!("{warning}");
    }
}

fn warning(policy: &Policy, setting: Option<&str>) -> Option<String> {
    let remedy = match setting.map(str::trim_end) {
        None => "this kernel is built without them (CONFIG_SYN_COOKIES)",
        Some("0") => "net.ipv4.tcp_syncookies is 0; `sysctl -w net.ipv4.tcp_syncookies=1` lets it",
        Some(_) => return None,
    };
    let mut limits = policy.limits.iter();
    let limit = limits.find(|limit| {
        limit
            .answers()
            .is_some_and(|deny| deny.sends(Answer::SynCookie))
    })?;
    Some(format!(
        "limit {} answers with SYN cookies, which this host does not make: {remedy}. Until then the \
         SYNs that the limit refuses are dropped",
        limit.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(deny: &str, setting: Option<&str>) -> Option<String> {
        let text = format!(
            "limits: {{Syns: {{id: total, cost: packets, burst: 9, count: 9, period: 1s, deny: {deny}}}}}"
        );
        let config = limiter_policy::config::parse(&text, "test").unwrap();
        warning(&config.policy, setting)
    }

    #[test]
    fn names_the_limit_and_the_remedy() {
        let off = told("syn-cookie", Some("0\n")).unwrap();
        assert!(off.starts_with("limit Syns "), "{off}");
        assert!(off.contains("sysctl -w net.ipv4.tcp_syncookies=1"), "{off}");
        let none = told("{unknown: syn-cookie}", None).unwrap();
        assert!(none.contains("CONFIG_SYN_COOKIES"), "{none}");
    }

    #[test]
    fn is_silent_where_they_are_made_or_not_asked_for() {
        assert_eq!(told("syn-cookie", Some("1\n")), None);
        assert_eq!(told("syn-cookie", Some("2\n")), None);
        assert_eq!(told("reset", Some("0\n")), None);
    }
}
