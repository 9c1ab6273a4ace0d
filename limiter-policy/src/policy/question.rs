//! A DNS question that a client may ask, and questions as texts.

use std::fmt;

use limiter_common::{
    dns::{Message, WireQuestion, match_message},
    limit::NameKind,
    name_hash::hash_of_name,
    policy::Tables,
};
use serde::{Deserialize, Serialize};

use super::{DnsMatch, DnsName, DomainLabels};

/// The class of the Internet.
const IN: u16 = 1;

/// A question of the class IN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The name.
    pub name: DnsName,
    /// The number of the type.
    #[serde(rename = "type")]
    pub of_type: u16,
}

impl Question {
    /// Returns its texts, with domains by a policy's public suffixes.
    #[must_use]
    pub fn names(&self, suffixes: &DomainLabels) -> QuestionNames {
        QuestionNames::new(self.on_the_wire(&self.name.wire()), suffixes)
    }

    /// Returns the question in wire format; `name` is its encoded name.
    const fn on_the_wire<'n>(&self, name: &'n [u8]) -> WireQuestion<'n> {
        WireQuestion {
            name,
            of_type: self.of_type,
            class: IN,
        }
    }

    /// Returns messages with the question: one of each kind, and with each of the flags that limits may
    /// match.
    pub fn messages(&self) -> impl Iterator<Item = Vec<u8>> {
        (0..64_u8).map(|kind| {
            let (opcode, recursion_desired, has_opt) = (kind >> 2, kind >> 1 & 1, kind & 1);
            let flags = opcode << 3 | recursion_desired;
            let mut message = vec![0, 0, flags, 0, 0, 1, 0, 0, 0, 0, 0, has_opt];
            message.extend(self.name.wire());
            message.extend(self.of_type.to_be_bytes());
            message.extend(IN.to_be_bytes());
            if has_opt == 1 {
                // The root's name and the type `OPT`. Limits ignore the rest.
                message.extend([0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0]);
            }
            message
        })
    }
}

/// Formats the question as [`QuestionText`] does.
impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        QuestionText(self.on_the_wire(&self.name.wire())).fmt(formatter)
    }
}

/// The texts of a question that may name keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionNames {
    /// The text of [`QuestionText`].
    pub question: String,
    /// The registered domain; `None`: the name has characters that no configuration has.
    pub domain: Option<String>,
}

impl QuestionNames {
    /// Returns a question's texts, with the domain by a policy's public suffixes.
    #[must_use]
    pub fn new(question: WireQuestion<'_>, suffixes: &DomainLabels) -> Self {
        let mut name = String::new();
        // Writing to a string cannot fail.
        let _ = write_name(&mut name, question.name);
        let name: Result<DnsName, _> = name.parse();
        Self {
            question: QuestionText(question).to_string(),
            domain: name.ok().map(|name| suffixes.domain(&name).to_string()),
        }
    }
}

/// A question as text: `www.example.com A`, and with another class than IN `version.bind CLASS3 TXT` (RFC
/// 3597).
///
/// Letters are in lower case, as questions ignore case. The text is visible ASCII: other bytes become `\DDD`,
/// their number, and a dot or backslash in a label gets a backslash before it (RFC 4343).
#[derive(Clone, Copy, Debug)]
pub struct QuestionText<'q>(pub WireQuestion<'q>);

impl fmt::Display for QuestionText<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(WireQuestion {
            name,
            of_type,
            class,
        }) = *self;
        write_name(formatter, name)?;
        if class != IN {
            write!(formatter, " CLASS{class}")?;
        }
        write!(formatter, " {}", DnsMatch::type_name(of_type))
    }
}

/// A name that buckets know by a hash, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashedName {
    /// The part of the question.
    pub kind: NameKind,
    /// The hash.
    pub number: u64,
    /// The text, in the format of [`QuestionText`].
    pub text: String,
}

/// Returns the names in a message's question that buckets know by hashes.
#[must_use]
pub fn hashed_names<T: Tables>(tables: &T, message: &mut Message) -> Vec<HashedName> {
    let asked = match_message(tables, message);
    let Some(question) = message.question() else {
        return Vec::new();
    };
    let features = tables.features();
    let mut names = Vec::new();
    if features.by_question != 0 {
        names.push(HashedName {
            kind: NameKind::Question,
            number: asked.question,
            text: QuestionText(question).to_string(),
        });
    }
    // The domain is the suffix with the hash in `asked`.
    let mut last = Some(question.name).filter(|_| features.by_domain != 0);
    while let Some(wire) = last {
        if hash_of_name(tables.name_keys(), wire) == asked.domain {
            let mut text = String::new();
            // Writing to a string cannot fail.
            let _ = write_name(&mut text, wire);
            names.push(HashedName {
                kind: NameKind::Domain,
                number: asked.domain,
                text,
            });
            break;
        }
        last = wire
            .split_first()
            .filter(|(length, _)| **length > 0)
            .and_then(|(length, behind)| behind.get(usize::from(*length)..));
    }
    names
}

/// Writes a name in wire format, which has each label after its length.
fn write_name(to: &mut impl fmt::Write, wire: &[u8]) -> fmt::Result {
    let mut rest = wire;
    while let Some((length, behind)) = rest.split_first()
        && let Some((label, behind)) = behind.split_at_checked((*length).into())
        && !label.is_empty()
    {
        if rest.len() != wire.len() {
            to.write_char('.')?;
        }
        for byte in label {
            match byte {
                b'.' | b'\\' => write!(to, "\\{}", char::from(*byte))?,
                b'!'..=b'~' => to.write_char(byte.to_ascii_lowercase().into())?,
                _ => write!(to, "\\{byte:03}")?,
            }
        }
        rest = behind;
    }
    if rest.len() == wire.len() {
        // The root has no label.
        to.write_char('.')?;
    }
    Ok(())
}

