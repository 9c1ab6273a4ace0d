//! Sources that operators trust and untrust: `limiter trust` and `untrust`.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{CONFIGURATION, is_trusted, proven, standing, start};
use crate::{assert_fails, pinned::Pinned, succeed, text};

const ENDS: &str = "trust ends with the daemon: it has neither pins (run --pin) nor a state file\n";

#[test]
fn trusted_sources_are_proven_until_forgotten() -> Result<()> {
    let (_pair, limiter) = start(CONFIGURATION)?;
    let reported = limiter.show(&["trusted"])?;
    let begins = "no shortage: no packet is refused for a reserve\n\
                  0 known sources of up to 4 096\n";
    ensure!(reported.starts_with(begins), "{reported}");
    assert_eq!(standing(&limiter, "192.0.2.1")?.1, "nothing");

    let reported = limiter.show(&["trust", "192.0.2.1", "198.51.100.0/24", "2001:db8::7"])?;
    let expected = "192.0.2.1 is proven for 30 days\n\
                    198.51.100.0/24 is proven for 30 days: 256 sources\n\
                    2001:db8::7 is proven for 30 days, and with it all of 2001:db8::/64, its \
                    source\n";
    assert_eq!(reported, format!("{expected}{ENDS}"));
    for address in ["192.0.2.1", "198.51.100.99", "2001:db8::7", "2001:db8::8"] {
        ensure!(is_trusted(&limiter, address)?, "{address}");
    }
    assert_eq!(standing(&limiter, "2001:db8:0:1::7")?.1, "nothing");
    let reported = limiter.show(&["trusted", "2001:db8::9"])?;
    let expected =
        "2001:db8::/64, the source of 2001:db8::9, is proven:\n  an operator trusts it\n";
    ensure!(reported.starts_with(expected), "{reported}");
    ensure!(
        reported.contains("\n  ends in 30 days\n") || reported.contains("\n  ends in 29.9"),
        "{reported}"
    );

    let json = limiter.show(&["trusted", "--limit", "2", "--json"])?;
    assert_eq!(proven(&json)?, 258);
    let list: Value = serde_json::from_str(&json)?;
    assert_eq!(
        (&list["trusted"], &list["capacity"]),
        (&json!(258), &json!(4096))
    );
    assert_eq!(list["newest"].as_array().context("a list")?.len(), 2);
    let reported = limiter.show(&["trusted"])?;
    ensure!(
        reported.contains("258 known sources of up to 4 096, 258 of them trusted"),
        "{reported}"
    );
    ensure!(
        reported.lines().all(|line| line.chars().count() <= 80),
        "{reported}"
    );

    let reported = limiter.show(&["untrust", "192.0.2.1", "192.0.2.2", "2001:db8::1"])?;
    let expected = "192.0.2.1 is forgotten\nnothing was known of 192.0.2.2\n\
                    2001:db8::/64, the source of 2001:db8::1, is forgotten\n";
    assert_eq!(reported, expected);
    assert_eq!(standing(&limiter, "192.0.2.1")?.1, "nothing");
    let reported = limiter.show(&["untrust", "0.0.0.0/0", "--json"])?;
    let expected = json!({"known": [{"prefix": "0.0.0.0/0", "result": {
        "outcome": "untrusted", "sources": 256, "part_of": null, "proven_by": null,
    }}]});
    assert_eq!(serde_json::from_str::<Value>(&reported)?, expected);
    assert_eq!(proven(&limiter.show(&["trusted", "--json"])?)?, 0);

    // A source on a list that proves stays proven.
    assert_eq!(
        standing(&limiter, "10.77.9.1")?,
        ("proven".into(), "list".into())
    );
    let reported = "10.77.9.1 is still proven: it is on the list office, which `standing: {proven: …}` \
                names";
    assert_fails(&mut limiter.command(&["untrust", "10.77.9.1"]), &[reported])
}

/// Without a daemon, commands show and change the pinned sources.
#[test]
fn without_a_daemon() -> Result<()> {
    let mut pinned = Pinned::start(CONFIGURATION)?;
    let reported = succeed(pinned.with_pins("trust").args(["192.0.2.1", "--for", "1d"]))?;
    assert_eq!(text(&reported.stdout)?, "192.0.2.1 is proven for 1 day\n");
    ensure!(pinned.limiter.terminate()?.success());
    succeed(pinned.with_pins("trust").arg("192.0.2.2"))?;
    let reported = succeed(pinned.with_pins("untrust").arg("192.0.2.1"))?;
    assert_eq!(text(&reported.stdout)?, "192.0.2.1 is forgotten\n");
    let reported = succeed(pinned.with_pins("trusted").arg("--json"))?;
    assert_eq!(proven(text(&reported.stdout)?)?, 1);
    pinned.limiter.restart()?;
    ensure!(is_trusted(&pinned.limiter, "192.0.2.2")?);
    Ok(())
}
