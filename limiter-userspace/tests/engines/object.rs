//! The object itself, as tools other than ours see it.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use limiter_common::limit::{BUILT_IN, LimitId, MAX_LIMITS};
use limiter_userspace::{
    datapath::{Clocking, Instance, LogLevel, OBJECT, Settings},
    policy::{
        CompiledPolicy, Fragments, Limit, Match, Mode, Override, OverrideId, Policy, Rate, TcpFlags,
    },
};

/// Loads with bpftool (that is, libbpf), pins, shows and forgets; all in a mount namespace
/// of its own, so that the machine's BPF filesystem is not touched.
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
        bpftool prog load "$1" "$2/limiter" type xdp
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

/// The verifier stops at a million instructions, and older ones prune worse than today's: the
/// largest policy must stay far below.
#[test]
fn the_largest_policy_is_cheap_to_verify() -> Result<()> {
    const MOST: u32 = 250_000;
    let rate = Rate {
        burst: 10_000,
        count: 7_777,
        period_ns: 1_000_000_000,
    };
    let limits = (1..).zip(BUILT_IN.iter().cycle()).take(MAX_LIMITS as usize);
    let limits = limits.map(|(id, built_in)| Limit {
        name: format!("Limit{id}"),
        id: LimitId(id),
        overrides: ["10.0.0.0/24", "2001:db8::/48"]
            .iter()
            .filter_map(|id| id.parse().ok())
            .map(|id| Override {
                id: OverrideId::Prefix(id),
                rate,
                comment: None,
            })
            .collect(),
        mode: if id % 2 == 0 {
            Mode::Observe
        } else {
            Mode::Enforce
        },
        matching: Match {
            protocols: vec![6, 17],
            source_ports: vec![1..=9, 20..=29],
            destination_ports: vec![53..=53],
            tcp_flags: Some(TcpFlags { set: 2, clear: 16 }),
            destinations: ["10.0.0.0/24", "2001:db8::/48"]
                .iter()
                .filter_map(|id| id.parse().ok())
                .collect(),
            fragments: Fragments::Count,
        },
        ..Limit::of_built_in(built_in, Some(rate))
    });
    let policy = Policy::from(limits.collect::<Vec<_>>());
    for log in [LogLevel::Off, LogLevel::Verdicts] {
        let settings = Settings {
            bucket_capacity: 1024,
            log,
        };
        let tables = CompiledPolicy::new(&policy)?;
        let mut instance = Instance::load(&tables, 0, settings, Clocking::Kernel, None)?;
        let program = instance
            .ebpf_mut()
            .program("limiter")
            .context("the program")?;
        let verified = program.info()?.verified_instruction_count();
        let verified = verified.context("a kernel that counts (5.16)")?;
        println!("{log:?}: {verified} instructions verified");
        assert!(verified <= MOST, "{log:?}: {verified}");
    }
    Ok(())
}
