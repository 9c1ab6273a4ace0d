//! The object as other tools see it.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use limiter_datapath::kernel::OBJECT;

/// Loads, pins, shows and removes it with bpftool (libbpf), in its own mount namespace, so that the
/// machine's BPF filesystem is untouched.
#[test]
fn loads_with_bpftool() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let object = directory.path().join("limiter.o");
    fs::write(&object, OBJECT)?;
    let mount = directory.path().join("bpf");
    fs::create_dir(&mount)?;
    let script = r#"
        set -e
        mount -t bpf none "$2"
        bpftool prog load "$1" "$2/limiter"
        bpftool --json prog show pinned "$2/limiter"
    "#;
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([&object, &mount])
        .output()
        .context("cannot run unshare")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(shown["name"], "limiter");
    assert_eq!(shown["type"], "xdp");
    Ok(())
}

/// Every kernel's verifier must finish with the largest policy.
#[test]
fn the_largest_policy_is_within_the_budget() -> Result<()> {
    check(budget::Object::Plain)
}

#[test]
fn with_log_statements_the_largest_policy_is_within_the_budget() -> Result<()> {
    check(budget::Object::WithLog)
}

fn check(object: budget::Object) -> Result<()> {
    for cost in budget::measure(object)? {
        let verified = cost.verifications.iter();
        let verified = verified.map(|one| one.verified_instructions).max();
        // For `--show-output`, such as on another kernel.
        println!(
            "{} {}: {} verified instructions at most",
            cost.object,
            cost.program,
            verified.unwrap_or_default()
        );
        let excesses = cost.excesses();
        assert!(excesses.is_empty(), "{excesses:?}, of {cost:#?}");
    }
    Ok(())
}
