//! A JSON object per line: Spamhaus DROP, `{"cidr":"192.0.2.0/24","sblid":"SBL1","rir":"ripencc"}`.

use std::borrow::Cow;

use serde::Deserialize;

use super::entries::Entries;

#[derive(Deserialize)]
pub(super) struct Record<'a> {
    #[serde(borrow)]
    pub(super) cidr: Option<Cow<'a, str>>,
    /// `metadata` in the last line, with the number of records and the list's time.
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

impl Record<'_> {
    pub(super) fn is_metadata(&self) -> bool {
        self.kind.as_deref() == Some("metadata")
    }
}

pub(super) fn read(line: &[u8], entries: &mut Entries) -> Result<(), String> {
    if line.is_empty() {
        return Ok(());
    }
    match serde_json::from_slice::<Record<'_>>(line) {
        Ok(record) if record.is_metadata() => Ok(()),
        Ok(Record {
            cidr: Some(cidr), ..
        }) => entries.add(&cidr),
        _ => Err("expected a JSON object with 'cidr'".to_owned()),
    }
}
