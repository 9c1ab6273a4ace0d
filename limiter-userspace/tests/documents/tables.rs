//! The tables of docs/ list exactly the names in the code.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use limiter_common::{
    limit::BUILT_IN,
    reason::{Action, Reason},
};
use limiter_names::NoName;
use limiter_policy::config::{self, FieldTable};

use super::{
    commands::help,
    pages::{names, page, pages, quoted, rows, section},
};

fn sorted<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<_> = names.into_iter().collect();
    names.sort_unstable();
    names
}

/// Returns every Rust file below a directory.
fn sources(directory: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory).expect("sources can be listed") {
        let path = entry.expect("sources can be listed").path();
        if path.is_dir() {
            texts.extend(sources(&path));
        } else {
            texts.push(fs::read_to_string(path).expect("a source can be read"));
        }
    }
    texts
}

#[test]
fn every_reason_is_told_with_its_verdict() {
    let text = page("packets.md");
    let rows = rows(&text);
    let reported = sorted(names(&rows));
    assert_eq!(
        reported,
        sorted(Reason::ALL.iter().map(|reason| reason.name()))
    );
    for reason in Reason::ALL {
        let row = rows.iter().find(|row| row[0].contains(reason.name()));
        let verdict = match [Action::Pass, Action::Drop].map(|action| reason.action(action)) {
            [one, other] if one == other => one.name(),
            _ => "as configured",
        };
        assert_eq!(row.unwrap()[1], verdict, "{}", reason.name());
    }
}

#[test]
fn every_reason_for_no_name_is_told() {
    let text = page("names.md");
    let reported = rows(section(&text, "## Why a flow has no name"));
    let reported: Vec<_> = reported.iter().flat_map(|row| quoted(row[0])).collect();
    assert_eq!(reported, NoName::ALL.map(NoName::name));
}

#[test]
fn every_built_in_limit_is_told() {
    let text = page("configure.md");
    let reported = quoted(section(&text, "### Built-in limits"));
    let reported = sorted(reported.filter(|name| name.contains("Per")));
    assert_eq!(reported, sorted(BUILT_IN.iter().map(|limit| limit.name)));
}

#[test]
fn every_command_is_told() {
    let help = help(&[]);
    let (commands, _) = help.split_once("Options:\n").unwrap();
    let commands = commands.lines().filter(|line| line.starts_with("  "));
    let commands = sorted(commands.filter_map(|line| line.split_whitespace().next()));

    let text = page("operate.md");
    let reported = rows(section(&text, "## The commands"));
    let reported = names(&reported);
    let reported = reported.iter().filter_map(|text| text.split(' ').next());
    assert_eq!(sorted(reported), commands);
}

#[test]
fn every_field_of_the_configuration_is_told() {
    for FieldTable {
        page: document,
        heading,
        rows: fields,
    } in config::field_tables()
    {
        let document = page(document);
        let table = rows(section(&document, heading));
        let reported = table
            .iter()
            .map(|row| (names(std::slice::from_ref(row)), row[1]));
        let fields = fields.into_iter().map(|(name, value)| (vec![name], value));
        assert_eq!(
            reported.collect::<Vec<_>>(),
            fields.collect::<Vec<_>>(),
            "{heading}"
        );
    }
}

/// Strips the endings that the exposition format adds to a metric's name.
fn family(name: &str) -> &str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    name.strip_suffix("_info").unwrap_or(name)
}

/// Returns the metric families that the daemon registers.
fn registered() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = sources(&root.join("../limiter-web/src/metrics"));
    let numbers = root.join("../limiter-report/src/numbers.rs");
    sources.push(fs::read_to_string(numbers).expect("a source can be read"));
    let registered: BTreeSet<_> = sources
        .iter()
        .flat_map(|text| text.split('"').skip(1).step_by(2))
        .filter(|text| text.starts_with("limiter_") || text.starts_with("process_"))
        .map(|name| family(name).to_owned())
        .collect();
    assert!(registered.len() > 30, "{} metrics", registered.len());
    registered
}

/// Prometheus accepts a rule about a metric that does not exist, so this test checks the names.
#[test]
fn rules_and_the_dashboard_use_metrics_that_exist() {
    let registered = registered();
    for file in ["rules.yaml", "rules-test.yaml", "dashboard.json"] {
        let text = fs::read_to_string(monitoring(file)).unwrap();
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
        let names: BTreeSet<_> = words
            .filter(|word| word.starts_with("limiter_") || word.starts_with("process_"))
            .map(family)
            .collect();
        assert!(names.len() > 10, "{file}: {names:?}");
        for name in names {
            assert!(registered.contains(name), "{file}: {name}");
        }
    }
}

fn monitoring(file: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join("../dist/monitoring").join(file)
}

/// Each alert has a severity and links to its section of the page, which says the same, in the same
/// order.
#[test]
fn every_alert_is_told() {
    let rules = fs::read_to_string(monitoring("rules.yaml")).unwrap();
    let alerts = rules.split("      - alert: ").skip(1);
    let alerts = alerts.map(|alert| {
        let name = alert.lines().next().unwrap_or_default();
        let runbook = format!("alerts.md#{}\n", name.to_lowercase());
        assert!(alert.contains(&runbook), "{name}");
        let severity = alert.split_once("labels: {severity: ").unwrap().1;
        let severity = severity.split('}').next().unwrap_or_default();
        (name.to_owned(), severity.to_owned())
    });
    let text = page("alerts.md");
    let sections = text.split("\n## ").skip(1);
    let sections = sections.map(|section| {
        let (name, text) = section.split_once("\n\n").unwrap();
        let severity = text.split('.').next().unwrap_or_default();
        (name.to_owned(), severity.to_lowercase())
    });
    assert_eq!(alerts.collect::<Vec<_>>(), sections.collect::<Vec<_>>());
}

#[test]
fn every_metric_is_told() {
    let registered = registered();
    let text = page("operate.md");
    let table = rows(section(&text, "### Metrics"));
    let reported = names(&table);
    let reported: BTreeSet<_> = reported
        .iter()
        .filter_map(|name| name.split('{').next())
        .collect();
    assert_eq!(
        reported
            .into_iter()
            .map(|name| family(name).to_owned())
            .collect::<BTreeSet<_>>(),
        registered
    );

    // The pages must use the same names.
    for page in pages() {
        if page.path.ends_with("architecture.md") {
            continue;
        }
        let prose: String = page.text.split("```").step_by(2).collect();
        for name in quoted(&prose).filter(|name| name.starts_with("limiter_")) {
            let end = name.find(|c: char| c != '_' && !c.is_ascii_lowercase());
            let name = &name[..end.unwrap_or(name.len())];
            assert!(
                registered.contains(family(name)),
                "{}: {name}",
                page.path.display()
            );
        }
    }
}

#[test]
fn the_configurations_to_start_with_load() {
    let text = page("start.md");
    let blocks = text.split("```yaml\n").skip(1);
    let blocks: Vec<_> = blocks.filter_map(|rest| rest.split("```").next()).collect();
    assert!(!blocks.is_empty());
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("limiter.yaml");
    for block in blocks {
        fs::write(&file, block).unwrap();
        let loaded = config::load(&file, Timestamp::UNIX_EPOCH);
        assert!(loaded.is_ok(), "{block}\n{}", loaded.unwrap_err());
    }
}
