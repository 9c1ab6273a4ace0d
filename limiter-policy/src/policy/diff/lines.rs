//! The lines of a difference as people see it.

use std::fmt::{self, Formatter};

use super::change::Change;

pub(super) fn heading(formatter: &mut Formatter<'_>, change: Change, subject: &str) -> fmt::Result {
    writeln!(formatter, "{:7}  {subject}", change.name())
}

pub(super) fn detail(formatter: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(formatter, "         {name:8}  {value}")
}

/// Like [`detail`], with a wider column for the names of sections.
pub(super) fn field(formatter: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(formatter, "         {name:11}  {value}")
}
