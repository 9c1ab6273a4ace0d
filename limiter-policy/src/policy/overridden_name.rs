//! The names in the ids of overrides.

use std::{fmt, str::FromStr};

use limiter_common::{
    dns::{WireQuestion, counted_class},
    limit::{IdFormat, KeyPart, NameKind},
};
use thiserror::Error;

use super::{DnsMatch, DnsName, InvalidDnsName, Question, QuestionText};

/// The class of the Internet, and the prefix of other classes' names (RFC 3597).
const IN: u16 = 1;
const CLASS: &str = "CLASS";

/// A zone, a domain, a server name or a question in the id of an override.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OverriddenName {
    /// The name.
    pub name: DnsName,
    /// The numbers of a question's type and class; `None`: not a question.
    pub question: Option<(u16, u16)>,
}

/// The reason why a text is not such a name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum InvalidOverriddenName {
    /// Its name is invalid.
    #[error(transparent)]
    Name(#[from] InvalidDnsName),
    /// The text after its name is not a type.
    #[error("must be a name, or a name and a type, such as 'www.example.com A'")]
    NotAType,
}

/// Converts a name without a question.
impl From<DnsName> for OverriddenName {
    fn from(name: DnsName) -> Self {
        Self {
            name,
            question: None,
        }
    }
}

impl From<&Question> for OverriddenName {
    fn from(question: &Question) -> Self {
        Self {
            name: question.name.clone(),
            question: Some((question.of_type, IN)),
        }
    }
}

/// Formats it as [`QuestionText`] has it.
impl fmt::Display for OverriddenName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((of_type, class)) = self.question else {
            return self.name.fmt(formatter);
        };
        let name = &self.name.wire();
        QuestionText(WireQuestion {
            name,
            of_type,
            class,
        })
        .fmt(formatter)
    }
}

/// Parses it as it is displayed, in any case.
impl FromStr for OverriddenName {
    type Err = InvalidOverriddenName;

    fn from_str(text: &str) -> Result<Self, InvalidOverriddenName> {
        let words: Vec<&str> = text.split(' ').collect();
        let (name, class, of_type) = match words[..] {
            [name] => return Ok(Self::from(name.parse::<DnsName>()?)),
            [name, of_type] => (name, Some(IN), of_type),
            [name, class, of_type] => (name, class_of(class), of_type),
            _ => return Err(InvalidOverriddenName::NotAType),
        };
        let question = DnsMatch::type_of(of_type).zip(class);
        Ok(Self {
            name: name.parse()?,
            question: Some(question.ok_or(InvalidOverriddenName::NotAType)?),
        })
    }
}

/// Returns the number in the general form of a class.
fn class_of(text: &str) -> Option<u16> {
    let upper = text.to_ascii_uppercase();
    let number: u16 = upper.strip_prefix(CLASS)?.parse().ok()?;
    (upper == format!("{CLASS}{number}")).then_some(counted_class(number))
}

/// Returns the kind of name that identifies the keys of a limit, alone or beside a source; `None`: no name
/// does.
pub(crate) fn key_part(id_format: IdFormat, per_name: Option<NameKind>) -> Option<KeyPart> {
    let format = per_name.map_or(id_format, NameKind::alone);
    format.key_part().filter(|of| of.is_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for text in [
            ".",
            "example.com",
            "www.example.com A",
            ". TYPE65280",
            "version.bind CLASS3 TXT",
        ] {
            let name: OverriddenName = text.parse().unwrap();
            assert_eq!(name.to_string(), text);
        }
        let name: OverriddenName = "WWW.Example.com. class1 aaaa".parse().unwrap();
        assert_eq!(name.to_string(), "www.example.com AAAA");
        let of_any_class: OverriddenName = "www.example.com CLASS255 AAAA".parse().unwrap();
        assert_eq!(of_any_class, name);
        for (text, why) in [
            ("", InvalidDnsName::EmptyLabel.into()),
            ("*.a", InvalidDnsName::Asterisk.into()),
            ("a  A", InvalidOverriddenName::NotAType),
            ("a B", InvalidOverriddenName::NotAType),
            ("a CLASS03 A", InvalidOverriddenName::NotAType),
            ("a A CLASS3", InvalidOverriddenName::NotAType),
            ("a CLASS3 A A", InvalidOverriddenName::NotAType),
        ] {
            assert_eq!(text.parse::<OverriddenName>(), Err(why), "{text}");
        }
    }
}
