//! The metrics in both formats, checked by Prometheus' own tool.

use std::{io::Write as _, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, Pair, SERVER_INTERFACE};

use super::{binary, program, spend, succeed};
use crate::pair;

/// One of everything that has metrics.
const CONFIGURATION: &str = "\
lists: [{name: ours, cidr: [192.0.2.1, '2001:db8::1']}]
never-ban: ours
ip-rep: [{name: busy, buckets: 4, size: 8, pressure: {packets-per-second: 9}}]
limits:
  All: {id: total, cost: packets, count: auto, match: {protocol: udp}, reserve: {unknown: 50%}}
  Own: {id: ipAddress, cost: packets, rate: 1/second; 9/hour, strategy: fixed-window, deny: reset,
    match: {protocol: tcp}, ban: {after: 9, within: 1s, for: 1m}, metrics: {prefix: p, tag: t}}
  Watched: {id: ipAddress, cost: bytes, burst: 2000, count: 2000, period: 1s, mode: observe}
";

const OPEN_METRICS: &str = "Accept: application/openmetrics-text";

/// Returns the media type and the text of the metrics, for a request with these header fields.
fn metrics(pair: &Pair, fields: &[&str]) -> Result<(String, String)> {
    let mut curl = pair.server.command("curl");
    curl.args(["--silent", "--fail", "--noproxy", "*", "--write-out"]);
    curl.arg("%{content_type}\\n");
    for field in fields {
        curl.args(["--header", field]);
    }
    let text = succeed(curl.arg("http://127.0.0.1:9470/metrics"))?;
    let (text, media_type) = text.trim_end().rsplit_once('\n').context("two lines")?;
    Ok((media_type.to_owned(), format!("{text}\n")))
}

#[test]
fn promtool_finds_nothing_wrong() -> Result<()> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE];
    let limiter = Limiter::start(binary(), &pair.server, CONFIGURATION, &arguments)?;
    spend(&pair, |frame| frame.udp(1, 2, b"x"))?;
    spend(&pair, |frame| frame.tcp_ack(1, 80, 1, 1))?;

    let (media_type, text) = metrics(&pair, &["Accept:"])?;
    ensure!(
        media_type == "text/plain; version=0.0.4; charset=utf-8",
        "{media_type}"
    );
    ensure!(!text.contains("# EOF"), "{text}");
    let mut promtool = program::command(&pair.server, "promtool")?;
    promtool.args(["check", "metrics"]).stdin(Stdio::piped());
    promtool.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().context("cannot run promtool")?;
    let mut stdin = child.stdin.take().context("a pipe")?;
    stdin.write_all(text.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "{said}\n{text}");

    // A fixed window of an hour has counted a segment.
    let mut lines = text.lines();
    let in_debt = lines.find_map(|line| line.strip_prefix("limiter_buckets_in_debt "));
    let in_debt: u64 = in_debt.context("no such line")?.parse()?;
    ensure!(in_debt > 0, "{text}");

    let (media_type, text) = metrics(&pair, &[OPEN_METRICS])?;
    ensure!(
        media_type == "application/openmetrics-text; version=1.0.0; charset=utf-8",
        "{media_type}"
    );
    ensure!(text.ends_with("\n# EOF\n"), "{text}");
    ensure!(limiter.stop()?.success());
    Ok(())
}