/// A name that packets may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedName {
    /// The question of DNS queries.
    Question(Question),
    /// The name of the server, at the beginning of a connection.
    ServerName(DnsName),
}

impl RequestedName {
    /// Returns the question; `None`: a server name.
    #[must_use]
    pub const fn question(&self) -> Option<&Question> {
        match self {
            Self::Question(question) => Some(question),
            Self::ServerName(_) => None,
        }
    }
}

impl fmt::Display for RequestedName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Question(question) => question.fmt(formatter),
            Self::ServerName(name) => name.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use limiter_common::limit::IdFormat;
    use proptest::prelude::*;

    use super::*;
    use crate::policy::CompiledPolicy;

    fn text(name: &[u8], of_type: u16, class: u16) -> String {
        let question = WireQuestion {
            name,
            of_type,
            class,
        };
        QuestionText(question).to_string()
    }

    #[test]
    fn questions_are_shown_as_zone_files_have_them() {
        for (name, of_type, class, expected) in [
            (
                &b"\x03wWw\x07Example\x03com\0"[..],
                1,
                1,
                "www.example.com A",
            ),
            (b"\x07version\x04bind\0", 16, 3, "version.bind CLASS3 TXT"),
            (b"\0", 65_280, 1, ". TYPE65280"),
            // Bytes that could imitate another name, end a line, or move a terminal's cursor.
            (b"\x03a.b\x01\\\0", 255, 1, r"a\.b.\\ ANY"),
            (b"\x05\x1b \n\xff\x7f\0", 1, 1, r"\027\032\010\255\127 A"),
        ] {
            assert_eq!(text(name, of_type, class), expected);
        }
    }

    #[test]
    fn a_question_is_shown_as_it_was_asked_for() {
        let question = Question {
            name: "WWW.example.com.".parse().unwrap(),
            of_type: 28,
        };
        assert_eq!(question.to_string(), "www.example.com AAAA");
        for bytes in question.messages() {
            let mut message = Message::EMPTY;
            message.begin(bytes.len() as u64)[..bytes.len()].copy_from_slice(&bytes);
            let read = message.question().unwrap();
            assert_eq!(QuestionText(read).to_string(), question.to_string());
        }
    }

    #[test]
    fn names_that_buckets_know_by_hashes_have_texts() {
        let limit = "{id: question, cost: packets, burst: 1, count: 1, period: 1s}";
        let text = format!("limits: {{Questions: {limit}, Domains: {limit}}}");
        let mut policy = crate::config::parse(&text, "test").unwrap().policy;
        for limit in &mut policy.limits {
            if limit.name == "Domains" {
                limit.id_format = IdFormat::Domain;
            }
        }
        for rule in ["com", "*.ck"] {
            policy.public_suffixes.push(rule.parse().unwrap());
        }
        let policy = CompiledPolicy::new(&policy, 1).unwrap();
        for (name, question, domain) in [
            (
                &b"\x03wWw\x07Example\x03com\0"[..],
                "www.example.com A",
                "example.com",
            ),
            (b"\x01a\x01b\x01c\x02ck\0", "a.b.c.ck A", "b.c.ck"),
            (b"\x03com\0", "com A", "com"),
            (b"\0", ". A", "."),
            // A configuration has no such name.
            (b"\x01x\x02\x1b.\x03com\0", r"x.\027\..com A", r"\027\..com"),
        ] {
            let mut bytes = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            bytes.extend(name);
            bytes.extend([0, 1, 0, 1]);
            let mut message = Message::EMPTY;
            // The bytes after the question belong to other messages.
            message.begin(274)[..bytes.len()].copy_from_slice(&bytes);
            let asked = match_message(&policy, &mut message);
            let expected = [
                (NameKind::Question, asked.question, question),
                (NameKind::Domain, asked.domain, domain),
            ];
            let expected = expected.map(|(kind, number, text)| HashedName {
                kind,
                number,
                text: text.to_owned(),
            });
            assert_eq!(hashed_names(&policy, &mut message), expected, "{question}");
        }
        assert_eq!(hashed_names(&policy, &mut Message::EMPTY.clone()), []);
    }

    proptest! {
        /// Different names have different texts.
        #[test]
        fn the_text_tells_the_name(
            labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..64), 0..4),
        ) {
            let mut wire = Vec::new();
            for label in &labels {
                wire.extend(u8::try_from(label.len()));
                wire.extend(label);
            }
            wire.push(0);
            let mut text = String::new();
            write_name(&mut text, &wire).unwrap();
            prop_assert!(text.bytes().all(|byte| byte.is_ascii_graphic()), "{text}");
            prop_assert_eq!(read_text(&text), wire.to_ascii_lowercase());
        }
    }

    /// Returns the name of a text on the wire.
    fn read_text(text: &str) -> Vec<u8> {
        let mut labels = vec![Vec::new()];
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let last = labels.last_mut().unwrap();
            match byte {
                b'.' => labels.push(Vec::new()),
                b'\\' => match bytes.next().unwrap() {
                    digit @ b'0'..=b'9' => {
                        let rest = [bytes.next().unwrap(), bytes.next().unwrap()];
                        let digits = [digit, rest[0], rest[1]];
                        last.push(std::str::from_utf8(&digits).unwrap().parse().unwrap());
                    }
                    other => last.push(other),
                },
                other => last.push(other),
            }
        }
        let mut wire = Vec::new();
        for label in labels.iter().filter(|label| !label.is_empty()) {
            wire.extend(u8::try_from(label.len()));
            wire.extend(label);
        }
        wire.push(0);
        wire
    }
}
