//! docs/security.md names an existing test for each claim.

use std::{
    fs,
    path::{Path, PathBuf},
};

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    fs::read_to_string(path).expect("the document")
}

/// Returns the path of a file that the document names.
fn file(path: &str) -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    if path.starts_with("limiter-") {
        package.join("..").join(path)
    } else if path.starts_with("src/") {
        package.join(path)
    } else {
        package.join("tests").join(path)
    }
}

fn has_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    text.match_indices(&head).any(|(at, _)| {
        // Above the function, back to the previous blank line, are only its attributes.
        let item = text[..at].rsplit("\n\n").next().unwrap_or_default();
        let marks = ["#[test]", "#[tokio::test", "proptest!"];
        marks.iter().any(|mark| item.contains(mark))
    })
}

#[test]
fn each_claim_names_tests_that_exist() {
    let document = document();
    let quoted = document.split('`').skip(1).step_by(2);
    let named: Vec<_> = quoted.filter_map(|text| text.split_once(".rs::")).collect();
    assert!(named.len() > 50, "only {} tests are named", named.len());
    let missing: Vec<_> = named
        .iter()
        .filter(|(path, name)| {
            let path = file(&format!("{path}.rs"));
            !fs::read_to_string(path).is_ok_and(|text| has_test(&text, name))
        })
        .collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

/// Returns the rows that name no test, in tables with a last column for tests.
fn without_a_test(document: &str) -> Vec<&str> {
    let mut is_of_claims = false;
    let mut without = Vec::new();
    for line in document.lines() {
        match line.rsplit('|').nth(1).map(str::trim) {
            None => is_of_claims = false,
            Some("test") => is_of_claims = true,
            Some(last) if !is_of_claims || last == "---" || last.contains(".rs::") => {}
            Some(_) => without.push(line),
        }
    }
    without
}

#[test]
fn each_claim_names_a_test() {
    let document = document();
    let without = without_a_test(&document);
    assert!(without.is_empty(), "no test: {without:#?}");
}

#[test]
fn a_claim_without_a_test_is_found() {
    let rows = "| what | test |\n|---|---|\n| a | `a.rs::a` |\n| b | |\n| c `c.rs::c` | none |\n";
    assert_eq!(without_a_test(rows), ["| b | |", "| c `c.rs::c` | none |"]);
    assert!(without_a_test("| what | why |\n|---|---|\n| a | b |\n").is_empty());
}

#[test]
fn a_test_is_known_by_its_attribute() {
    assert!(has_test("#[test]\nfn one() {}\n", "one"));
    assert!(has_test(
        "x\n\n    #[test]\n    #[should_panic]\n    fn one() {\n",
        "one"
    ));
    assert!(!has_test("#[test]\nfn one() {}\n\nfn two() {}\n", "two"));
    assert!(!has_test("#[test]\nfn one_more() {}\n", "one"));
}
