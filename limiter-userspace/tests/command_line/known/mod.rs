//! `limiter trust`, `untrust` and `trusted`, as users see them.

mod adopted;
mod bans;
mod changed;
mod kept;
mod refused;
mod stream;
mod unseen;

use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use testbed::{Limiter, Pair, SERVER_INTERFACE};

use crate::{BINARY, pair};

/// These tests never reach the limit's reserve. Only operators and the list prove sources.
const CONFIGURATION: &str = "\
lists: [{name: office, cidr: 10.77.9.0/24}]
standing: {capacity: 4096, proven: office, proven-by: list}
limits: {All: {id: total, cost: packets, burst: 9000, count: 1, period: 1h, reserve: {unknown: 50%}}}
";

/// Starts a limiter that neither pins nor has a state file.
fn start(configuration: &str) -> Result<(Pair, Limiter)> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, configuration, &arguments)?;
    Ok((pair, limiter))
}

/// Returns an address's standing and the reason for it. `limiter trusted` and `limiter explain` must agree.
fn standing(limiter: &Limiter, address: &str) -> Result<(String, String)> {
    let known = limiter.ask(&json!({"known-source": {"address": address}}))?;
    let explained = &limiter.explain(address)?["standing"];
    let word = |reported: &Value, field: &str| {
        let word = reported[field].as_str().map(ToOwned::to_owned);
        word.with_context(|| format!("no {field} in {reported}"))
    };
    let by_known = (word(&known, "standing")?, word(&known, "why")?);
    let by_explain = (word(explained, "standing")?, word(explained, "why")?);
    assert_eq!(by_known, by_explain, "{address}");
    Ok(by_known)
}

fn is_trusted(limiter: &Limiter, address: &str) -> Result<bool> {
    Ok(standing(limiter, address)? == ("proven".to_owned(), "trusted".to_owned()))
}

/// Returns how many sources are proven.
fn proven(json: &str) -> Result<u64> {
    let list: Value = serde_json::from_str(json)?;
    list["standings"]["proven"].as_u64().context("a number")
}
