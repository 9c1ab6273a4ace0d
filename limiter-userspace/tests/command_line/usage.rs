//! Wrong usage and invalid configurations.

use std::{
    fmt::Write as _,
    fs,
    net::Ipv4Addr,
    process::{Command, Stdio},
};

use anyhow::Result;
use testbed::{Namespace, SERVER_INTERFACE};

use crate::{BINARY, Scene, assert_fails, assert_nothing_left, pair, text};

#[test]
fn wrong_usage_is_exit_code_2() -> Result<()> {
    let rows: [&[&str]; 23] = [
        &[],
        &["frobnicate"],
        &["run", "-c", "x", "y"],
        &["check", "-c", "x", "y"],
        &["explain", "192.0.2.0/24"],
        &["run", "-c", "x", "--mode", "quick"],
        &["run", "-c", "x", "--metrics", "9470"],
        &["run", "-c", "x", "--log", "loud"],
        &["run", "-c", "x", "--log-format", "xml"],
        &["status", "--watch", "0"],
        &["status", "--watch", "often"],
        &["top", "--interval", "0"],
        &["top", "--count", "3"],
        &["completions", "tcsh"],
        &["explain", "not-an-address"],
        &["trust"],
        &["trust", "192.0.2.1/33"],
        &["trust", "192.0.2.1", "--for", "1s"],
        &["trust", "192.0.2.1", "--stdin"],
        &["untrust"],
        &["trusted", "192.0.2.0/24"],
        &["trusted", "--limit", "100001"],
        &["trusted", "192.0.2.1", "--limit", "3"],
    ];
    for arguments in rows {
        let output = Command::new(BINARY).args(arguments).output()?;
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(text(&output.stderr)?.contains("--help"), "{arguments:?}");
    }
    Ok(())
}

/// The configuration comes from an option, an argument, the environment or standard input.
#[test]
fn where_the_configuration_is() -> Result<()> {
    const RIGHT: &str = "limits: {PacketsPerIPAddress: {rate: 10/s}}\n";
    let scene = Scene::new()?;
    let path = scene.path("own.yaml");
    fs::write(&path, RIGHT)?;
    let missing = scene.path("missing.yaml");
    let check = || Command::new(BINARY);
    let path = path.as_os_str();
    let succeeds = |command: &mut Command| -> Result<()> {
        let output = command.stdin(Stdio::null()).output()?;
        assert!(output.status.success(), "{}", text(&output.stderr)?);
        assert!(text(&output.stdout)?.contains("PacketsPerIPAddress"));
        Ok(())
    };
    succeeds(check().arg("check").arg(path))?;
    succeeds(check().args(["check", "-c"]).arg(path))?;
    succeeds(check().arg("check").env("LIMITER_CONFIG", path))?;
    // The command line takes precedence.
    succeeds(
        check()
            .args(["check", "-c"])
            .arg(path)
            .env("LIMITER_CONFIG", &missing),
    )?;
    succeeds(
        check()
            .arg("check")
            .arg(path)
            .env("LIMITER_CONFIG", &missing),
    )?;
    let reported = "…missing.yaml: cannot be read: No such file or directory (os error 2)";
    assert_fails(
        check().arg("check").env("LIMITER_CONFIG", &missing),
        &[reported],
    )?;
    for arguments in [&["check", "-"][..], &["check", "-c", "-"]] {
        let mut command = check();
        command.args(arguments).stdin(fs::File::open(path)?);
        assert!(command.output()?.status.success(), "{arguments:?}");
    }
    for command in ["check", "run", "replay"] {
        let help = check()
            .args([command, "--help"])
            .env("LIMITER_CONFIG", "")
            .output()?;
        let help = text(&help.stdout)?;
        assert!(help.contains("/etc/limiter/limiter.yaml"), "{help}");
    }
    Ok(())
}

