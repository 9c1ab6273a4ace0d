//! The rules, the dashboard and the mixin of `dist/monitoring/`, checked by promtool and Jsonnet.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{program, succeed};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/monitoring")
}

/// Collects all strings with this key.
fn collect<'v>(value: &'v Value, key: &str, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.get(key).and_then(Value::as_str));
            fields.values().for_each(|value| collect(value, key, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, key, found)),
        _ => {}
    }
}

#[test]
fn promtool_takes_the_rules_and_each_alert_goes_off() -> Result<()> {
    for task in [
        ["check", "rules", "rules.yaml"],
        ["test", "rules", "rules-test.yaml"],
    ] {
        succeed(
            program::local("promtool")?
                .args(task)
                .current_dir(directory()),
        )?;
    }
    Ok(())
}

#[test]
fn promtool_takes_the_dashboard_s_queries() -> Result<()> {
    let dashboard = fs::read_to_string(directory().join("dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&dashboard)?;
    let mut queries = Vec::new();
    collect(&dashboard, "expr", &mut queries);
    ensure!(queries.len() > 15, "{} queries", queries.len());
    let rules = queries.iter().enumerate().map(|(number, query)| {
        // Grafana substitutes a time here.
        let query = query
            .replace("$__rate_interval", "5m")
            .replace("$__interval", "1m");
        json!({"record": format!("query{number}"), "expr": query})
    });
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let file = tempfile::NamedTempFile::new()?;
    fs::write(&file, rules.to_string())?;
    succeed(
        program::local("promtool")?
            .args(["check", "rules"])
            .arg(file.path()),
    )?;
    Ok(())
}

#[test]
fn the_mixin_selects_what_its_user_says() -> Result<()> {
    let mixin = "(import 'mixin.libsonnet') + {_config+:: {
        limiterSelector: 'job=\"edge\",site=~\"a|b\"', limiterRunbook: 'https://runbooks.example/limiter'}}";
    let render = |part: &str| {
        let mut jsonnet = program::local("jsonnet")?;
        jsonnet.args(["--exec", &format!("({mixin}).{part}")]);
        let text = succeed(jsonnet.current_dir(directory()))?;
        serde_json::from_str::<Value>(&text).context("no JSON")
    };
    let alerts = render("prometheusAlerts")?;
    let mut queries = Vec::new();
    collect(&alerts, "expr", &mut queries);
    let mut runbooks = Vec::new();
    collect(&alerts, "runbook_url", &mut runbooks);
    ensure!(
        queries.len() == runbooks.len() && queries.len() > 10,
        "{alerts:#}"
    );
    let there = "https://runbooks.example/limiter#limiter";
    ensure!(
        runbooks.iter().all(|url| url.starts_with(there)),
        "{runbooks:?}"
    );
    let rules = render("prometheusRules")?;
    collect(&rules, "expr", &mut queries);
    let dashboards = render("grafanaDashboards")?;
    collect(&dashboards["limiter.json"], "expr", &mut queries);
    for query in queries {
        ensure!(!query.contains("job=\"limiter\""), "{query}");
    }
    ensure!(rules.to_string().contains("site=~"), "{rules:#}");
    ensure!(dashboards.to_string().contains("site=~"), "{dashboards:#}");
    Ok(())
}
