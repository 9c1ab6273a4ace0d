//! The results of the service, in a document that people have written.

use std::{fmt::Write as _, fs, path::Path};

use anyhow::{Context as _, Result};
use bench_common::{KNOWN, VICTIMS};

use super::{
    markdown::{machine, table},
    screen, service,
};
use crate::{
    results::Results,
    service::{DEFENCES, FLOODS, Flood, KNOWN_PER_SECOND, NEW_PER_SECOND, Service},
};

/// The document, in the directory of documents.
const DOCUMENT: &str = "benchmarks/service.md";

/// The line in it after which the benchmark writes.
const MARK: &str =
    "<!-- What follows is written by the benchmark: do not edit, run it again. -->\n";

/// Writes the results to the document in a directory, and replaces the earlier ones.
pub(crate) fn write(results: &Results, directory: &Path) -> Result<()> {
    let file = directory.join(DOCUMENT);
    let shown = file.display();
    let before = fs::read_to_string(&file).with_context(|| format!("cannot read {shown}"))?;
    let text = with_results(&before, &chapter(results)?)
        .with_context(|| format!("{shown} has no line {}", MARK.trim_end()))?;
    fs::write(&file, text).with_context(|| format!("cannot write {shown}"))
}

/// Returns a document with other results; `None`: it has no place for them.
fn with_results(document: &str, results: &str) -> Option<String> {
    let (prose, _) = document.split_once(MARK)?;
    Some(format!("{prose}{MARK}\n{}\n", results.trim_end()))
}

/// Returns the machine, the targets, and the results of each defence under each flood.
fn chapter(results: &Results) -> Result<String> {
    let effort = results.effort;
    let mut text = String::new();
    write!(
        text,
        "## Results\n\n\
         This is `cargo xtask bench --measure service`, with {} × {} s for each defence:\n\n{}\n\
         ### Targets\n\n{}\n\
         ### Under each flood\n\n\
         {KNOWN} known clients, who came before, ask {KNOWN_PER_SECOND} questions a second each; \
         {NEW_PER_SECOND} new clients a second ask one each. A client that gets no answer asks \
         again after one second, and after two more. A figure is the median of the rounds; ± is \
         half of their range, in points.\n\n\
         * The first table has the percentages of questions that were answered by each try.\n\
         * If the flood forges the addresses of {VICTIMS} known clients, these have a table of \
         their own: they get what the forger leaves of their budgets, and the others must not \
         suffer.\n\
         * The table of new clients has the percentage of them that were answered within 250 ms, and \
         the time from the first try to the answer, of those that got one. Behind them are the \
         nanoseconds that the kernel's receiving thread took for each packet that reached it; and \
         those that the clients' end took for each of the same packets, where the limiter's program \
         sends answers: that is the wire's work.\n\
         * The last table has the time from a known client's first try to its answer; the \
         percentages of the CPU that the server and the kernel's receiving thread took; the \
         packets that were offered, in thousands a second; and the percentages of them that the \
         ring lost before any defence, and full sockets behind it.\n\n",
        effort.service_rounds,
        effort.service_seconds,
        machine(&results.machine),
        table(&screen::targets(&results.service_targets)),
    )?;
    for under in &results.services {
        writeln!(text, "#### {}\n", under.flood.name)?;
        for grid in service::grids(under) {
            writeln!(text, "{}", table(&grid))?;
        }
        if !under.is_comparable {
            writeln!(text, "{}\n", service::NOT_COMPARABLE)?;
        }
    }
    text += &settings(results)?;
    for (defence, why) in &results.missing_defences {
        writeln!(text, "{defence} did not take part: {why}.\n")?;
    }
    Ok(text)
}

/// Returns the settings of each defence that has some, for either service.
fn settings(results: &Results) -> Result<String> {
    let mut text = "### Settings\n\n".to_owned();
    let measured = |flood: &Flood| results.services.iter().any(|under| under.flood == *flood);
    for service in [Service::Dns, Service::Web] {
        let of_service = |flood: &&Flood| flood.service == service && measured(flood);
        let Some(flood) = FLOODS.iter().find(of_service) else {
            continue;
        };
        for defence in DEFENCES
            .iter()
            .filter(|defence| defence.has_settings(service))
        {
            let (name, settings) = (defence.name, defence.settings(flood));
            writeln!(
                text,
                "**{name}**, {}:\n\n```\n{settings}```\n",
                service.name()
            )?;
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_keeps_its_prose() {
        let document = include_str!("../../../../docs/benchmarks/service.md");
        assert_eq!(document.matches(MARK).count(), 1);
        let first = with_results(document, "first\n\n").unwrap();
        assert!(
            first.starts_with("# ") && first.ends_with("-->\n\nfirst\n"),
            "{first}"
        );
        let second = with_results(&first, "second").unwrap();
        assert_eq!(second, first.replace("\nfirst\n", "\nsecond\n"));
        assert_eq!(with_results("# No place", "first"), None);
    }
}
