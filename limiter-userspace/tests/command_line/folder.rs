//! Files in the folder beside the configuration: the daemon and every command merge them into it.

use std::{fs, path::Path};

use anyhow::{Result, ensure};
use serde_json::Value;
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{BINARY, assert_fails, pair, succeed, wait_for};

const MAIN: &str = "limits:\n  PacketsPerIPAddress: {burst: 4, count: 1, period: 1h}\n";
const DNS: &str = "\
limits:
  Dns: {id: ipAddress, cost: packets, match: {destination-port: 53}, burst: 5, count: 1, period: 1h}
";

fn limits(limiter: &Limiter) -> Result<Vec<String>> {
    let status = limiter.status()?;
    let limits = status["limits"].as_object().into_iter().flatten();
    Ok(limits.map(|(name, _)| name.clone()).collect())
}

#[test]
fn files_that_come_and_go_are_in_force() -> Result<()> {
    let pair = pair()?;
    let arguments = ["-i", SERVER_INTERFACE, "--metrics", "off"];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, MAIN, &arguments)?;
    assert_eq!(limits(&limiter)?, ["PacketsPerIPAddress"]);
    let main = limiter.configuration();
    let folder = main.with_extension("d");
    let (dns, bad) = (folder.join("10-dns.yaml"), folder.join("20-bad.yaml"));
    fs::create_dir(&folder)?;
    fs::write(folder.join("new"), DNS)?;
    fs::rename(folder.join("new"), &dns)?;
    wait_for(|| Ok(limits(&limiter)? == ["Dns", "PacketsPerIPAddress"]))?;

    // One invalid file prevents the reload, and the error names it.
    fs::write(&bad, "limits: {Dns: {burst: 1, count: 1, period: 1s}}\n")?;
    let expected = format!(
        "{}:1:10: duplicate 'Dns', first at {}:2:3",
        bad.display(),
        dns.display()
    );
    let mut reload = limiter.command(&["reload"]);
    assert_fails(&mut reload, &[&format!("…{expected}…")])?;
    assert_eq!(limits(&limiter)?, ["Dns", "PacketsPerIPAddress"]);
    fs::remove_file(&bad)?;
    succeed(&mut limiter.command(&["reload"]))?;

    // Other commands see the same.
    let mut diff = limiter.command(&["check", "--json", "--diff"]);
    let diff: Value = serde_json::from_slice(&succeed(diff.arg(&main))?.stdout)?;
    ensure!(diff["diff"].to_string().find("Dns").is_none(), "{diff:#}");

    fs::remove_file(&dns)?;
    wait_for(|| Ok(limits(&limiter)? == ["PacketsPerIPAddress"]))?;
    ensure!(limiter.stop()?.success());
    Ok(())
}
