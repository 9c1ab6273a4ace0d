//! The daemon of the demonstration, and what its command line answers.

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use testbed::{Limiter, Namespace, SERVER_INTERFACE};

const CONFIGURATION: &str = include_str!("../../../configs/limiter.yaml");

/// The running daemon.
#[derive(Debug)]
pub(super) struct Daemon(Limiter);

impl Daemon {
    /// Starts the daemon on the server's interface, in native mode. In the namespace the
    /// metrics port of the configuration is free: it has its own.
    pub(super) fn start(limiter: &Path, namespace: &Namespace) -> Result<Self> {
        let interface = ["-i", SERVER_INTERFACE, "--mode", "native"];
        let arguments = [&interface[..], &["--log-format", "human"]].concat();
        Limiter::start(limiter, namespace, CONFIGURATION, &arguments).map(Self)
    }

    /// Fails, with what the daemon said, if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        self.0.check()
    }

    /// What `limiter status` says, for people.
    pub(super) fn status(&self) -> Result<String> {
        self.0.show(&["status"])
    }

    /// What `limiter explain` says of an address.
    pub(super) fn explain(&self, address: IpAddr) -> Result<Vec<Budget>> {
        let explanation = self.0.explain(&address.to_string())?;
        let explanation: Explanation = serde_json::from_value(explanation)
            .with_context(|| format!("cannot read what explain says of {address}"))?;
        Ok(explanation.limits)
    }

    /// Ends the daemon as an operator would, and fails if that does not go well.
    pub(super) fn stop(self) -> Result<()> {
        let status = self.0.stop()?;
        ensure!(
            status.success(),
            "the daemon ended badly on SIGTERM: {status}"
        );
        Ok(())
    }
}

#[derive(Deserialize)]
struct Explanation {
    limits: Vec<Budget>,
}

/// One limit that applies to an address, and how its bucket is doing.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Budget {
    pub(super) limit: String,
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_ns: u64,
    pub(super) remaining: u64,
    pub(super) retry_in_ns: u64,
}
