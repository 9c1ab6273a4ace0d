//! Configuration files: read, checked, and turned into a [`Config`], or every error in them.
//!
//! `source` reads a file, `node` parses it into a tree with positions, `reader` walks the
//! tree and notes errors; each section has a module that says what belongs there. All that
//! is left of the file afterwards is right: nothing is checked again.

mod diagnostics;
mod duration;
mod id;
mod limits;
mod nearest;
mod node;
mod overrides;
mod rate;
mod reader;
mod settings;
mod source;

use std::path::{Path, PathBuf};

use limiter_common::limit::BUILT_IN;

use self::{
    diagnostics::Problems,
    node::{Node, Value},
    reader::Reader,
};
pub use self::{
    diagnostics::{Diagnostic, Diagnostics, Position},
    settings::{AttachMode, Buckets, Metrics},
};
use crate::policy::{Limit, Policy};

/// The sections of a configuration file.
const SECTIONS: [&str; 6] = [
    "limits",
    "overrides",
    "interfaces",
    "mode",
    "buckets",
    "metrics",
];

/// A configuration, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The interfaces to attach to; may be empty, the command line can name them too.
    pub interfaces: Vec<String>,
    /// How to attach.
    pub mode: AttachMode,
    /// Where the state of limits is kept.
    pub buckets: Buckets,
    /// Where Prometheus finds the metrics.
    pub metrics: Metrics,
    /// The limits; at least one.
    pub policy: Policy,
}

/// Reads a configuration file and the files it names.
///
/// Those are found relative to the configuration file's directory, or to the current
/// directory when the configuration comes through an open file such as `/dev/stdin`.
///
/// # Errors
///
/// All errors of all these files.
pub fn load(path: &Path) -> Result<Config, Diagnostics> {
    let mut problems = Problems::default();
    match read(path, &mut problems) {
        Some(config) if problems.is_empty() => Ok(config),
        _ => Err(problems.into_diagnostics()),
    }
}

fn read(path: &Path, problems: &mut Problems) -> Option<Config> {
    let file = problems.open(&path.display().to_string());
    let text = match source::read(path) {
        Ok(text) => text,
        Err(error) => {
            problems.note(file, None, error.to_string());
            return None;
        }
    };
    let root = match Node::parse(&text) {
        Ok(Node {
            value: Value::Null, ..
        }) => {
            problems.note(file, None, source::Unreadable::Empty.to_string());
            return None;
        }
        Ok(root) => root,
        Err(error) => {
            problems.note(file, error.at, error.message);
            return None;
        }
    };
    let mut reader = Reader::new(&text, file, problems);
    let expected = "a map with the sections limits, overrides, interfaces, mode, buckets, metrics";
    let fields = reader.fields(&root, expected, &SECTIONS)?;
    let directory = if source::is_descriptor(path) {
        Path::new("")
    } else {
        path.parent().unwrap_or(Path::new(""))
    };
    let defaults = fields
        .get("limits")
        .map(|node| section(&mut reader, node, directory, limits::read))
        .unwrap_or_default();
    let overrides = fields
        .get("overrides")
        .map(|node| section(&mut reader, node, directory, overrides::read))
        .unwrap_or_default();
    let config = Config {
        interfaces: fields
            .get("interfaces")
            .map(|node| settings::read_interfaces(&mut reader, node))
            .unwrap_or_default(),
        mode: fields
            .get("mode")
            .map(|node| settings::read_mode(&mut reader, node))
            .unwrap_or_default(),
        buckets: fields
            .get("buckets")
            .map(|node| settings::read_buckets(&mut reader, node))
            .unwrap_or_default(),
        metrics: fields
            .get("metrics")
            .map(|node| settings::read_metrics(&mut reader, node))
            .unwrap_or_default(),
        policy: policy(defaults, overrides),
    };
    // After another error the sections may be there, misspelt.
    if config.policy.limits.is_empty() && problems.is_empty() {
        problems.note(
            file,
            None,
            "limits nothing: it needs a section 'limits', 'overrides', or both".to_owned(),
        );
    }
    Some(config)
}

/// Reads a section that stands in the configuration file or in a file of its own, which the
/// section then names.
fn section<'n, T: Default>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    directory: &Path,
    read: for<'a> fn(&mut Reader<'a, '_>, &'a Node<'a>) -> T,
) -> T {
    match &node.value {
        Value::Text(name) if !name.is_empty() => {
            let path = directory.join(PathBuf::from(name.as_ref()));
            named_file(reader, node, &path, read)
        }
        _ => read(reader, node),
    }
}

fn named_file<'n, T: Default>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    path: &Path,
    read: for<'a> fn(&mut Reader<'a, '_>, &'a Node<'a>) -> T,
) -> T {
    // What is wrong with the file as a whole is said where it is named.
    let mut unreadable = |error: source::Unreadable| {
        reader.error(node.at, format!("the file '{}' {error}", path.display()));
        T::default()
    };
    let text = match source::read(path) {
        Ok(text) => text,
        Err(error) => return unreadable(error),
    };
    match Node::parse(&text) {
        Ok(Node {
            value: Value::Null, ..
        }) => unreadable(source::Unreadable::Empty),
        Ok(root) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            read(&mut Reader::new(&text, file, problems), &root)
        }
        Err(error) => {
            let problems = reader.problems();
            let file = problems.open(&path.display().to_string());
            problems.note(file, error.at, error.message);
            T::default()
        }
    }
}

/// The limits that have a default, overrides, or both, in the order of their ids.
fn policy(mut defaults: limits::Defaults, mut overrides: overrides::Overrides) -> Policy {
    let limits = BUILT_IN
        .iter()
        .map(|limit| Limit {
            name: limit.name.to_owned(),
            id: limit.id,
            id_format: limit.id_format,
            cost: limit.cost,
            matching: Default::default(),
            mode: Default::default(),
            default: defaults.remove(&limit.id),
            overrides: overrides.remove(&limit.id).unwrap_or_default(),
        })
        .filter(|limit| limit.default.is_some() || !limit.overrides.is_empty())
        .collect();
    Policy {
        limits,
        subscribers: Default::default(),
        malformed: limiter_common::reason::Action::Drop,
    }
}
