//! `limiter check --diff`: what a configuration has other than the daemon that runs.

use std::{
    io::{self, Write},
    path::Path,
};

use anyhow::bail;
use serde::Serialize;

use super::settings::{self, SettingDiff};
use crate::{
    cli::print_json,
    config::Config,
    control::{
        client::ask,
        protocol::{Answer, Request},
    },
    policy::diff::Diff,
};

#[derive(Serialize)]
struct Differences {
    /// What a reload would change.
    reload: Diff,
    /// What differs too, and needs a restart.
    restart: Vec<SettingDiff>,
}

/// Shows what loading `config` would change of what the daemon at `socket` does.
pub(super) fn show(config: &Config, socket: &Path, json: bool) -> anyhow::Result<()> {
    let (Answer::Policy(policy), Answer::Status(status)) =
        (ask(socket, Request::Policy)?, ask(socket, Request::Status)?)
    else {
        bail!("the daemon answered something else than was asked");
    };
    let differences = Differences {
        reload: Diff::between(&policy, &config.policy),
        restart: settings::differences(config, &status),
    };
    if json {
        print_json(&differences)
    } else {
        print(&differences)
    }
}

fn print(differences: &Differences) -> anyhow::Result<()> {
    let mut out = io::stdout();
    if differences.reload.is_empty() {
        writeln!(out, "A reload changes nothing: these limits are in force.")?;
    } else {
        write!(out, "{}", differences.reload)?;
    }
    if !differences.restart.is_empty() {
        writeln!(
            out,
            "\nOnly a restart changes, unless an option of `limiter run` says otherwise:"
        )?;
        for setting in &differences.restart {
            writeln!(out, "         {setting}")?;
        }
    }
    Ok(())
}
