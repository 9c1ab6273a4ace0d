//! YAML as a tree of nodes with positions.
//!
//! Types with a derived `Deserialize` stop at the first error and lose a value's position. A tree with
//! positions lets us report all errors of a file at once.

use std::{borrow::Cow, fmt, mem};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_yaml::{
    DefaultMessageFormatter, DuplicateKeyPolicy, Error, Localizer, Location, NonFiniteFloatPolicy,
    Options, Spanned, budget::BudgetBreach,
};

use super::{diagnostics::Position, indentation};

/// The most nodes of one file: room for two million overrides, and a bound on the memory that a
/// file of 64 MiB can expand to.
const MAX_NODES: usize = 16_000_000;

/// The most that aliases may bring in, in values and ends of lists and maps: they cost time and memory, but
/// no bytes of the file.
const MAX_BY_ALIASES: usize = 100_000;

/// The maximum nesting; an override's comment is six deep. Reading recurses: in a debug build, 64 levels
/// overflow a thread's stack.
const MAX_DEPTH: usize = 16;

/// One YAML value.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) value: Value<'a>,
    /// Its position; for a value brought in by an alias, the alias's position.
    pub(super) at: Position,
    /// Where a scalar's bytes are in the file.
    written: Option<ScalarSpan>,
}

/// A scalar's bytes in the file, including quotes. Files are shorter than 2^32 bytes.
#[derive(Debug)]
struct ScalarSpan {
    start: u32,
    length: u32,
    /// Whether the node is an alias: the scalar itself is written elsewhere.
    by_alias: bool,
}

impl ScalarSpan {
    fn of<'s>(&self, source: &'s str) -> Option<&'s str> {
        let start = self.start as usize;
        source.get(start..start.checked_add(self.length as usize)?)
    }
}

#[derive(Debug)]
pub(super) enum Value<'a> {
    /// `~`, `null` or nothing.
    Null,
    /// `true`, `off`, and the other spellings of YAML 1.1.
    Boolean,
    /// A whole number.
    Unsigned(u64),
    /// Another number: negative, with decimals or too large.
    OtherNumber,
    /// Text, without its quotes.
    Text(Cow<'a, str>),
    /// A list.
    Sequence(Vec<Node<'a>>),
    /// Names and values, in the file's order; a name may occur more than once.
    Mapping(Vec<(Node<'a>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Parses the document in `text`.
    ///
    /// # Errors
    ///
    /// The first syntax error.
    pub(super) fn parse(text: &'a str) -> Result<Self, SyntaxError> {
        let parse = |duplicates| serde_yaml::from_str_with_options(text, options(duplicates));
        let first: Error = match parse(DuplicateKeyPolicy::Error) {
            Ok(root) => return Ok(root),
            Err(error) => error,
        };
        // `Reader` reports duplicates, with the first one's position, along with all other errors.
        // For mappings read as entries, this policy passes every duplicate on. With a number as a
        // key, though, it really drops all but the last.
        if !is_of_duplicates(&first) {
            return Err(SyntaxError::new(&first, text));
        }
        match parse(DuplicateKeyPolicy::LastWins) {
            Ok(root) if !Self::has_number_keys(&root) => Ok(root),
            Ok(_) => Err(SyntaxError::new(&first, text)),
            Err(error) => Err(SyntaxError::new(&error, text)),
        }
    }

    pub(super) const fn mapping(at: Position) -> Self {
        Self {
            value: Value::Mapping(Vec::new()),
            at,
            written: None,
        }
    }

    /// Moves its positions by bytes and lines, after its text was appended to a longer text.
    pub(super) fn shift(&mut self, bytes: usize, lines: u64) {
        self.at.line += lines;
        if let Some(written) = &mut self.written {
            // Texts end below 2^32 bytes, so a start beyond fits no text.
            let start = u32::try_from(bytes).unwrap_or(u32::MAX);
            written.start = written.start.saturating_add(start);
        }
        match &mut self.value {
            Value::Sequence(items) => items.iter_mut().for_each(|item| item.shift(bytes, lines)),
            Value::Mapping(entries) => entries.iter_mut().for_each(|(key, value)| {
                key.shift(bytes, lines);
                value.shift(bytes, lines);
            }),
            _ => {}
        }
    }

    /// Wraps a scalar in a list.
    pub(super) fn make_list(&mut self) {
        if matches!(self.value, Value::Sequence(_) | Value::Mapping(_)) {
            return;
        }
        let at = self.at;
        let item = Self {
            value: mem::replace(&mut self.value, Value::Null),
            at,
            written: self.written.take(),
        };
        self.value = Value::Sequence(vec![item]);
    }

    /// Appends the entries of another map, or the items of another list. Returns whether the kinds fit.
    pub(super) fn join(&mut self, other: Self) -> bool {
        match (&mut self.value, other.value) {
            (Value::Mapping(entries), Value::Mapping(others)) => entries.extend(others),
            (Value::Sequence(items), Value::Sequence(others)) => items.extend(others),
            _ => return false,
        }
        true
    }

    /// Returns whether any mapping in it has a number for a key.
    fn has_number_keys(&self) -> bool {
        match &self.value {
            Value::Sequence(items) => items.iter().any(Self::has_number_keys),
            Value::Mapping(entries) => entries.iter().any(|(key, value)| {
                matches!(key.value, Value::Unsigned(_) | Value::OtherNumber)
                    || value.has_number_keys()
            }),
            _ => false,
        }
    }

    /// Returns a scalar's text: a string without its quotes, anything else as written in `source`,
    /// the text this node was parsed from. `None` for lists and mappings.
    pub(super) fn scalar<'n>(&'n self, source: &'n str) -> Option<&'n str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Sequence(_) | Value::Mapping(_) => None,
            Value::Null | Value::Boolean | Value::Unsigned(_) | Value::OtherNumber => {
                self.written.as_ref()?.of(source)
            }
        }
    }

    /// Returns the position of a byte in the scalar's text; the scalar's start if the text is not literally
    /// in `source` on one line (an alias, or with escapes).
    pub(super) fn within(&self, source: &str, offset: usize) -> Position {
        let column = || {
            let Value::Text(text) = &self.value else {
                return None;
            };
            let written = self.written.as_ref().filter(|written| !written.by_alias)?;
            let written = written.of(source)?;
            let quotes = written.find(&**text).filter(|before| *before <= 1)?;
            let before = written.get(..quotes + offset)?;
            let one_line = !before.contains(['\n', '\r']);
            one_line.then(|| self.at.column + before.chars().count() as u64)
        };
        Position {
            column: column().unwrap_or(self.at.column),
            ..self.at
        }
    }
}

/// The reason why a text is not a YAML document.
#[derive(Debug)]
pub(super) struct SyntaxError {
    /// The position, if known.
    pub(super) at: Option<Position>,
    /// The error, on one line.
    pub(super) message: String,
}

impl SyntaxError {
    fn new(error: &Error, text: &str) -> Self {
        let at = error.location().as_ref().and_then(position);
        let message = explain(error);
        let hint = at.and_then(|at| indentation::hint(text, at.line));
        let message = match hint {
            Some(hint) if message.starts_with("invalid YAML: ") => {
                format!("invalid YAML: {hint}")
            }
            _ => message,
        };
        Self { at, message }
    }
}

fn is_of_duplicates(error: &Error) -> bool {
    match error {
        Error::AliasError { error, .. } => is_of_duplicates(error),
        error => matches!(error, Error::DuplicateMappingKey { .. }),
    }
}

fn explain(error: &Error) -> String {
    match error {
        // Wraps an error in a value that an alias brought in; the position is the alias's.
        Error::AliasError { error, .. } => explain(error),
        Error::MultipleDocuments { .. } => {
            "a second YAML document starts here, but a file may have only one".to_owned()
        }
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "invalid YAML: an alias may not be inside the value it refers to".to_owned()
        }
        Error::Budget {
            breach: BudgetBreach::Depth { .. },
            ..
        } => format!("invalid YAML: nested more than {MAX_DEPTH} deep"),
        Error::Budget {
            breach: BudgetBreach::Nodes { .. } | BudgetBreach::Events { .. },
            ..
        } => format!("too large: more than {MAX_NODES} values"),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("duplicate '{key}'"),
        Error::UnsupportedTag { tag, .. } => {
            format!("'{tag}' is a tag in YAML: put a text that begins with '!' in quotes")
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "invalid YAML: too many aliases, or aliases that expand to too much: write out what they stand for"
                .to_owned()
        }
        _ => format!("invalid YAML: {}", render(error)),
    }
}

