//! DNS cookies in `limiter check`.

use std::io::Write;

use limiter_common::packet::PROTOCOL_UDP;
use limiter_policy::{
    config::Config,
    policy::{DnsCookies, Limit, Policy},
};

use super::super::output::stderr;

/// Prints which cookies prove sources; prints nothing if none do.
pub(super) fn print(out: &mut impl Write, policy: &Policy) -> anyhow::Result<()> {
    if let Some(cookies) = policy.dns_cookies_in_use() {
        writeln!(out, "dns-cookies: {cookies}")?;
    }
    Ok(())
}

/// Warns on stderr of cookies that prove no source, and of secrets that every user can read.
pub(super) fn warn(config: &Config) {
    let secrets = config.secrets.as_ref();
    let others_can_read = secrets.is_some_and(|secrets| secrets.others_can_read);
    for warning in warnings(&config.policy, others_can_read) {
        // Ignore errors: without stderr, there is nowhere to warn.
        let _ = writeln!(stderr(), "warning: {warning}");
    }
}

fn warnings(policy: &Policy, others_can_read: bool) -> Vec<String> {
    let Some(cookies) = &policy.dns_cookies else {
        return Vec::new();
    };
    let DnsCookies { secret_file, port } = cookies;
    let mut limits = policy.limits.iter();
    let is_used = limits.any(|limit| limit.reserves() && counts_queries(limit, *port));
    let unused = (!is_used).then(|| {
        format!(
            "nothing uses the section `dns-cookies`: no limit that is on and counts UDP packets to \
             port {port} has a `reserve`"
        )
    });
    let file = secret_file.display();
    let open = others_can_read.then(|| {
        format!(
            "every user of this host can read the file '{file}', and with its secrets make DNS \
             cookies for any address: `chmod o= {file}`"
        )
    });
    unused.into_iter().chain(open).collect()
}

/// Returns whether a limit may count UDP packets to a port.
fn counts_queries(limit: &Limit, port: u16) -> bool {
    let (protocols, ports) = (&limit.matching.protocols, &limit.matching.destination_ports);
    (protocols.is_empty() || protocols.contains(&PROTOCOL_UDP))
        && (ports.is_empty() || ports.iter().any(|range| range.contains(&port)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::policy;

    fn warnings_of(limit: &str, others_can_read: bool) -> Vec<String> {
        let mut policy = policy(&format!(
            "limits: {{All: {{id: total, cost: packets, burst: 900, count: 9, period: 1s, {limit}}}}}"
        ));
        policy.dns_cookies = Some(DnsCookies {
            secret_file: "secret".into(),
            port: 53,
        });
        warnings(&policy, others_can_read)
    }

    #[test]
    fn cookies_that_prove_nobody_are_told() {
        const RESERVE: &str = "reserve: {unknown: 50%}";
        for useless in [
            "",
            "reserve: {unknown: 50%}, mode: off",
            "reserve: {unknown: 50%}, match: {protocol: tcp}",
            "reserve: {unknown: 50%}, match: {destination-port: [52, 54]}",
        ] {
            let [warning] = &warnings_of(useless, false)[..] else {
                panic!("{useless}");
            };
            assert!(warning.starts_with("nothing uses"), "{warning}");
        }
        for useful in [
            RESERVE,
            "reserve: {unknown: 50%}, mode: observe",
            "reserve: {unknown: 50%}, match: {protocol: udp, destination-port: '50-60'}",
        ] {
            assert_eq!(warnings_of(useful, false), Vec::<String>::new(), "{useful}");
        }
        let [warning] = &warnings_of(RESERVE, true)[..] else {
            panic!("nothing of the permissions");
        };
        assert!(warning.contains("chmod o= secret"), "{warning}");
    }
}
