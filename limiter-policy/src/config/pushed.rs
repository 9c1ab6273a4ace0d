//! A file of the configuration's folder as another node of the fleet pushes it, in place of that which is
//! there.
//!
//! It says what all nodes have alike. So it has no section about this node, such as its interfaces, and
//! names no other file: what is wrong with a file is told, and nobody elsewhere may read this node's files
//! by that.

use std::path::Path;

use super::{
    diagnostics::{Diagnostics, FileNumber, Problems},
    node::{Node, Value},
    sections,
};
use crate::file;

/// A pushed file.
#[derive(Clone, Copy, Debug)]
pub struct Pushed<'p> {
    /// The path of the file in the folder that it is to replace, which need not exist.
    pub path: &'p Path,
    /// Its text.
    pub text: &'p str,
}

/// Checks whether a text may be pushed at all, before any node looks what it means there.
///
/// # Errors
///
/// It is no YAML, or has sections about a node.
pub fn check_pushed(text: &str, name: &str) -> Result<(), Diagnostics> {
    let mut problems = Problems::default();
    let file = problems.open(name);
    check(text, file, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.into_diagnostics())
    }
}

/// Notes what a pushed text may not have.
pub(super) fn check(text: &str, file: FileNumber, problems: &mut Problems) {
    if let Err(error) = file::check(text) {
        problems.note(file, None, error.to_string());
        return;
    }
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(error) => {
            problems.note(file, error.at, error.message);
            return;
        }
    };
    let Value::Mapping(entries) = root.value else {
        problems.note(file, Some(root.at), "expected a map of sections".to_owned());
        return;
    };
    for (name, _) in entries {
        let section = match &name.value {
            Value::Text(text) => text.replace('_', "-"),
            _ => String::new(),
        };
        if !sections::OF_ALL.contains(&section.as_str()) {
            let message = format!(
                "'{section}' cannot be pushed, only {}: the rest is each node's own",
                sections::OF_ALL.join(", ")
            );
            problems.note(file, Some(name.at), message);
        }
    }
}
