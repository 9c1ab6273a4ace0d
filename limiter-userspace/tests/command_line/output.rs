//! The JSON of status and explain, field by field.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use testbed::{CLIENT_INTERFACE, Frame, Limiter, RawSender, SERVER_INTERFACE};

use crate::{BINARY, pair};

const CONFIGURATION: &str = "
limits:
  PacketsPerIPAddress: {burst: 4, count: 1, period: 1h}
  PacketsPerIPv4Range: {burst: 10, count: 1, period: 1h}
overrides:
  - PacketsPerIPAddress: {burst: 7, count: 3, period: 2h, ids: [{id: 10.77.0.9, comment: x}]}
";

#[test]
fn status_and_explain() -> Result<()> {
    let pair = pair()?;
    let limiter = Limiter::start(
        Path::new(BINARY),
        &pair.server,
        CONFIGURATION,
        &["-i", SERVER_INTERFACE, "--mode", "native"],
    )?;
    // A source never seen has full buckets.
    assert_eq!(
        limiter.explain("10.77.0.9")?,
        json!({"address": "10.77.0.9", "last_drop": null, "standing": null, "bans": [], "sieves": [], "own_connections": 0, "lists": {"lists": [], "listing": {"excluded": null, "blocked": null}, "limits": []}, "limits": [
            {"limit": "PacketsPerIPAddress", "mode": "enforce", "strategy": "gcra", "match": null, "id": "10.77.0.9", "interface": null, "source": "override 10.77.0.9",
             "burst": 7, "count": 3, "period_ns": 7_200_000_000_000_u64,
             "remaining": 7, "retry_in_ns": 0, "reset_in_ns": 0},
            {"limit": "PacketsPerIPv4Range", "mode": "enforce", "strategy": "gcra", "match": null, "id": "10.77.0.0/24", "interface": null, "source": "default",
             "burst": 10, "count": 1, "period_ns": 3_600_000_000_000_u64,
             "remaining": 10, "retry_in_ns": 0, "reset_in_ns": 0},
        ]})
    );
    assert_eq!(
        limiter.explain("2001:db8::1")?["limits"][0]["id"],
        "2001:db8::1"
    );

    let frame = Frame::new("10.77.0.2".parse()?, "10.77.0.1".parse()?).udp(1, 2, &[0; 58])?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; 6])?;

    let explained = limiter.explain("10.77.0.2")?;
    let (address, range) = (&explained["limits"][0], &explained["limits"][1]);
    assert_eq!(address["remaining"], 0);
    assert_eq!(range["remaining"], 6, "denied packets charge nothing");
    let hours = |value: &Value| value.as_f64().map(|ns| ns / 3.6e12);
    let within = |value: Option<f64>, low: f64, high: f64| {
        assert!(
            value.is_some_and(|value| (low..=high).contains(&value)),
            "{value:?}"
        );
    };
    // The test itself may take a minute.
    within(hours(&address["retry_in_ns"]), 0.98, 1.0);
    within(hours(&address["reset_in_ns"]), 3.98, 4.0);
    within(hours(&range["reset_in_ns"]), 3.98, 4.0);
    assert_eq!(range["retry_in_ns"], 0);

    let status = limiter.status()?;
    assert_eq!(status["interfaces"][0]["name"], SERVER_INTERFACE);
    assert_eq!(status["interfaces"][0]["mode"], "native");
    assert_eq!(status["interfaces"][0]["attached"], true);
    assert!(status["interfaces"][0]["since"].is_string());
    let mut policy = status["policy"].clone();
    assert!(policy["loaded_at"].take().is_string());
    assert_eq!(
        policy,
        json!({"generation": 1, "loaded_at": null, "limits": 2, "overrides": 1, "malformed": "drop"})
    );
    assert_eq!(status["pinned"], Value::Null);
    assert_eq!(
        status["daemon"]["reloads"],
        json!({"succeeded": 0, "failed": 0, "last": null, "unconfirmed_for_ns": null})
    );
    assert_eq!(status["reasons"]["within_limits"], 4);
    assert_eq!(status["reasons"]["over_limit"], 2);
    assert_eq!(
        status["limits"]["PacketsPerIPAddress"],
        json!({"mode": "enforce", "strategy": "gcra", "cost": "packets",
               "rate": {"burst": 4, "count": 1, "period_ns": 3_600_000_000_000_u64},
               "passed_packets": 4, "passed_bytes": 400,
               "dropped_packets": 2, "dropped_bytes": 200,
               "would_drop_packets": 0, "would_drop_bytes": 0})
    );
    assert_eq!(
        status["limits"]["PacketsPerIPv4Range"],
        json!({"mode": "enforce", "strategy": "gcra", "cost": "packets",
               "rate": {"burst": 10, "count": 1, "period_ns": 3_600_000_000_000_u64},
               "passed_packets": 4, "passed_bytes": 400,
               "dropped_packets": 0, "dropped_bytes": 0,
               "would_drop_packets": 0, "would_drop_bytes": 0})
    );
    Ok(())
}
