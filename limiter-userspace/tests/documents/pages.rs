//! The pages: the README and the files in docs/.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(super) struct Page {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

fn repository() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.canonicalize()
        .expect("the repository is above the package")
}

fn read(path: PathBuf) -> Page {
    let text = fs::read_to_string(&path).expect("a page can be read");
    Page { path, text }
}

pub(super) fn pages() -> Vec<Page> {
    let root = repository();
    let docs = fs::read_dir(root.join("docs")).expect("there is docs/");
    let docs = docs.map(|entry| entry.expect("docs/ can be read").path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root.join("README.md")]).map(read).collect()
}

pub(super) fn page(name: &str) -> String {
    read(repository().join("docs").join(name)).text
}

/// Returns the text below a heading, up to the next heading of any depth.
pub(super) fn section<'t>(text: &'t str, heading: &str) -> &'t str {
    let (_, below) = text
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("no heading {heading}"));
    below.split("\n#").next().unwrap_or_default()
}

/// Returns the cells of each row of a text's first table, without the head.
pub(super) fn rows(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|')).skip(2);
    lines.map(cells).collect()
}

fn cells(line: &str) -> Vec<&str> {
    let line = line.trim_start_matches("| ").trim_end_matches(" |");
    line.split(" | ").collect()
}

/// Returns the texts in backticks.
pub(super) fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns all names in backticks in a table's first column.
pub(super) fn names<'t>(rows: &[Vec<&'t str>]) -> Vec<&'t str> {
    rows.iter().flat_map(|row| quoted(row[0])).collect()
}
