//! The entries of a file: addresses, prefixes, ranges and bad entries.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;

use super::{
    BadLine, Content, Format, ParseError,
    spans::{Span, Spans},
};
use crate::prefix::{AddressOrPrefix, PrefixError, meant};

const EXPECTED: &str = "an address, prefix or range, such as '192.0.2.1', '192.0.2.0/24' or \
                        '192.0.2.1-192.0.2.9'";

/// How many bad entries are kept.
const MOST_KEPT: usize = 10;

/// The entries read so far.
pub(super) struct Entries {
    spans: Spans,
    read: u64,
    bad: u64,
    first_bad: Vec<BadLine>,
    /// The reason to stop reading.
    full: Option<ParseError>,
}

impl Entries {
    /// Starts without entries; they may add up to `prefixes` prefixes.
    pub(super) fn at_most(prefixes: usize) -> Self {
        Self {
            spans: Spans::at_most(prefixes),
            read: 0,
            bad: 0,
            first_bad: Vec::new(),
            full: None,
        }
    }

    /// Adds an entry: an address, a prefix or a range. A prefix's host bits are ignored, and
    /// IPv4-mapped addresses are IPv4.
    ///
    /// # Errors
    ///
    /// The error.
    pub(super) fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('-') {
            Some((first, last)) => self.add_range(first.trim(), last.trim()),
            None => self.add_read(prefix(text).map(Span::from)),
        }
    }

    /// Adds the addresses from a first to a last.
    ///
    /// # Errors
    ///
    /// The error.
    pub(super) fn add_range(&mut self, first: &str, last: &str) -> Result<(), String> {
        self.add_read(range(first, last))
    }

    /// Adds the prefix between two addresses in columns. Any other two addresses, such as the ends of a connection, may
    /// be no range, and would cover millions of addresses.
    ///
    /// # Errors
    ///
    /// The error.
    pub(super) fn add_columns(&mut self, first: &str, last: &str) -> Result<(), String> {
        let is_prefix = |span: &Span| {
            let (first, last) = match *span {
                Span::V4(first, last) => (first.to_bits().into(), last.to_bits().into()),
                Span::V6(first, last) => (first.to_bits(), last.to_bits()),
            };
            let inside: u128 = first ^ last;
            inside & inside.wrapping_add(1) == 0 && first & inside == 0
        };
        self.add_read(range(first, last).and_then(|span| {
            let why = "no prefix begins and ends with these addresses; write a range as \
                       '192.0.2.1-192.0.2.9'";
            is_prefix(&span)
                .then_some(span)
                .ok_or_else(|| why.to_owned())
        }))
    }

    fn add_read(&mut self, read: Result<Span, String>) -> Result<(), String> {
        let span = read.map_err(|why| format!("invalid entry: {why}"))?;
        self.read += 1;
        if let Err(error) = self.spans.add(span) {
            self.full = Some(error);
        }
        Ok(())
    }

    /// Checks that there is room for more.
    ///
    /// # Errors
    ///
    /// There is none: reading must stop.
    pub(super) fn room(&self) -> Result<(), ParseError> {
        self.full.clone().map_or(Ok(()), Err)
    }

    /// Counts a bad entry; lines count from 1.
    pub(super) fn add_bad(&mut self, line: impl FnOnce() -> u64, message: String) {
        self.bad += 1;
        if self.first_bad.len() < MOST_KEPT {
            let line = line();
            self.first_bad.push(BadLine { line, message });
        }
    }

    pub(super) fn into_content(self, format: Format) -> Result<Content, ParseError> {
        self.room()?;
        Ok(Content {
            format,
            prefixes: self.spans.into_prefixes()?,
            entries: self.read,
            bad: self.bad,
            first_bad: self.first_bad,
        })
    }
}

fn prefix(text: &str) -> Result<IpNet, String> {
    let prefix = meant(text).map_err(why)?.prefix;
    if prefix.prefix_len() == 0 {
        return Err(every_address());
    }
    Ok(prefix)
}

fn range(first: &str, last: &str) -> Result<Span, String> {
    let address = |text| match written(text)? {
        AddressOrPrefix {
            address,
            length: None,
        } => Ok(address),
        AddressOrPrefix { .. } => Err("a range must go from one address to another".to_owned()),
    };
    let (first, last) = (address(first)?, address(last)?);
    if first > last {
        return Err("the range ends before it begins".to_owned());
    }
    match (first, last) {
        (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST)) => {
            Err(every_address())
        }
        (IpAddr::V4(first), IpAddr::V4(last)) => Ok(Span::V4(first, last)),
        (IpAddr::V6(first), IpAddr::V6(last))
            if first.to_bits() == 0 && last.to_bits() == u128::MAX =>
        {
            Err(every_address())
        }
        (IpAddr::V6(first), IpAddr::V6(last)) => Ok(Span::V6(first, last)),
        _ => Err("the range begins in one family and ends in the other".to_owned()),
    }
}

fn written(text: &str) -> Result<AddressOrPrefix, String> {
    AddressOrPrefix::parse(text).map_err(why)
}

/// Returns the error for an entry that would exclude or block all addresses. Only a list in the configuration
/// may do that.
fn every_address() -> String {
    "it is every address: only the configuration may list that".to_owned()
}

/// Describes the fault of an address, without quoting it.
fn why(error: PrefixError) -> String {
    match error {
        PrefixError::Ipv4Mapped(_) => "it stands for an IPv4 address: write that".to_owned(),
        other => other.why(EXPECTED),
    }
}
