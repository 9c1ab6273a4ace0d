//! The demonstration's daemon, and queries to it.

use std::{net::IpAddr, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use testbed::{Limiter, Namespace, SERVER_INTERFACE};

const CONFIGURATION: &str = include_str!("../../../configs/limiter.yaml");

#[derive(Debug)]
pub(super) struct Daemon(Limiter);

impl Daemon {
    /// Starts the daemon on the server's interface, in native mode. The namespace has its own
    /// ports, so the default metrics port is free.
    pub(super) fn start(limiter: &Path, namespace: &Namespace) -> Result<Self> {
        let interface = ["-i", SERVER_INTERFACE, "--mode", "native"];
        let arguments = [&interface[..], &["--log-format", "human"]].concat();
        Limiter::start(limiter, namespace, CONFIGURATION, &arguments).map(Self)
    }

    /// Fails with the daemon's output if it has ended.
    pub(super) fn check(&mut self) -> Result<()> {
        self.0.check()
    }

    pub(super) fn status(&self) -> Result<String> {
        self.0.show(&["status"])
    }

    /// Returns the limits of an address, from `limiter explain`.
    pub(super) fn explain(&self, address: IpAddr) -> Result<Vec<LimitState>> {
        let explanation = self.0.explain(&address.to_string())?;
        let explanation: Explanation = serde_json::from_value(explanation)
            .with_context(|| format!("cannot read the response of `limiter explain {address}`"))?;
        Ok(explanation.limits)
    }

    /// Ends the daemon by SIGTERM, and fails if it exits with an error.
    pub(super) fn stop(self) -> Result<()> {
        let status = self.0.stop()?;
        ensure!(status.success(), "the daemon failed on SIGTERM: {status}");
        Ok(())
    }
}

#[derive(Deserialize)]
struct Explanation {
    limits: Vec<LimitState>,
}

/// A limit that applies to an address, and the state of its bucket.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct LimitState {
    pub(super) limit: String,
    pub(super) burst: u64,
    pub(super) count: u64,
    pub(super) period_ns: u64,
    pub(super) remaining: u64,
    pub(super) retry_in_ns: u64,
}
