//! The page in Chromium: it is accessible on screens of any size, and stays fast.

mod browser;

use std::{net::IpAddr, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use testbed::{CLIENT_INTERFACE, Frame, Limiter, Pair, RawSender, SERVER_INTERFACE};

use self::browser::{Browser, script};
use super::binary;

const PAGE: &str = "http://localhost:9471";

const CONFIGURATION: &str = "\
page: on
metrics: {listen: off}
limits:
  PacketsPerIPAddress: {burst: 2, count: 1, period: 1h}
  All: {id: total, cost: packets, burst: 100000, count: 1, period: 1h, reserve: {unknown: 10%}, ip-rep: main}
  Observed: {id: ipAddress, cost: packets, burst: 1, count: 1, period: 1h, mode: observe}
lists: [{name: bad, cidr: 198.51.100.0/24}]
block: bad
ip-rep: [{name: main, buckets: 3, size: 10}]
";

/// The screen widths of a phone and of a desktop.
const WIDTHS: [(u32, bool); 2] = [(360, true), (1280, false)];

fn start(pair: &Pair) -> Result<Limiter> {
    Limiter::start(
        binary(),
        &pair.server,
        CONFIGURATION,
        &["-i", SERVER_INTERFACE],
    )
}

/// Sends packets from this many sources, five each.
fn send(pair: &Pair, sources: u32) -> Result<()> {
    let destination = "10.77.0.1".parse()?;
    let mut frames = Vec::new();
    for number in 0..sources {
        let source = IpAddr::from((0x0a4e_0000 + number).to_be_bytes());
        let frame = Frame::new(source, destination).udp(1, 2, b"x")?;
        frames.extend(vec![frame; 5]);
    }
    RawSender::new(&pair.client, CLIENT_INTERFACE)?.send_frames(&frames)?;
    Ok(())
}

/// Returns the problems that axe finds on the page.
fn violations(browser: &Browser, axe: &str) -> Result<Vec<Value>> {
    browser.run(axe)?;
    let report = browser.run_until_done(
        "axe.run().then(({passes, violations}) => done([passes.length, violations.map(
            ({id, help, nodes}) => [id, help, nodes.map((node) => node.html)])]))",
    )?;
    let passes = report[0].as_u64().context("a number")?;
    ensure!(passes > 10, "axe checked only {passes} rules");
    Ok(report[1].as_array().context("a list")?.clone())
}

#[test]
fn everybody_can_use_the_page() -> Result<()> {
    let pair = Pair::new(&["10.77.0.2/24".parse()?], &["10.77.0.1/24".parse()?])?;
    let limiter = start(&pair)?;
    send(&pair, 150)?;
    let evil = "<script>document.title = 'owned'</script>";
    limiter.show(&["ban", "192.0.2.7", "--for", "1h", "--reason", evil])?;
    let axe = script("axe.min.js")?;
    let browser = Browser::start(&pair.server)?;
    for (width, is_phone) in WIDTHS {
        for scheme in ["light", "dark"] {
            browser.resize(width, is_phone)?;
            browser.prefer(scheme)?;
            for path in ["/", "/offenders", "/bans", "/explain?address=10.78.0.1"] {
                let which = format!("{path}, {width} wide, {scheme}");
                browser.go(&format!("{PAGE}{path}"))?;
                if path == "/" {
                    assert_moves(&browser)?;
                }
                let found = violations(&browser, &axe)?;
                ensure!(found.is_empty(), "{which}: {found:#?}");
                let room =
                    "const page = document.documentElement; return page.scrollWidth - innerWidth";
                let beyond = browser.run(room)?.as_i64().context("a width")?;
                ensure!(beyond <= 0, "{which}: {beyond} pixels too wide");
                let title = browser.run("return document.title")?;
                ensure!(
                    title
                        .as_str()
                        .is_some_and(|title| title.ends_with(" – limiter"))
                );
            }
        }
    }
    // The content security policy has blocked nothing, and nothing failed.
    let warnings = browser.warnings()?;
    ensure!(warnings.is_empty(), "{warnings:#?}");
    // Counter-check: axe finds a problem after this change.
    browser.run("document.querySelector('label').remove()")?;
    ensure!(!violations(&browser, &axe)?.is_empty());
    limiter.stop()?;
    Ok(())
}

/// Fails unless the plot is drawn and the numbers are updated.
fn assert_moves(browser: &Browser) -> Result<()> {
    for _ in 0..100 {
        let is_drawn = "return document.querySelector('#chart canvas') !== null &&
            document.getElementById('now').textContent.endsWith('dropped per second')";
        if browser.run(is_drawn)? == true {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(100));
    }
    let shown = browser.run("return document.getElementById('traffic').textContent")?;
    anyhow::bail!("nothing moves: {shown}")
}

#[test]
fn the_tables_need_no_script() -> Result<()> {
    let pair = Pair::new(&["10.77.0.2/24".parse()?], &["10.77.0.1/24".parse()?])?;
    let limiter = start(&pair)?;
    send(&pair, 20)?;
    let browser = Browser::start(&pair.server)?;
    browser.run_scripts(false)?;
    browser.go(PAGE)?;
    let shown = browser.run(
        "return [document.querySelectorAll('#offenders tbody tr').length,
            document.querySelector('noscript meta').getAttribute('content'),
            document.getElementById('plot').hidden]",
    )?;
    ensure!(shown == serde_json::json!([20, "10", true]), "{shown}");
    limiter.stop()?;
    Ok(())
}

#[test]
fn ten_thousand_offenders_make_no_long_page() -> Result<()> {
    const SOURCES: u32 = 10_000;
    let pair = Pair::new(&["10.77.0.2/24".parse()?], &["10.77.0.1/24".parse()?])?;
    let limiter = start(&pair)?;
    send(&pair, SOURCES)?;
    let remembered = limiter.offenders()?["remembered"]
        .as_u64()
        .context("a number")?;
    ensure!(
        remembered >= u64::from(SOURCES),
        "{remembered} are remembered"
    );
    let browser = Browser::start(&pair.server)?;
    for path in ["/", "/offenders", "/offenders?from=900"] {
        browser.go(&format!("{PAGE}{path}"))?;
        let reported = browser.run(
            "const [load] = performance.getEntriesByType('navigation');
             return [document.querySelectorAll('tr').length, load.decodedBodySize]",
        )?;
        println!("{path}: rows and bytes: {reported}");
        let number = |index: usize| reported[index].as_f64().context("a number");
        ensure!(number(0)? <= 200.0, "{path}: {reported}");
        ensure!(number(1)? < 200_000.0, "{path}: {reported}");
    }
    limiter.stop()?;
    Ok(())
}
