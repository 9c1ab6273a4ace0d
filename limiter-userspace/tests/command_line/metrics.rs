//! Metrics other than packet counts.

use std::{
    fs,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use testbed::{Limiter, SERVER_INTERFACE};

use crate::{
    BINARY, pair,
    pinned::{assert_metric, metrics},
};

/// The configured rates, and the daemon's resources as the kernel reports them.
#[test]
fn metrics_of_the_limits_and_the_process() -> Result<()> {
    let pair = pair()?;
    let limits = "limits:\n  Some: {id: ipAddress, cost: packets, burst: 30, count: 5, period: 2s}\n  \
        None: {id: ipAddress, cost: packets}\n\
        overrides:\n  - None: {burst: 1, count: 1, period: 1s, ids: [192.0.2.1]}\n";
    let arguments = ["-i", SERVER_INTERFACE];
    let limiter = Limiter::start(Path::new(BINARY), &pair.server, limits, &arguments)?;
    assert_metric(&pair.server, r#"limiter_limit_rate{limit="Some"} 2.5"#)?;
    assert_metric(&pair.server, r#"limiter_limit_burst{limit="Some"} 30"#)?;
    let metrics = metrics(&pair.server)?;
    ensure!(!metrics.contains(r#"limiter_limit_rate{limit="None"}"#));
    let value = |name: &str| -> Result<f64> {
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.with_context(|| format!("no {name}"))?.parse()?)
    };
    let process = fs::read_dir(format!("/proc/{}/fd", limiter.id()))?;
    let open = u32::try_from(process.count())?;
    let reported = value("process_open_fds")?;
    ensure!(
        (reported - f64::from(open)).abs() <= 3.0,
        "{reported} descriptors, not {open}"
    );
    ensure!(reported < value("process_max_fds")?);
    let resident = value("process_resident_memory_bytes")?;
    ensure!(resident > 1e6 && resident < value("process_virtual_memory_bytes")?);
    ensure!(value("process_cpu_seconds_total")? > 0.0);
    let started = value("process_start_time_seconds")?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    ensure!((0.0..60.0).contains(&(now - started)), "{started} of {now}");
    Ok(())
}
