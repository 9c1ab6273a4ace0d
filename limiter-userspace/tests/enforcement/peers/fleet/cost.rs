//! The CPU time of nodes and of the store.

use std::{
    collections::BTreeMap,
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    configuration,
    sources::full::{LIMITS, fill},
    start, status,
    store::Store,
};

const SOURCES: u32 = 100_000;

/// Measures a node that knows many sources of other nodes, and has no traffic.
#[test]
#[ignore = "takes minutes: it is for measuring"]
fn a_hundred_thousand_known_sources() -> Result<()> {
    let store = Store::start(1)?;
    fill(&store, SOURCES, 0)?;
    let text = configuration(&store, 1, ("a", &["a"]), LIMITS, "");
    let node = start(&store, 1, &text)?;
    crate::wait(|| Ok(status(&node)?["sources"]["received"] == SOURCES))?;
    // Each minute the node compares all entries, and saves its state.
    for _ in 0..4 {
        print(&[("node", node.id()), ("store", store.id()?)], || {
            thread::sleep(Duration::from_secs(20));
            Ok(())
        })?;
    }
    ensure!(node.stop()?.success());
    Ok(())
}

/// Prints the CPU time of processes while `work` runs.
pub(super) fn print(processes: &[(&str, u32)], work: impl FnOnce() -> Result<()>) -> Result<()> {
    let before = processes.iter().map(|(_, process)| threads(*process));
    let before = before.collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    work()?;
    let passed = begun.elapsed();
    println!("in {passed:?}:");
    for ((name, process), before) in processes.iter().zip(before) {
        let mut all = Duration::ZERO;
        for (thread, after) in threads(*process)? {
            let run = after.saturating_sub(before.get(&thread).copied().unwrap_or_default());
            all += run;
            println!("  {name}, {thread}: {:.2} % of a CPU", percent(run, passed));
        }
        println!("  {name}: {:.2} %, {all:?}", percent(all, passed));
    }
    Ok(())
}

/// Returns the CPU time of each thread of a process, by name.
fn threads(process: u32) -> Result<BTreeMap<String, Duration>> {
    let mut threads = BTreeMap::new();
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let task = task?.path();
        let name = fs::read_to_string(task.join("comm"))?.trim().to_owned();
        let run = fs::read_to_string(task.join("schedstat"))?;
        let ns = run.split_whitespace().next().context("no schedstat")?;
        *threads.entry(name).or_default() += Duration::from_nanos(ns.parse()?);
    }
    Ok(threads)
}

fn percent(part: Duration, whole: Duration) -> f64 {
    part.as_secs_f64() * 100.0 / whole.as_secs_f64()
}
