//! Where handshakes cannot be seen.

use std::{fs, os::unix::fs::PermissionsExt as _};

use anyhow::{Result, ensure};
use testbed::{Limiter, SERVER_INTERFACE};

use super::is_vouched;
use crate::{BINARY, pair, pinned::assert_metric};

const CONFIGURATION: &str = "\
limits: {All: {id: total, cost: packets, burst: 9000, count: 1, period: 1h, reserve: {unknown: 50%}}}
";

/// It is said loudly, and all else goes on.
#[test]
fn without_a_cgroup_of_version_2_the_daemon_goes_on() -> Result<()> {
    let (pair, directory) = (pair()?, tempfile::tempdir()?);
    // In a mount namespace of its own.
    let binary = directory.path().join("limiter");
    let script = format!(
        "#!/bin/sh\nexec unshare --mount sh -c \
         'umount --lazy --all --types cgroup2; exec {BINARY} \"$@\"' limiter \"$@\"\n"
    );
    fs::write(&binary, script)?;
    fs::set_permissions(&binary, fs::Permissions::from_mode(0o755))?;
    let arguments = ["-i", SERVER_INTERFACE, "--log-format", "human"];
    let limiter = Limiter::start(&binary, &pair.server, CONFIGURATION, &arguments)?;
    let told = "there is no root cgroup of version 2: mount one";
    let log = limiter.log()?;
    ensure!(
        log.contains(&format!("handshakes prove nobody: {told}")),
        "{log}"
    );
    for command in ["status", "known"] {
        let shown = limiter.show(&[command])?;
        ensure!(
            shown.contains(&format!("HANDSHAKES PROVE NOBODY: {told}")),
            "{shown}"
        );
    }
    assert_metric(&pair.server, "limiter_handshakes_noted 0")?;
    limiter.show(&["know", "192.0.2.1"])?;
    ensure!(is_vouched(&limiter, "192.0.2.1")?);
    Ok(())
}
