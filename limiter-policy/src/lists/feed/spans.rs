//! Addresses as ranges, merged while they are read: this bounds memory for any file. A single IPv6 range may
//! need 250 prefixes.

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};
use limiter_common::address::Family;

use super::ParseError;

/// The addresses from a first to a last.
#[derive(Clone, Copy)]
pub(super) enum Span {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl From<IpNet> for Span {
    fn from(prefix: IpNet) -> Self {
        match prefix {
            IpNet::V4(prefix) => Self::V4(prefix.network(), prefix.broadcast()),
            IpNet::V6(prefix) => Self::V6(prefix.network(), prefix.broadcast()),
        }
    }
}

/// The addresses read so far.
pub(super) struct Spans {
    /// The most prefixes.
    most: usize,
    v4: Ranges<u32>,
    v6: Ranges<u128>,
}

impl Spans {
    pub(super) fn at_most(most: usize) -> Self {
        Self {
            most,
            v4: Ranges::default(),
            v6: Ranges::default(),
        }
    }

    /// Adds addresses.
    ///
    /// # Errors
    ///
    /// There are too many separate ranges.
    pub(super) fn add(&mut self, span: Span) -> Result<(), ParseError> {
        match span {
            Span::V4(first, last) => self.v4.0.push((first.into(), last.into())),
            Span::V6(first, last) => self.v6.0.push((first.into(), last.into())),
        }
        if self.len() < 2 * self.most {
            return Ok(());
        }
        self.merge();
        if self.len() > self.most {
            return Err(ParseError::TooManyPrefixes);
        }
        Ok(())
    }

    /// Returns the smallest set of prefixes with the addresses, sorted.
    ///
    /// # Errors
    ///
    /// There are too many, or they cover a whole family.
    pub(super) fn into_prefixes(mut self) -> Result<Vec<IpNet>, ParseError> {
        self.merge();
        if self.v4.0 == [(0, u32::MAX)] {
            return Err(ParseError::Everything(Family::V4));
        }
        if self.v6.0 == [(0, u128::MAX)] {
            return Err(ParseError::Everything(Family::V6));
        }
        let v4 = self.v4.0.into_iter().flat_map(|(first, last)| {
            let prefixes = Ipv4Subnets::new(Ipv4Addr::from(first), Ipv4Addr::from(last), 0);
            prefixes.map(IpNet::V4)
        });
        let v6 = self.v6.0.into_iter().flat_map(|(first, last)| {
            let prefixes = Ipv6Subnets::new(Ipv6Addr::from(first), Ipv6Addr::from(last), 0);
            prefixes.map(IpNet::V6)
        });
        let mut prefixes: Vec<IpNet> = v4.chain(v6).take(self.most + 1).collect();
        if prefixes.len() > self.most {
            return Err(ParseError::TooManyPrefixes);
        }
        prefixes.shrink_to_fit();
        Ok(prefixes)
    }

    fn len(&self) -> usize {
        self.v4.0.len() + self.v6.0.len()
    }

    fn merge(&mut self) {
        self.v4.merge();
        self.v6.merge();
    }
}

/// The first and last addresses of ranges.
#[derive(Default)]
struct Ranges<A>(Vec<(A, A)>);

impl<A: Number> Ranges<A> {
    /// Sorts the ranges, and merges overlapping and touching ones.
    fn merge(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|(first, last), (_, before)| {
            let touches = before.next().is_none_or(|next| *first <= next);
            if touches {
                *before = (*before).max(*last);
            }
            touches
        });
    }
}

/// An address as a number.
trait Number: Copy + Ord {
    /// Returns the next address; `None`: this is the last.
    fn next(self) -> Option<Self>;
}

impl Number for u32 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}

impl Number for u128 {
    fn next(self) -> Option<Self> {
        self.checked_add(1)
    }
}
