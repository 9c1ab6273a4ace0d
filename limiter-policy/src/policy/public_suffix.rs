//! Public suffixes: domains are registered directly below them (publicsuffix.org).

use std::{collections::BTreeMap, fmt, str::FromStr};

use limiter_common::dns::DOMAIN_LABELS;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

use super::{DnsName, InvalidDnsName};

/// The start of a comment.
const COMMENT: &str = "//";

/// The start of a rule for all names right below one, and of an exception from such a rule.
const RIGHT_BELOW: &str = "*.";
const EXCEPT: &str = "!";

/// A rule of the list. It marks names as public suffixes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SuffixRule {
    /// The name, without the marker of the kind.
    pub name: DnsName,
    /// The names that the rule applies to.
    pub kind: SuffixKind,
}

/// The names that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuffixKind {
    /// The name is a public suffix.
    Name,
    /// Each name that has one label more is a public suffix.
    RightBelow,
    /// The name is not a suffix, in spite of the rule of the kind above.
    Except,
}

/// The reason why a text is not a rule.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidSuffixRule {
    /// Its name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidDnsName),
    /// Its internationalized labels have no ASCII form.
    #[error("has internationalized labels that are not valid")]
    Unicode,
    /// Its name is the root.
    #[error("must not be the root")]
    Root,
}

impl SuffixRule {
    /// Returns the number of labels of registered domains under this rule.
    fn domain_labels(&self) -> u32 {
        let labels = u32::try_from(self.name.label_count()).unwrap_or(u32::MAX);
        match self.kind {
            SuffixKind::Name => labels + 1,
            SuffixKind::RightBelow => labels + 2,
            SuffixKind::Except => labels,
        }
    }
}

/// Parses a rule in the list's notation. Internationalized labels become ASCII, the form in queries.
impl FromStr for SuffixRule {
    type Err = InvalidSuffixRule;

    fn from_str(text: &str) -> Result<Self, InvalidSuffixRule> {
        let (kind, name) = if let Some(name) = text.strip_prefix(RIGHT_BELOW) {
            (SuffixKind::RightBelow, name)
        } else if let Some(name) = text.strip_prefix(EXCEPT) {
            (SuffixKind::Except, name)
        } else {
            (SuffixKind::Name, text)
        };
        let name = if name.is_ascii() {
            name.parse()?
        } else {
            let name = idna::domain_to_ascii(name).map_err(|_| InvalidSuffixRule::Unicode)?;
            name.parse()?
        };
        if name == DnsName::default() {
            return Err(InvalidSuffixRule::Root);
        }
        Ok(Self { name, kind })
    }
}

impl fmt::Display for SuffixRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            SuffixKind::Name => "",
            SuffixKind::RightBelow => RIGHT_BELOW,
            SuffixKind::Except => EXCEPT,
        };
        write!(formatter, "{kind}{}", self.name)
    }
}

impl Serialize for SuffixRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'d> Deserialize<'d> for SuffixRule {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Returns the rule in a line of the list; `None`: the line is blank or a comment.
#[must_use]
pub fn rule_in_line(line: &str) -> Option<&str> {
    // "Each line is only read up to the first whitespace."
    let rule = line.split_whitespace().next()?;
    (!rule.starts_with(COMMENT)).then_some(rule)
}

/// The number of labels of the registered domains below names.
#[derive(Clone, Debug, Default)]
pub struct DomainLabels(BTreeMap<DnsName, u32>);

impl DomainLabels {
    /// Derives the numbers from rules.
    #[must_use]
    pub fn new(rules: &[SuffixRule]) -> Self {
        let mut labels: BTreeMap<DnsName, u32> = BTreeMap::new();
        for rule in rules {
            let of_rule = rule.domain_labels();
            // The rule with the most labels prevails, and an exception over it.
            let known = labels.entry(rule.name.clone()).or_insert(of_rule);
            *known = match rule.kind {
                SuffixKind::Except => of_rule,
                SuffixKind::Name | SuffixKind::RightBelow => of_rule.max(*known),
            };
        }
        Self(labels)
    }

    /// Returns the names in the rules.
    pub fn names(&self) -> impl Iterator<Item = &DnsName> {
        self.0.keys()
    }

    /// Returns the number of labels of the registered domain of a name. It also holds for the names below,
    /// unless a rule has a longer name. A public suffix has fewer labels.
    #[must_use]
    pub fn of(&self, name: &DnsName) -> u32 {
        let names = name.with_ancestors();
        let mut found = names.filter_map(|one| self.0.get(&one).copied());
        found.next().unwrap_or(DOMAIN_LABELS)
    }

