//! Checks the picture of the crates.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::pages;

const PREFIX: &str = "limiter-";

/// The crates that each crate needs, without the common prefix.
type Needs = BTreeMap<String, BTreeSet<String>>;

/// Reads the dependencies that packages declare for their own code.
fn declared() -> Result<Needs> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
        "--offline",
    ]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    ensure!(output.status.success(), "cargo metadata failed");
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    let short = |value: &Value| value.as_str()?.strip_prefix(PREFIX).map(ToOwned::to_owned);
    let mut needs = Needs::new();
    for package in packages {
        let directory = package["manifest_path"].as_str().unwrap_or_default();
        let Some(name) = short(&package["name"]).filter(|_| !directory.contains("/dev/")) else {
            continue;
        };
        let dependencies = package["dependencies"].as_array().context("no list")?;
        let own = dependencies.iter().filter(|found| found["kind"].is_null());
        needs.insert(
            name,
            own.filter_map(|found| short(&found["name"])).collect(),
        );
    }
    Ok(needs)
}

/// All crates that `name` reaches by one need or more.
fn reached(needs: &Needs, name: &str) -> BTreeSet<String> {
    let direct = needs.get(name).into_iter().flatten();
    direct
        .flat_map(|next| {
            let mut found = reached(needs, next);
            found.insert(next.clone());
            found
        })
        .collect()
}

/// Leaves out needs that follow from others.
fn reduced(needs: &Needs) -> BTreeSet<(String, String)> {
    let mut arrows = BTreeSet::new();
    for (name, direct) in needs {
        for to in direct {
            let mut others = direct.iter().filter(|other| *other != to);
            if !others.any(|other| reached(needs, other).contains(to)) {
                arrows.insert((name.clone(), to.clone()));
            }
        }
    }
    arrows
}

#[test]
fn the_picture_shows_the_crates_needs() -> Result<()> {
    let page = pages::page("architecture.md");
    let arrows = page
        .lines()
        .filter_map(|line| line.trim().split_once(" --> "));
    let pictured: BTreeSet<_> = arrows
        .map(|(from, to)| (from.to_owned(), to.to_owned()))
        .collect();
    let declared = reduced(&declared()?);
    let missing: Vec<_> = declared.difference(&pictured).collect();
    let outdated: Vec<_> = pictured.difference(&declared).collect();
    ensure!(
        missing.is_empty() && outdated.is_empty(),
        "missing: {missing:?}; no need any more: {outdated:?}"
    );
    Ok(())
}
