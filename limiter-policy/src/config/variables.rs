//! Variables of the environment in a text: `${NAME}`.

use std::{
    borrow::Cow,
    env::{self, VarError},
};

use super::{node::Node, reader::Reader};

/// The beginning of a variable.
const BEGIN: &str = "${";

/// The most bytes of a text with variables; the kernel takes no longer path.
const MOST: usize = 4096;

/// Reads a scalar as text, with its variables replaced by their values.
///
/// A pushed file has no variables: an error message would show this node's values to another node.
pub(super) fn text<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    expected: &str,
) -> Option<Cow<'n, str>> {
    let text = reader.text(node, expected)?;
    let file = reader.position(node.at).file;
    if reader.problems().is_pushed(file) {
        return Some(Cow::Borrowed(text));
    }
    match expand(text, |name| env::var(name)) {
        Ok(text) => Some(text),
        Err((offset, message)) => {
            reader.error(reader.within(node, offset), message);
            None
        }
    }
}

/// Replaces each variable once: a value that looks like a variable stays. An error has the byte where its variable
/// begins.
fn expand(
    text: &str,
    value: impl Fn(&str) -> Result<String, VarError>,
) -> Result<Cow<'_, str>, (usize, String)> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let at = text.len() - after.len() - BEGIN.len();
        let Some((name, after)) = after.split_once('}') else {
            return Err((
                at,
                format!("'{BEGIN}' begins a variable, but '}}' is missing"),
            ));
        };
        let value = value(name).map_err(|error| {
            let problem = match error {
                VarError::NotPresent => {
                    "is not set: a service has it from `Environment=`, a command from its shell"
                }
                VarError::NotUnicode(_) => "is not UTF-8 text",
            };
            (at, format!("the variable '{name}' {problem}"))
        })?;
        expanded = expanded + before + &value;
        if expanded.len() > MOST {
            let message = format!("with the variable '{name}' it has more than {MOST} bytes");
            return Err((at, message));
        }
        rest = after;
    }
    Ok(if rest.len() == text.len() {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(expanded + rest)
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::*;

    fn value(name: &str) -> Result<String, VarError> {
        match name {
            "SITE" => Ok("fra".to_owned()),
            "NESTED" => Ok("${SITE}".to_owned()),
            "LONG" => Ok("x".repeat(MOST - 1)),
            "BYTES" => Err(VarError::NotUnicode(OsString::new())),
            _ => Err(VarError::NotPresent),
        }
    }

    #[test]
    fn values_take_the_place_of_variables() {
        for (text, expected) in [
            ("", ""),
            ("$SITE {SITE} $", "$SITE {SITE} $"),
            ("${SITE}", "fra"),
            ("a-${SITE}-${SITE}.key", "a-fra-fra.key"),
            ("$${SITE}}", "$fra}"),
            ("${NESTED}", "${SITE}"),
        ] {
            assert_eq!(expand(text, value).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn variables_without_a_value() {
        for (text, at, expected) in [
            ("ä${SITE", 2, "'}' is missing"),
            ("${SITE}${}", 7, "the variable '' is not set"),
            ("x${TOWN}", 1, "the variable 'TOWN' is not set: "),
            ("${BYTES}", 0, "the variable 'BYTES' is not UTF-8"),
            ("ab${LONG}", 2, "more than 4096 bytes"),
        ] {
            let (offset, message) = expand(text, value).unwrap_err();
            assert!(
                offset == at && message.contains(expected),
                "{text}: {offset} {message}"
            );
        }
    }
}
