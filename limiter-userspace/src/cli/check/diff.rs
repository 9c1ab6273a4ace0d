//! `limiter check --diff`: the differences between a configuration and the running daemon's.

use std::io::Write;

use limiter_policy::{config::Config, policy::diff::Diff};
use limiter_protocol::{PolicyQuery, SettingDiff, StatusQuery, control::settings};
use serde::Serialize;

use crate::cli::{
    args::ReadArgs,
    output::{print_json, stdout},
};

#[derive(Serialize)]
struct Differences {
    /// Changes to the policy by a reload.
    reload: Diff,
    /// Changes to other settings by a reload.
    settings: Vec<SettingDiff>,
    /// Other differences, which need a restart.
    restart: Vec<SettingDiff>,
}

/// Shows the changes that loading `config` would make.
pub(super) fn show(config: &Config, read: &ReadArgs, json: bool) -> anyhow::Result<()> {
    let (policy, status) = (read.query(&PolicyQuery)?, read.query(&StatusQuery)?);
    let differences = Differences {
        reload: Diff::between(&policy, &config.policy),
        settings: settings::reload_diff(config, &status),
        restart: settings::restart_diff(config, &status),
    };
    if json {
        print_json(&differences)?;
    } else {
        print(&differences)?;
    }
    Ok(())
}

fn print(differences: &Differences) -> anyhow::Result<()> {
    let mut out = stdout();
    if !differences.reload.is_empty() {
        write!(out, "{}", differences.reload)?;
    } else if differences.settings.is_empty() {
        writeln!(out, "A reload changes nothing: these limits are in force.")?;
    } else {
        writeln!(out, "A reload changes no limit: these are in force.")?;
    }
    print_settings(&mut out, "It changes", &differences.settings)?;
    print_settings(&mut out, "Only a restart changes", &differences.restart)
}

fn print_settings(
    out: &mut impl Write,
    title: &str,
    settings: &[SettingDiff],
) -> anyhow::Result<()> {
    if !settings.is_empty() {
        writeln!(
            out,
            "\n{title}, unless an option of `limiter run` says otherwise:"
        )?;
        for setting in settings {
            writeln!(out, "         {setting}")?;
        }
    }
    Ok(())
}
