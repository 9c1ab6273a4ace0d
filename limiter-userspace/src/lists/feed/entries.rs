//! The entries of a file: addresses, prefixes and ranges, and those that are none.

use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};

use super::Content;
use crate::{
    config::prefix::Written,
    lists::{Format, report::BadLine},
    text,
};

const EXPECTED: &str = "an address, prefix or range, such as '192.0.2.1', '192.0.2.0/24' or \
                        '192.0.2.1-192.0.2.9'";

/// How many of those that cannot be read are kept.
const MOST_KEPT: usize = 10;

/// What was read so far.
#[derive(Default)]
pub(super) struct Entries {
    prefixes: Vec<IpNet>,
    read: u64,
    bad: u64,
    first_bad: Vec<BadLine>,
}

impl Entries {
    /// Adds the entry that a text spells: an address, a prefix or a range. Host bits of a prefix
    /// do not count.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        let added = match text.split_once('-') {
            Some((first, last)) => add_range(&mut self.prefixes, first.trim(), last.trim()),
            None => prefix(text).map(|prefix| self.prefixes.push(prefix)),
        };
        added.map_err(|why| format!("invalid entry '{}', {why}", shown(text)))?;
        self.read += 1;
        Ok(())
    }

    /// Counts what cannot be read in a line, which counts from 1.
    pub(super) fn note(&mut self, line: impl FnOnce() -> u64, message: String) {
        self.bad += 1;
        if self.first_bad.len() < MOST_KEPT {
            let line = line();
            self.first_bad.push(BadLine { line, message });
        }
    }

    pub(super) fn into_content(self, format: Format) -> Content {
        Content {
            format,
            prefixes: self.prefixes,
            entries: self.read,
            bad: self.bad,
            first_bad: self.first_bad,
        }
    }
}

/// A text of a file as it can be shown on one line.
pub(super) fn shown(text: &str) -> String {
    const MOST: usize = 60;
    let start: String = text.chars().take(MOST).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", text::one_line(&start))
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let written = written(text)?;
    let length = written.length.unwrap_or(written.bits());
    written
        .around(length)
        .filter(|prefix| prefix.prefix_len() > 0)
        .ok_or_else(every_address)
}

fn add_range(prefixes: &mut Vec<IpNet>, first: &str, last: &str) -> Result<(), String> {
    let address = |text| match written(text)? {
        Written {
            address,
            length: None,
        } => Ok(address),
        Written { .. } => Err("a range goes from an address to an address".to_owned()),
    };
    let (first, last) = (address(first)?, address(last)?);
    if first > last {
        return Err("the range ends before it begins".to_owned());
    }
    let before = prefixes.len();
    match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => {
            prefixes.extend(Ipv4Subnets::new(first, last, 0).map(IpNet::V4));
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => {
            prefixes.extend(Ipv6Subnets::new(first, last, 0).map(IpNet::V6));
        }
        _ => return Err("the range begins in one family and ends in the other".to_owned()),
    }
    if prefixes.last().is_some_and(|last| last.prefix_len() == 0) {
        prefixes.truncate(before);
        return Err(every_address());
    }
    Ok(())
}

fn written(text: &str) -> Result<Written, String> {
    Written::parse(text).map_err(|error| error.why(EXPECTED))
}

/// One slip in a feed must not exclude or block everybody; a configuration's own list may.
fn every_address() -> String {
    "which is every address: only the configuration itself may list that".to_owned()
}
