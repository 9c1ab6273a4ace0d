//! docs/messages.md lists every error, and every log message of level warning or error.

use std::{fs, path::Path};

use super::pages::{page, quoted};

/// Code that introduces a message: an attribute or a macro.
const BEGINNINGS: [&str; 4] = ["#[error(", "bail!(", "warn!(", "error!("];

/// Returns the text of every Rust file below a directory, except tests.
fn sources(directory: &Path) -> Vec<String> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(directory).expect("sources can be listed") {
        let path = entry.expect("sources can be listed").path();
        if path.is_dir() && !path.ends_with("tests") {
            texts.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && !path.ends_with("tests.rs")
        {
            let text = fs::read_to_string(path).expect("a source can be read");
            let code = text.split("#[cfg(test)]\nmod tests").next();
            texts.push(code.unwrap_or_default().to_owned());
        }
    }
    texts
}

/// Returns the messages in a source file, with `…` for each variable part.
fn messages(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    for beginning in BEGINNINGS {
        for (at, _) in source.match_indices(beginning) {
            // Not the end of a longer name, such as `reader.error!(`.
            let before = source[..at].chars().next_back();
            if before.is_some_and(|one| one.is_alphanumeric() || "_.:".contains(one)) {
                continue;
            }
            let rest = &source[at + beginning.len()..];
            // `#[error(transparent)]` has no message of its own.
            if let Some(literal) = literal(rest).filter(|_| !rest.starts_with("transparent")) {
                found.push(reported(literal));
            }
        }
    }
    found
}

/// Returns the content of the first string literal.
fn literal(text: &str) -> Option<&str> {
    let (_, text) = text.split_once('"')?;
    let mut escaped = false;
    let end = text.find(|character| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    })?;
    Some(&text[..end])
}

/// Returns a format string in the page's notation.
fn reported(literal: &str) -> String {
    let mut text = String::new();
    let mut characters = literal.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            // A line continuation, or an escape.
            ('\\', Some('\n')) => {
                while characters.next_if(|next| next.is_whitespace()).is_some() {}
            }
            ('\\', Some(next)) => {
                text.push(*next);
                characters.next();
            }
            ('{', Some('{')) | ('}', Some('}')) => {
                text.push(character);
                characters.next();
            }
            ('{', _) => {
                while characters.next_if(|next| *next != '}').is_some() {}
                characters.next();
                text.push('…');
            }
            _ => text.push(character),
        }
    }
    text
}

/// Returns whether a message matches a pattern, where `…` stands for any text.
fn is_like(pattern: &str, message: &str) -> bool {
    let mut pieces = pattern.split('…');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else {
        return false;
    };
    let pieces: Vec<_> = pieces.collect();
    let Some((last, between)) = pieces.split_last() else {
        return rest.is_empty();
    };
    for piece in between {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

/// Returns the page's patterns, quoted in the first columns of its tables.
fn patterns(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let first = rows.filter_map(|line| line.split(" | ").next());
    first.flat_map(quoted).collect()
}

fn all() -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = [
        "limiter-capture",
        "limiter-policy",
        "limiter-datapath",
        "limiter-fleet",
        "limiter-fleet-store",
        "limiter-daemon",
        "limiter-host",
        "limiter-offline",
        "limiter-protocol",
        "limiter-report",
        "limiter-reputation",
        "limiter-userspace",
        "limiter-web",
    ];
    let sources = names
        .iter()
        .flat_map(|name| sources(&crates.join(name).join("src")));
    let messages = sources.flat_map(|source| messages(&source));
    // A message of variable parts alone is documented under the messages it is made of.
    let is_reported = |message: &String| message.chars().any(char::is_alphabetic);
    messages.filter(is_reported).collect()
}

#[test]
fn every_message_is_told_with_its_remedy() {
    let page = page("messages.md");
    let patterns = patterns(&page);
    let messages = all();
    assert!(messages.len() > 200, "only {} messages", messages.len());
    let unreported: Vec<_> = messages
        .iter()
        .filter(|message| !patterns.iter().any(|pattern| is_like(pattern, message)))
        .collect();
    assert!(
        unreported.is_empty(),
        "not in docs/messages.md: {unreported:#?}"
    );
}

#[test]
fn the_page_tells_no_message_that_there_is_not() {
    let page = page("messages.md");
    let messages = all();
    let dead: Vec<_> = patterns(&page)
        .into_iter()
        .filter(|pattern| !messages.iter().any(|message| is_like(pattern, message)))
        .collect();
    assert!(dead.is_empty(), "no such messages: {dead:#?}");
}

#[test]
fn messages_are_found_and_compared() {
    let source = "#[error(\"cannot read {path}: {{\\\"a\\\"}} is \\\n   missing\")]\n\
                  bail!(\"no {} here\");\nreader.error!(\"x\");\n#[error(transparent)]\n\
                  my_warn!(\"y\")\nwarn!(limit, \"`a` for {b:.0}\");";
    assert_eq!(
        messages(source),
        [
            "cannot read …: {\"a\"} is missing",
            "no … here",
            "`a` for …"
        ]
    );
    for (pattern, message, expected) in [
        ("a b", "a b", true),
        ("a b", "a b c", false),
        ("a …", "a b c", true),
        ("…c", "a b c", true),
        ("a … c", "a b c", true),
        ("a … d", "a b c", false),
        ("… b …", "a b c", true),
        ("…x…", "a b c", false),
    ] {
        assert_eq!(is_like(pattern, message), expected, "{pattern}");
    }
}
