//! A file of the configuration's folder, as another node of the fleet pushes it in place of the local file.
//!
//! A pushed file holds the settings that all nodes share. It has no section about a single node, such as its
//! interfaces, and names no other file: error messages quote files, so a remote user could read this node's
//! files through them.

use std::path::Path;

use super::{
    diagnostics::{FileNumber, Problems},
    node::{Node, Value},
};
use crate::file;

/// A pushed file.
#[derive(Clone, Copy, Debug)]
pub struct PushedFile<'p> {
    /// The path of the file in the folder to replace, which need not exist.
    pub path: &'p Path,
    /// Its text.
    pub text: &'p str,
}

/// Reports sections other than these, which a pushed text may not have.
pub(super) fn check(text: &str, sections: &[&str], file: FileNumber, problems: &mut Problems) {
    if let Err(error) = file::check(text) {
        problems.report(file, None, error.to_string());
        return;
    }
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(error) => {
            problems.report(file, error.at, error.message);
            return;
        }
    };
    let Value::Mapping(entries) = root.value else {
        problems.report(file, Some(root.at), "expected a map of sections".to_owned());
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
            problems.report(file, Some(name.at), message);
        }
    }
}
