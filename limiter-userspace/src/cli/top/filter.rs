//! Selects the rows to show.

use std::fmt;

use ipnet::IpNet;

use super::rates::Row;

/// The user's filter: a prefix that contains the rows to show, or a part of the limit's name or id.
#[derive(Debug, Default)]
pub(super) struct Filter {
    text: String,
}

impl Filter {
    /// Shows the rows within a prefix.
    pub(super) fn prefix(prefix: IpNet) -> Self {
        Self {
            text: prefix.to_string(),
        }
    }

    /// Shows the rows with this text in the limit's name or the id.
    pub(super) fn text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn push(&mut self, character: char) {
        self.text.push(character);
    }

    pub(super) fn pop(&mut self) {
        self.text.pop();
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    pub(super) fn shows(&self, row: &Row) -> bool {
        if let (Ok(prefix), Some(addresses)) = (self.text.parse::<IpNet>(), &row.addresses) {
            return prefix.contains(addresses);
        }
        self.is_in(&row.offender.dropper()) || self.is_in(&row.offender.id)
    }

    /// Returns whether a name contains the text, regardless of case.
    pub(super) fn is_in(&self, name: &str) -> bool {
        name.to_lowercase().contains(&self.text.to_lowercase())
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            rates::Rates,
            testing::{offender, snapshot},
        },
        *,
    };

    #[test]
    fn a_prefix_or_a_part_of_a_name() {
        let offenders = [
            offender("PacketsPerIPAddress", "192.0.2.1", 1),
            offender("DnsQueries", "192.0.20.2", 1),
            offender("PacketsPerIPv6Range", "2001:db8:0:1::/64", 1),
        ];
        let rows = Rates::default()
            .advance(snapshot(0, [0, 0], offenders))
            .offenders;
        let check = |text: &str, expected: [bool; 3]| {
            let mut filter = Filter::default();
            text.chars().for_each(|character| filter.push(character));
            let shown: Vec<_> = rows.iter().map(|row| filter.shows(row)).collect();
            assert_eq!(shown, expected, "{text}");
        };
        check("", [true; 3]);
        check("192.0.2", [true, true, false]);
        check("192.0.2.0/24", [true, false, false]);
        check("2001:db8::/48", [false, false, true]);
        check("2001:db8::/96", [false; 3]);
        check("dns", [false, true, false]);
        check("192.0.2.0/", [false; 3]);
    }

    #[test]
    fn is_edited() {
        let mut filter = Filter::prefix("192.0.2.0/24".parse().unwrap());
        filter.pop();
        assert_eq!(filter.to_string(), "192.0.2.0/2");
        filter.clear();
        filter.pop();
        assert!(filter.is_empty());
    }
}
