//! The section `public-suffixes`: the file with the names below which domains are registered.

use std::path::PathBuf;

use super::{
    diagnostics::Problems, limits::Limits, named_lines::Lines, node::Node, reader::Reader,
};
use crate::policy::{InvalidSuffixRule, Mode, SuffixRule, rule_in_line};

const FILE: &str = "file";

/// The list of Debian's package `publicsuffix`.
const DEFAULT_FILE: &str = "/usr/share/publicsuffix/public_suffix_list.dat";

const LINES: Lines<SuffixRule, InvalidSuffixRule> = Lines {
    item: "public suffix",
    find: rule_in_line,
    parse: str::parse,
};

/// The file that a section names.
#[derive(Default)]
pub(super) enum Section {
    /// The section is absent.
    #[default]
    Missing,
    /// An error was reported.
    Invalid,
    /// The rules in the named file.
    Read(Vec<SuffixRule>),
}

/// Reads the section: a map with the file.
pub(super) fn read<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Section {
    let Some(fields) = reader.fields(node, "a map with 'file'", &[FILE]) else {
        return Section::Invalid;
    };
    let Some(named) = fields.get(FILE) else {
        if fields.is_missing(FILE) {
            reader.error(node.at, "needs 'file', the public suffix list");
        }
        return Section::Invalid;
    };
    let rules = reader.text(named, "a file's name").and_then(|name| {
        let path = reader.named_path(named.at, name)?;
        LINES.read(reader, named.at, &path)
    });
    rules.map_or(Section::Invalid, Section::Read)
}

/// Returns the rules that the limits need, from the default file unless the section names another; none if no
/// limit needs rules.
pub(super) fn rules(section: Section, limits: &Limits, problems: &mut Problems) -> Vec<SuffixRule> {
    let mut limits = limits.iter().map(|(_, limit)| limit);
    let user = limits.find(|limit| limit.mode != Mode::Off && limit.is_of_domains());
    match (section, user) {
        (Section::Read(rules), _) => rules,
        (Section::Invalid, _) | (Section::Missing, None) => Vec::new(),
        (Section::Missing, Some(limit)) => {
            let path = PathBuf::from(DEFAULT_FILE);
            problems.record_file(&path);
            LINES.items(&path).unwrap_or_else(|why| {
                let message = format!(
                    "{} needs the public suffix list: the file '{DEFAULT_FILE}' {why}: install the \
                     package publicsuffix, or name a file in 'public-suffixes'",
                    limit.name
                );
                problems.report_at(limit.position, message);
                Vec::new()
            })
        }
    }
}
