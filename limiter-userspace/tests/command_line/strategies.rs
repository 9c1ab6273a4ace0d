//! Limits of every strategy, in commands and status.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use crate::{BINARY, pair};

/// An address's budget that does not come back within the hour.
const STRATEGIES: [(&str, &str); 4] = [
    ("gcra", "burst: 5, count: 1, period: 1h"),
    ("fixed-window", "count: 5, period: 1h"),
    ("moving-window", "count: 5, period: 1h"),
    ("sliding-window-counter", "count: 5, period: 1h"),
];

const SOURCE: &str = "10.77.0.2";

const HOUR_NS: u64 = 3_600_000_000_000;

fn start(pair: &Pair, store: &str, strategy: &str, budget: &str) -> Result<Limiter> {
    let configuration = format!(
        "buckets: {{store: {store}}}\n\
         limits: {{Web: {{id: ipAddress, cost: packets, strategy: {strategy}, {budget}}}}}\n"
    );
    let arguments = ["-i", SERVER_INTERFACE];
    Limiter::start(Path::new(BINARY), &pair.server, &configuration, &arguments)
}

/// Sends `count` packets from a source; returns how many passed.
fn passed(pair: &Pair, limiter: &Limiter, count: usize) -> Result<u64> {
    let within = || {
        let status = limiter.status()?;
        status["reasons"]["within_limits"]
            .as_u64()
            .context("a count")
    };
    let before = within()?;
    let frame = Frame::new(SOURCE.parse()?, "10.77.0.1".parse()?).udp(1, 2, b"x")?;
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&vec![frame; count])?;
    Ok(within()? - before)
}

fn explained(limiter: &Limiter) -> Result<Value> {
    Ok(limiter.explain(SOURCE)?["limits"][0].take())
}

fn json(limiter: &Limiter, arguments: &[&str]) -> Result<Value> {
    let shown = limiter.show(&[arguments, &["--json"]].concat())?;
    Ok(serde_json::from_str(&shown)?)
}

#[test]
fn what_is_left_is_explained_and_given_back() -> Result<()> {
    for store in ["table", "hash"] {
        for (strategy, budget) in STRATEGIES {
            let pair = pair()?;
            let limiter = start(&pair, store, strategy, budget)?;
            let is_window = strategy != "gcra";
            let what = format!("{strategy} {store}");

            assert_eq!(passed(&pair, &limiter, 3)?, 3, "{what}");
            let limit = explained(&limiter)?;
            assert_eq!(limit["strategy"], strategy);
            assert_eq!(limit["burst"].is_null(), is_window, "{limit}");
            assert_eq!(limit["count"], if is_window { 5 } else { 1 }, "{limit}");
            assert_eq!(limit["remaining"], 2, "{limit}");
            assert_eq!(limit["retry_in_ns"], 0, "{limit}");
            assert_eq!(passed(&pair, &limiter, 8)?, 2, "{what}");
            let limit = explained(&limiter)?;
            assert_eq!(limit["remaining"], 0, "{limit}");
            for name in ["retry_in_ns", "reset_in_ns"] {
                let ns = limit[name].as_u64().context("a number")?;
                ensure!(
                    (HOUR_NS - 60_000_000_000..6 * HOUR_NS).contains(&ns),
                    "{what} {limit}"
                );
            }
            let shown = limiter.show(&["explain", SOURCE])?;
            assert_eq!(shown.contains("burst"), !is_window, "{shown}");
            assert_eq!(shown.contains(strategy), is_window, "{shown}");
            assert_eq!(limiter.status()?["limits"]["Web"]["strategy"], strategy);
            assert_eq!(limiter.show(&["status"])?.contains(strategy), is_window);

            let refund = ["refund", SOURCE, "--limit", "Web", "--cost", "3"];
            let refunded = json(&limiter, &refund)?;
            let of_address = &refunded["of_address"][0];
            assert_eq!(refunded["buckets"], 1, "{what} {refunded}");
            assert_eq!(of_address["remaining_before"], 0, "{what} {refunded}");
            assert_eq!(of_address["remaining"], 3, "{what} {refunded}");
            let full = if is_window { "count" } else { "burst" };
            assert_eq!(of_address[full], 5, "{refunded}");
            assert_eq!(passed(&pair, &limiter, 5)?, 3, "{what}");

            for reset in [
                &["reset", SOURCE][..],
                &["reset", SOURCE, "--limit", "Web"],
                &["reset", "10.77.0.0/29"],
                &["reset", "--all", "--limit", "Web"],
                &["reset", "--all"],
            ] {
                assert_eq!(json(&limiter, reset)?["buckets"], 1, "{what} {reset:?}");
                assert_eq!(json(&limiter, reset)?["buckets"], 0, "{what} {reset:?}");
                assert_eq!(explained(&limiter)?["reset_in_ns"], 0, "{what} {reset:?}");
                assert_eq!(passed(&pair, &limiter, 8)?, 5, "{what} {reset:?}");
            }
        }
    }
    Ok(())
}

/// A new capacity makes new maps while packets arrive; debts move to them.
#[test]
fn reloads_keep_what_was_counted() -> Result<()> {
    let in_table = STRATEGIES.map(|(strategy, budget)| ("table", 1 << 20, strategy, budget));
    let (strategy, budget) = STRATEGIES[2];
    let in_hash = ("hash", 1 << 16, strategy, budget);
    for (store, capacity, strategy, budget) in in_table.into_iter().chain([in_hash]) {
        let pair = pair()?;
        let limiter = start(&pair, store, strategy, budget)?;
        assert_eq!(passed(&pair, &limiter, 3)?, 3);
        let reload = |budget: &str, capacity: u32| -> Result<u64> {
            limiter.configure(&format!(
                "buckets: {{store: {store}, capacity: {capacity}}}\n\
                 limits: {{Web: {{id: ipAddress, cost: packets, strategy: {strategy}, {budget}}}}}\n"
            ))?;
            limiter.show(&["reload"])?;
            explained(&limiter)?["remaining"]
                .as_u64()
                .context("a number")
        };
        let what = format!("{strategy} {store}");
        assert_eq!(reload(budget, capacity)?, 2, "{what}");
        let more = budget.replace('5', "9");
        assert_eq!(reload(&more, capacity)?, 6, "{what}");
        assert_eq!(reload(&more, 1 << 18)?, 6, "{what}");
        assert_eq!(passed(&pair, &limiter, 8)?, 6, "{what}");
    }
    Ok(())
}