/// Returns the library's message without the position it appends.
fn render(error: &Error) -> String {
    struct WithoutPosition;
    impl Localizer for WithoutPosition {
        fn attach_location<'b>(&self, base: Cow<'b, str>, _: Location) -> Cow<'b, str> {
            base
        }
    }
    error.render_with_formatter(&DefaultMessageFormatter.with_localizer(&WithoutPosition))
}

fn position(location: &Location) -> Option<Position> {
    let position = Position {
        line: location.line(),
        column: location.column(),
    };
    (position.line > 0).then_some(position)
}

/// Returns the parser's options: stricter on aliases and nesting than the library's defaults, and with longer
/// lists.
fn options(duplicate_keys: DuplicateKeyPolicy) -> Options {
    let mut options = serde_yaml::options! {
        budget: serde_yaml::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 2 * MAX_NODES,
        },
        with_snippet: false,
        duplicate_keys: duplicate_keys,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        // Otherwise `!ack syn` would read as `syn` with the tag `!ack`.
        reject_unsupported_tags: true,
    };
    options.alias_limits.max_total_replayed_events = MAX_BY_ALIASES;
    options
}

impl<'de> Deserialize<'de> for Node<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spanned = Spanned::<Value<'de>>::deserialize(deserializer)?;
        let (defined, referenced) = (&spanned.defined, &spanned.referenced);
        let span = defined.span();
        let by_alias = position(defined) != position(referenced);
        Ok(Self {
            value: spanned.value,
            at: Position {
                line: referenced.line(),
                column: referenced.column(),
            },
            written: span
                .byte_offset()
                .zip(span.byte_len())
                .and_then(|(start, length)| {
                    Some(ScalarSpan {
                        start: u32::try_from(start).ok()?,
                        length: u32::try_from(length).ok()?,
                        by_alias,
                    })
                }),
        })
    }
}

impl<'de> Deserialize<'de> for Value<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any YAML value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Boolean)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Value::Unsigned(value))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::OtherNumber)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(Value::Sequence(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = access.next_entry()? {
            entries.push(entry);
        }
        Ok(Value::Mapping(entries))
    }
}
