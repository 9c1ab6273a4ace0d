//! Reads a stream's lines.

use std::io::{BufRead, Read as _};

use super::item::{Item, ItemNumber, ReceiverGone, Sink};
use crate::cli::parse::ParsedValue;

/// The longest line, in bytes.
const LONGEST: u64 = 4_096;

/// Reads changes line by line. Empty lines and comments, which start with `#`, are skipped.
pub(in crate::cli) fn read<C>(
    input: &mut impl BufRead,
    parse: impl Fn(&str) -> Result<ParsedValue<C>, String>,
    sink: &Sink<C>,
) -> Result<(), ReceiverGone> {
    let mut bytes = Vec::new();
    for number in 1.. {
        bytes.clear();
        let line = input.by_ref().take(LONGEST).read_until(b'\n', &mut bytes);
        match line {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return sink.put(Item::Broken(error.to_string())),
        }
        let item_number = ItemNumber::Line(number);
        if bytes.last() != Some(&b'\n') && bytes.len() as u64 == LONGEST {
            sink.put(Item::Bad(
                item_number,
                format!("longer than {LONGEST} bytes"),
            ))?;
            if let Err(error) = input.skip_until(b'\n') {
                return sink.put(Item::Broken(error.to_string()));
            }
            continue;
        }
        let parsed = match str::from_utf8(&bytes).map(str::trim) {
            Ok(text) if text.is_empty() || text.starts_with('#') => continue,
            Ok(text) => parse(text),
            Err(_) => Err("not valid UTF-8".to_owned()),
        };
        match parsed {
            Ok(change) => sink.put_change(item_number, change)?,
            Err(error) => sink.put(Item::Bad(item_number, error))?,
        }
    }
    Ok(())
}

/// Splits off the first word.
pub(in crate::cli) fn word(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((word, rest)) => (word, rest.trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn lines_are_counted_and_comments_ask_for_nothing() {
        let (sender, items) = sync_channel(9);
        let long = "x".repeat(5_000);
        let input = format!("one\n\n  # nobody\n\ttwo more \n{long}\nbad\nodd\nlast");
        let parse = |text: &str| match text {
            "bad" => Err("it is bad".to_owned()),
            "odd" => Ok(ParsedValue::corrected("even".to_owned(), "odd", "even")),
            text => Ok(ParsedValue::plain(text.to_owned())),
        };
        assert!(read(&mut input.as_bytes(), parse, &Sink(sender)).is_ok());
        let items = items.iter().map(|item| match item {
            Item::Change(number, change) => format!("{number}: {change}"),
            Item::Bad(number, error) => format!("{number}: {error}!"),
            Item::Warning(number, warning) => format!("{number}: {warning}."),
            Item::Skipped | Item::Broken(_) => "neither is here".to_owned(),
        });
        let expected = [
            "line 1: one",
            "line 4: two more",
            "line 5: longer than 4096 bytes!",
            "line 6: it is bad!",
            "line 7: 'odd' is read as even.",
            "line 7: even",
            "line 8: last",
        ];
        assert!(items.eq(expected));
    }

    #[test]
    fn words() {
        assert_eq!(word("one  two three"), ("one", "two three"));
        assert_eq!(word("one"), ("one", ""));
    }
}
