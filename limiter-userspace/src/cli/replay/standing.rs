//! Known sources in a replay, and the traffic of each standing.

use std::{fs, io::Write, path::Path};

use anyhow::{anyhow, bail};
use limiter_common::standing::Standing;
use limiter_offline::replay::{HandshakeCounts, Summary};
use limiter_policy::{
    lists::{Format, parse},
    policy::{List, Policy},
};

use limiter_report::render::{count, counted, table};

/// The name of the list of assumed known sources; no configuration can use it.
const ASSUMED: &str = "--assume-known";

/// The assumptions of a replay about sources.
#[derive(Clone, Copy)]
pub(super) struct Assumptions {
    /// The number of prefixes assumed to be proven.
    pub(super) known: usize,
}

/// The proofs of known sources, besides their visits and retries.
#[derive(Clone, Copy)]
pub(super) struct ProofCounts {
    pub(super) assumed: Assumptions,
    pub(super) handshakes: HandshakeCounts,
    /// The number of valid DNS cookies; `None`: cookies are not checked.
    pub(super) valid_cookies: Option<u64>,
}

/// Makes a policy treat the sources in a file as proven, as if an operator had trusted them.
pub(super) fn assume(policy: &mut Policy, file: Option<&Path>) -> anyhow::Result<Assumptions> {
    let Some(file) = file else {
        return Ok(Assumptions { known: 0 });
    };
    let Some(mut settings) = policy.standing_in_use() else {
        bail!("{ASSUMED} has no effect: no limit uses standing");
    };
    let named = file.display();
    let bytes = fs::read(file).map_err(|error| anyhow!("cannot read {named}: {error}"))?;
    let content =
        parse(&bytes, Format::Plain).map_err(|error| anyhow!("cannot use {named}: {error}"))?;
    if let Some(bad) = content.first_bad.first() {
        bail!("{named}, line {}: {}", bad.line, bad.message);
    }
    // To trust an address means to trust its source.
    let sources: Vec<_> = (content.prefixes.iter())
        .filter_map(|prefix| {
            let is_long = prefix.addr().is_ipv6() && prefix.prefix_len() > settings.ipv6_prefix;
            let wider = || ipnet::IpNet::new(prefix.addr(), settings.ipv6_prefix);
            if is_long { wider().ok() } else { Some(*prefix) }
        })
        .collect();
    let list = List::new(ASSUMED.to_owned(), &sources);
    let known = list.prefixes.len();
    policy.lists.push(list);
    settings.proven.push(ASSUMED.to_owned());
    policy.standing = Some(settings);
    Ok(Assumptions { known })
}

/// Prints a row for each standing, and the assumptions; prints nothing if no limit uses standing.
pub(super) fn print(
    out: &mut impl Write,
    policy: &Policy,
    summary: &Summary,
    known: ProofCounts,
) -> anyhow::Result<()> {
    if !policy.uses_standing() {
        return Ok(());
    }
    let header = [
        "standing",
        "passed packets",
        "bytes",
        "dropped packets",
        "bytes",
    ];
    let rows = Standing::ALL.iter().zip(summary.standings());
    let rows = rows.map(|(standing, traffic)| {
        [
            standing.name().to_owned(),
            count(traffic.passed.packets),
            count(traffic.passed.bytes),
            count(traffic.dropped.packets),
            count(traffic.dropped.bytes),
        ]
    });
    writeln!(out, "\n{}\n", table(header, [1, 2, 3, 4], rows))?;
    for line in assumptions(known) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// Describes the basis of the standings.
fn assumptions(known: ProofCounts) -> Vec<String> {
    let ProofCounts {
        assumed,
        handshakes,
        valid_cookies,
    } = known;
    let before = match assumed.known {
        0 => "no source was known before".to_owned(),
        known => format!(
            "{} of {ASSUMED} {} known before",
            counted(known, "prefix"),
            if known == 1 { "was" } else { "were" }
        ),
    };
    let HandshakeCounts {
        begun,
        completed,
        assumed,
    } = handshakes;
    let number = usize::try_from(completed).unwrap_or(usize::MAX);
    let cookies = valid_cookies.map(|number| {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        format!(", {}", counted(number, "valid DNS cookie"))
    });
    let mut lines = vec![format!(
        "standing is judged from this capture alone: {before}; {} completed{}",
        counted(number, "handshake"),
        cookies.unwrap_or_default(),
    )];
    if begun > completed {
        lines.push(format!(
            "of the handshakes that clients began, {} prove no source: they were not completed, or not \
             in this capture",
            count(begun - completed),
        ));
    }
    if assumed > 0 {
        lines.push(format!(
            "the capture lacks the servers' replies to {} of the completed ones: an ACK that continues \
             the client's SYN was taken for proof, which a forger could send as well",
            count(assumed),
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use limiter_policy::testing::policy;

    const RESERVING: &str = "standing: {ipv6-prefix: 48}\nlimits: {All: {id: total, cost: packets, \
                             burst: 900, count: 9, period: 1s, reserve: {unknown: 50%}}}";

    #[test]
    fn a_file_of_known_sources() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("known.txt");
        let assume = |text: &str, limits: &str| {
            fs::write(&file, text).unwrap();
            let mut policy = policy(limits);
            let assumed = assume(&mut policy, Some(&file))?;
            anyhow::Ok((policy, assumed.known))
        };
        let (policy, known) = assume("192.0.2.7\n# ours\n2001:db8:1:2::3\n", RESERVING).unwrap();
        assert_eq!(known, 2);
        let standing = policy.standing.unwrap();
        assert_eq!(
            (standing.ipv6_prefix, &*standing.proven),
            (48, &[ASSUMED.to_owned()][..])
        );
        let prefixes: Vec<_> = policy.lists[0]
            .prefixes
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(prefixes, ["192.0.2.7/32", "2001:db8:1::/48"]);

        let fails = |text, limits, expected: &str| {
            let error = assume(text, limits).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        fails("192.0.2.7\nnobody\n", RESERVING, "line 2");
        fails("", RESERVING, "it is empty");
        fails(
            "192.0.2.7",
            "limits: {PacketsPerIPAddress: {burst: 9, count: 9, period: 1s}}",
            "no limit uses standing",
        );
    }

    #[test]
    fn what_is_assumed_is_said() {
        let counts = |begun, completed, assumed| HandshakeCounts {
            begun,
            completed,
            assumed,
        };
        let known_by = |known, handshakes| ProofCounts {
            assumed: Assumptions { known },
            handshakes,
            valid_cookies: None,
        };
        assert_eq!(
            assumptions(known_by(0, counts(3, 3, 0))),
            [
                "standing is judged from this capture alone: no source was known before; 3 handshakes completed"
            ]
        );
        let lines = assumptions(known_by(2, counts(1001, 1, 1)));
        assert_eq!(
            lines[0],
            "standing is judged from this capture alone: 2 prefixes of --assume-known \
             were known before; 1 handshake completed"
        );
        assert!(
            lines[1].starts_with("of the handshakes that clients began, 1 000 prove no source: ")
        );
        assert!(
            lines[2]
                .starts_with("the capture lacks the servers' replies to 1 of the completed ones")
        );
        let with_cookies = ProofCounts {
            valid_cookies: Some(1),
            ..known_by(0, counts(0, 0, 0))
        };
        let [line] = &assumptions(with_cookies)[..] else {
            panic!("more is said");
        };
        assert!(
            line.ends_with("; 0 handshakes completed, 1 valid DNS cookie"),
            "{line}"
        );
    }
}
