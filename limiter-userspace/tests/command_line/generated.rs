//! Files generated from the command line's definition.

use std::{
    fs,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::CommandFactory as _;
use limiter_userspace::cli::{Cli, manual};

use crate::{BINARY, succeed, text};

fn subcommands() -> Vec<clap::Command> {
    Cli::command().get_subcommands().cloned().collect()
}

#[test]
fn completions_know_every_subcommand() -> Result<()> {
    for shell in ["bash", "zsh", "fish"] {
        let output = succeed(Command::new(BINARY).args(["completions", shell]))?;
        let script = text(&output.stdout)?;
        for subcommand in subcommands() {
            let name = subcommand.get_name();
            ensure!(script.contains(name), "{shell} does not complete {name}");
        }
        let options = subcommands().into_iter().flat_map(|subcommand| {
            let options = subcommand.get_arguments().cloned();
            options.collect::<Vec<_>>()
        });
        let (mut hidden, mut shown) = (0, 0);
        for option in options {
            let Some(name) = option.get_long() else {
                continue;
            };
            let is_hidden = option.is_hide_set();
            ensure!(script.contains(name) != is_hidden, "{shell}: {name}");
            hidden += usize::from(is_hidden);
            shown += usize::from(!is_hidden);
        }
        ensure!(hidden > 0 && shown > 50, "{hidden} hidden, {shown} shown");
    }
    Ok(())
}

#[test]
fn bash_completes() -> Result<()> {
    let output = succeed(Command::new("bash").args([
        "-euc",
        r#"source <("$0" completions bash)
        COMP_WORDS=(limiter exp) COMP_CWORD=1
        _limiter limiter exp limiter
        echo "${COMPREPLY[@]}""#,
        BINARY,
    ]))?;
    assert_eq!(text(&output.stdout)?, "explain\n");
    Ok(())
}

/// A reader that closes the pipe early is no error.
#[test]
fn completions_into_a_closed_pipe() -> Result<()> {
    let mut child = Command::new(BINARY)
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    ensure!(output.status.success() && output.stderr.is_empty());
    Ok(())
}

#[test]
fn every_subcommand_has_a_manual_page() -> Result<()> {
    let directory = tempfile::tempdir()?;
    manual::write(directory.path())?;
    let page = |name: &str| {
        let path = directory.path().join(name);
        fs::read_to_string(&path).with_context(|| format!("no {name}"))
    };
    let overview = page("limiter.1")?;
    for subcommand in subcommands() {
        let name = subcommand.get_name();
        ensure!(overview.contains(name), "limiter.1 does not name {name}");
        let text = page(&format!("limiter-{name}.1"))?;
        let arguments = subcommand.get_arguments();
        for argument in arguments.filter(|argument| !argument.is_hide_set()) {
            let Some(long) = argument.get_long() else {
                continue;
            };
            // A dash is escaped in roff.
            let long = long.replace('-', "\\-");
            ensure!(text.contains(&long), "limiter-{name}.1 lacks {long}");
        }
    }
    assert_eq!(
        fs::read_dir(directory.path())?.count(),
        pages(&Cli::command())
    );
    Ok(())
}

/// Returns the number of manual pages: one for the command and for each subcommand.
fn pages(command: &clap::Command) -> usize {
    1 + command.get_subcommands().map(pages).sum::<usize>()
}
