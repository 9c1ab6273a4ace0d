//! Files generated from the command line's definition.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};
use limiter_userspace::cli::Cli;

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
