//! Every link between the pages leads somewhere.

use std::{collections::BTreeSet, path::Path};

use super::pages::{Page, pages};

/// Returns the text without its code blocks.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns a heading's anchor, as GitHub forms it.
fn anchor(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| anchor(line.trim_start_matches('#')))
        .collect()
}

/// Returns the dead links of a page, with the reason.
fn dead_links(page: &Page, pages: &[Page]) -> Vec<String> {
    let directory = page.path.parent().unwrap_or(Path::new(""));
    let prose = prose(&page.text);
    let targets = prose.split("](").skip(1);
    let targets = targets.filter_map(|rest| Some(rest.split_once(')')?.0));
    let is_dead = |target: &&str| {
        if target.contains("://") {
            return false;
        }
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() {
            page.path.clone()
        } else {
            directory.join(file)
        };
        let Ok(path) = path.canonicalize() else {
            return true;
        };
        let page = pages.iter().find(|page| page.path == path);
        !heading.is_empty() && !page.is_some_and(|page| anchors(&page.text).contains(heading))
    };
    let dead = targets.filter(is_dead);
    dead.map(|target| format!("{}: {target}", page.path.display()))
        .collect()
}

#[test]
fn links_lead_to_pages_and_headings_that_exist() {
    let pages = pages();
    assert!(pages.len() > 8, "{} pages", pages.len());
    let dead: Vec<_> = pages
        .iter()
        .flat_map(|page| dead_links(page, &pages))
        .collect();
    assert!(dead.is_empty(), "dead links: {dead:#?}");
}

#[test]
fn anchors_are_formed_as_github_does() {
    for (heading, expected) in [
        ("Bans from a stream", "bans-from-a-stream"),
        ("`exclude` and `block`", "exclude-and-block"),
        ("Fixed window, 10 per minute", "fixed-window-10-per-minute"),
    ] {
        assert_eq!(anchor(heading), expected);
    }
}
