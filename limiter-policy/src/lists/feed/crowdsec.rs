//! `CrowdSec`'s decisions, as JSON: a list of them (`GET /v1/decisions`), what is new and what is
//! gone (`GET /v1/decisions/stream`), or alerts that have them (`cscli decisions list -o json`).
//!
//! Bans of addresses and ranges are on the list for as long as the file has them: how long a
//! decision goes on counts from when it was written. Other decisions are not for packets.

use std::borrow::Cow;

use serde::{Deserialize, de::DeserializeSeed as _};
use serde_json::value::RawValue;

use super::{
    ParseError,
    entries::{Entries, shown},
    items::{FieldItems, Items},
};

#[derive(Deserialize)]
struct Decision<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    scope: Cow<'a, str>,
    #[serde(borrow)]
    value: Cow<'a, str>,
    /// In Go's notation; negative once it is over.
    #[serde(borrow)]
    duration: Option<Cow<'a, str>>,
    #[serde(default)]
    simulated: bool,
}

impl Decision<'_> {
    /// Whether it is that packets of addresses are dropped.
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

/// Reads the decisions: those of a list, of the alerts in a list, or the new ones of a stream. What
/// the service answers to who may not ask is an object, too.
pub(super) fn read(bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let mut document = serde_json::Deserializer::from_slice(bytes);
    let read = if bytes.trim_ascii_start().starts_with(b"{") {
        let each = |item| add_item(item, bytes, entries);
        FieldItems("new", each).deserialize(&mut document)
    } else {
        Items(|item| add_item(item, bytes, entries)).deserialize(&mut document)
    };
    entries.room()?;
    read.and_then(|()| document.end())
        .map_err(|error| invalid(&error))
}

/// Adds a decision, or those of an alert.
fn add_item(item: &RawValue, bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let mut alert = serde_json::Deserializer::from_str(item.get());
    let each = |decision| add(decision, bytes, entries);
    if FieldItems("decisions", each)
        .deserialize(&mut alert)
        .is_ok()
    {
        return Ok(());
    }
    entries.room()?;
    add(item, bytes, entries)
}

fn invalid(error: &serde_json::Error) -> ParseError {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    ParseError::Json {
        line: error.line(),
        column: error.column(),
        message: format!("expected CrowdSec's decisions: {}", &message[..end]),
    }
}

/// Adds a decision, which is a part of `bytes`.
fn add(raw: &RawValue, bytes: &[u8], entries: &mut Entries) -> Result<(), ParseError> {
    let added = match serde_json::from_str::<Decision<'_>>(raw.get()) {
        Ok(decision) if decision.is_ban() => entries.add(&decision.value),
        Ok(_) => Ok(()),
        Err(_) => Err(format!(
            "expected a decision with 'type', 'scope' and 'value', found '{}'",
            shown(raw.get())
        )),
    };
    if let Err(message) = added {
        let offset = raw.get().as_ptr().addr() - bytes.as_ptr().addr();
        let line = || bytes[..offset].split(|byte| *byte == b'\n').count() as u64;
        entries.note(line, message);
    }
    entries.room()
}