#[test]
fn where_the_socket_is() -> Result<()> {
    let mut status = Command::new(BINARY);
    status.args(["status", "--pin", "/nonexistent/pins"]);
    status.env("LIMITER_SOCKET", "/nonexistent/socket");
    assert_fails(
        &mut status,
        &["no limiter is running (no response at /nonexistent/socket): …"],
    )
}

#[test]
fn an_interface_is_named_once() -> Result<()> {
    let scene = Scene::new()?;
    let path = scene.path("own.yaml");
    fs::write(&path, "limits: {PacketsPerIPAddress: {rate: 10/s}}\n")?;
    let namespace = Namespace::new()?;
    let mut run = namespace.command(BINARY);
    run.args(["run", "--log-format", "human", "-i", "lo", "-i", "lo", "-c"]);
    let reported = "`-i lo` is given twice: name each interface once";
    assert_fails(run.arg(&path), &[reported])
}

#[test]
fn invalid_configurations() -> Result<()> {
    let scene = Scene::new()?;
    let large = fs::File::create(scene.path("large"))?;
    large.set_len(100 << 20)?;
    fs::write(scene.path("empty"), "")?;
    fs::write(scene.path("binary"), b"\x7fELF\0\0\xff\xfe")?;
    let namespace = Namespace::new()?;
    for (name, reported) in [
        (".", "…: is a directory, not a file"),
        ("missing", "…missing: …"),
        ("empty", "…empty: …"),
        ("binary", "…binary…"),
        ("large", "…large: …"),
    ] {
        let path = scene.path(name);
        assert_fails(Command::new(BINARY).arg("check").arg(&path), &[reported])?;
        let mut run = namespace.command(BINARY);
        run.args(["run", "--log-format", "human", "-i", "lo", "-c"])
            .arg(&path);
        assert_fails(&mut run, &[reported])?;
    }
    Ok(())
}

#[test]
fn all_errors_of_a_file_at_once() -> Result<()> {
    let scene = Scene::new()?;
    let path = scene.path("bad.yaml");
    fs::write(
        &path,
        "limits:\n  PacketsPerIPAdress: {burst: 1, count: 1, period: 1s}\n  \
         BytesPerIPAddress: {burst: 100, count: 0, period: 1s}\n",
    )?;
    let reported = [
        "…bad.yaml:2:3: unknown limit 'PacketsPerIPAdress', did you mean 'PacketsPerIPAddress'? …",
        "…bad.yaml:3:30: invalid burst '100', …",
        "…bad.yaml:3:42: invalid count '0', must be > 0: to refuse everybody, use 'block'",
    ];
    assert_fails(Command::new(BINARY).arg("check").arg(&path), &reported)?;
    let mut run = Command::new(BINARY);
    run.args(["run", "--log-format", "human", "-i", "no-such-interface"])
        .arg("-c")
        .arg(&path);
    assert_fails(&mut run, &reported)
}

/// `check` refuses the same configurations as `run`, in the same words.
#[test]
fn more_rates_than_buckets_can_tell_apart() -> Result<()> {
    const ONE_TOO_MANY: u32 = (1 << 15) + 1;
    let (scene, pair) = (Scene::new()?, pair()?);
    let path = scene.path("limiter.yaml");
    let mut text = "overrides:\n".to_owned();
    for number in 0..ONE_TOO_MANY {
        // No count divides the period, and no two counts have the same tick.
        let count = 600_000_001 + 2 * number;
        let id = Ipv4Addr::from_bits(0x0a00_0000 + number);
        writeln!(text, "  PacketsPerIPAddress:{id}: {{rate: {count}/second}}")?;
    }
    fs::write(&path, text)?;
    let reported = [
        "the limits and their overrides have too many different rates: the maximum is 32768, \
         including those of the previous policy; give some the same count and period",
    ];
    assert_fails(Command::new(BINARY).arg("check").arg(&path), &reported)?;
    let mut run = scene.run(&pair.server, &["-i", SERVER_INTERFACE]);
    assert_fails(&mut run, &reported)?;
    assert_nothing_left(&pair, &scene.socket())
}
