//! `CrowdSec`'s decisions, as JSON: a list (`GET /v1/decisions`), or new and deleted ones
//! (`GET /v1/decisions/stream`), or alerts with decisions (`cscli decisions list -o json`).
//!
//! Bans of addresses and ranges are on the list as long as the file has them: a decision's duration
//! counts from when the file was written. Other decisions are not about packets.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeSeed as _};
use serde_json::{error::Category, value::RawValue};

use super::{
    ParseError,
    entries::Entries,
    foreign,
    items::{FieldItems, Items},
};

/// The most fields to read of another document, to recognize it.
const MOST_NAMED: usize = 16;

#[derive(Deserialize)]
struct Decision<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    scope: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
    /// In Go's notation; negative if it has ended.
    #[serde(borrow)]
    duration: Option<Cow<'a, str>>,
    #[serde(default)]
    simulated: bool,
}

impl Decision<'_> {
    /// Returns whether it is an active ban of addresses.
    fn is_ban(&self) -> bool {
        let scopes = ["ip", "range"];
        let is_over = |left: &Cow<'_, str>| left.starts_with('-');
        self.kind.eq_ignore_ascii_case("ban")
            && scopes
                .iter()
                .any(|one| self.scope.eq_ignore_ascii_case(one))
            && !self.simulated
            && !self.duration.as_ref().is_some_and(is_over)
    }
}

/// Reads the decisions of a list, of the alerts in a list, or the new ones of a stream. The response to an
/// unauthorized request is an object, too, and so is other JSON.
pub(super) fn read(bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let mut others = Vec::new();
    let each = |item: &RawValue| add_item(item, bytes, entries);
    let read = if bytes.trim_ascii_start().starts_with(b"{") {
        let others = |name| {
            if others.len() < MOST_NAMED {
                others.push(name);
            }
        };
        let field = "new";
        FieldItems {
            field,
            each,
            others,
        }
        .deserialize(&mut document)
    } else {
        Items(each).deserialize(&mut document).map(|()| true)
    };
    entries.room()?;
    let are_decisions = read
        .and_then(|found| document.end().map(|()| found))
        .map_err(|error| invalid(&error))?;
    if are_decisions {
        Ok(())
    } else {
        Err(ParseError::ForeignJson(foreign::found(&others)))
    }
}

/// Adds a decision, or an alert's decisions.
fn add_item(item: &RawValue, bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let mut alert = serde_json::Deserializer::from_str(item.get());
    let each = |decision| add(decision, bytes, entries);
    let decisions = FieldItems {
        field: "decisions",
        each,
        others: drop,
    };
    if let Ok(true) = decisions.deserialize(&mut alert) {
        return Ok(());
    }
    entries.room()?;
    add(item, bytes, entries)
}

/// Returns the error for another document, in our own words: the library's message would quote the file.
fn invalid(error: &serde_json::Error) -> ParseError {
    ParseError::Json {
        line: error.line(),
        column: error.column(),
        why: match error.classify() {
            Category::Data => "it has another form",
            Category::Eof => "it ends too early",
            Category::Syntax | Category::Io => "it is not JSON",
        },
    }
}

/// Adds a decision, which is a part of `bytes`.
fn add(raw: &RawValue, bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let added = match serde_json::from_str::<Decision<'_>>(raw.get()) {
        Ok(decision) if decision.is_ban() => entries.add(&decision.value),
        Ok(_) => Ok(()),
        Err(_) => Err("expected a decision with 'type', 'scope' and 'value'".to_owned()),
    };
    if let Err(message) = added {
        let offset = raw.get().as_ptr().addr() - bytes.as_ptr().addr();
        let line = || bytes[..offset].split(|byte| *byte == b'\n').count() as u64;
        entries.add_bad(line, message);
    }
    entries.room()
}