    /// Returns the registered domain of a name; `None`: it is a public suffix.
    #[must_use]
    pub fn registered(&self, name: &DnsName) -> Option<DnsName> {
        let labels = usize::try_from(self.of(name)).ok()?;
        name.with_ancestors()
            .find(|one| one.label_count() == labels)
    }

    /// Returns the registered domain of a name; the name itself, if it is a public suffix.
    #[must_use]
    pub fn domain(&self, name: &DnsName) -> DnsName {
        let most = usize::try_from(self.of(name)).unwrap_or(usize::MAX);
        let mut names = name.with_ancestors();
        let found = names.find(|one| one.label_count() <= most);
        found.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(lines: &str) -> Vec<SuffixRule> {
        let rules = lines.lines().filter_map(rule_in_line);
        rules.map(|rule| rule.parse().unwrap()).collect()
    }

    /// Cases of the list's own tests (`tests/test_psl.txt`, public domain), with the suffixes in it.
    #[test]
    fn domains_below_suffixes() {
        let rules = rules(
            "// ===BEGIN ICANN DOMAINS===\ncom\nuk.com  // a comment\n\nbiz\njp\nac.jp\nkyoto.jp\n\
             ide.kyoto.jp\n*.kobe.jp\n!city.kobe.jp\n*.ck\n!www.ck\nus\nak.us\nk12.ak.us\ncn\n公司.cn\n",
        );
        let labels = DomainLabels::new(&rules);
        for (name, domain) in [
            ("com", "com"),
            ("example.com", "example.com"),
            ("b.example.com", "example.com"),
            ("a.b.example.com", "example.com"),
            ("uk.com", "uk.com"),
            ("b.example.uk.com", "example.uk.com"),
            // Not in the list: the rule is `*`.
            ("example", "example"),
            ("a.b.example.example", "example.example"),
            ("jp", "jp"),
            ("test.jp", "test.jp"),
            ("ac.jp", "ac.jp"),
            ("www.test.ac.jp", "test.ac.jp"),
            ("test.kyoto.jp", "test.kyoto.jp"),
            ("b.ide.kyoto.jp", "b.ide.kyoto.jp"),
            ("a.b.ide.kyoto.jp", "b.ide.kyoto.jp"),
            ("c.kobe.jp", "c.kobe.jp"),
            ("b.c.kobe.jp", "b.c.kobe.jp"),
            ("a.b.c.kobe.jp", "b.c.kobe.jp"),
            ("city.kobe.jp", "city.kobe.jp"),
            ("www.city.kobe.jp", "city.kobe.jp"),
            ("ck", "ck"),
            ("test.ck", "test.ck"),
            ("a.b.test.ck", "b.test.ck"),
            ("www.ck", "www.ck"),
            ("www.www.ck", "www.ck"),
            ("www.test.k12.ak.us", "test.k12.ak.us"),
            ("www.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"),
            ("shishi.xn--55qx5d.cn", "shishi.xn--55qx5d.cn"),
            ("xn--55qx5d.cn", "xn--55qx5d.cn"),
            (".", "."),
        ] {
            let name: DnsName = name.parse().unwrap();
            assert_eq!(labels.domain(&name).to_string(), domain, "{name}");
        }
    }

    #[test]
    fn what_is_no_rule() {
        for (text, why) in [
            (".", InvalidSuffixRule::Root),
            ("*.", InvalidSuffixRule::Name(InvalidDnsName::EmptyLabel)),
            ("a.*.b", InvalidSuffixRule::Name(InvalidDnsName::Asterisk)),
            ("xn--a.公司\u{fffd}", InvalidSuffixRule::Unicode),
        ] {
            assert_eq!(text.parse::<SuffixRule>(), Err(why), "{text}");
        }
    }

    #[test]
    fn rules_are_read_as_they_are_shown() {
        for text in ["com", "*.ck", "!www.ck", "xn--55qx5d.cn"] {
            let rule: SuffixRule = text.parse().unwrap();
            assert_eq!(rule.to_string(), text);
        }
        assert_eq!(rule_in_line("  // com"), None);
        assert_eq!(rule_in_line("com // more"), Some("com"));
        assert_eq!(rule_in_line(""), None);
    }
}
