//! A file of the configuration's folder as another node of the fleet pushes it, in place of that which is
//! there.
//!
//! It says what all nodes have alike. So it has no section about this node, such as its interfaces, and
//! names no other file: what is wrong with a file is told, and nobody elsewhere may read this node's files
//! by that.

use std::path::Path;

use super::{
    diagnostics::{FileNumber, Problems},
    node::{Node, Value},
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

/// Notes what a pushed text may not have: other sections than these.
pub(super) fn check(text: &str, sections: &[&str], file: FileNumber, problems: &mut Problems) {
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
        if !sections.contains(&section.as_str()) {
            let message = format!(
                "'{section}' cannot be pushed, only {}: the rest is each node's own",
                sections.join(", ")
            );
            problems.note(file, Some(name.at), message);
        }
    }
}
