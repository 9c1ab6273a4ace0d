//! The field `strategy` of a limit: the rule for decisions.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{nearest, node::Node, reader::Reader};

pub(super) const FIELD: &str = "strategy";

/// Part of the name of `fixed-window-elastic-expiry`, a strategy of the Python library that we do not have.
const ELASTIC: &str = "elastic";

/// The ending of the Python library's class names.
const CLASS_ENDING: &str = "ratelimiter";

/// Reads the strategy; `None`: invalid, and already reported. An unknown `cost` (`None`) is not checked.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    node: &'n Node<'n>,
    cost: Option<Cost>,
) -> Option<Strategy> {
    let strategy = read_name(reader, node)?;
    if cost == Some(Cost::Bytes)
        && let Some(why) = strategy.why_no_bytes()
    {
        let name = strategy.name();
        let message = format!("'{FIELD}: {name}' is not for cost bytes: {why}");
        reader.error(node.at, message);
        return None;
    }
    Some(strategy)
}

fn read_name<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Strategy> {
    let names = Strategy::ALL.map(Strategy::name);
    let text = reader.text(node, &nearest::alternatives(&names))?;
    let found = Strategy::ALL.into_iter().find(|one| one.name() == text);
    if found.is_none() {
        reader.error(node.at, unknown(text, &names));
    }
    found
}

/// Returns the error for an unknown strategy.
fn unknown(text: &str, names: &[&str]) -> String {
    let letters = letters(text);
    let begins = |name: &&&str| !letters.is_empty() && self::letters(name).starts_with(&letters);
    if letters.contains(ELASTIC) {
        format!(
            "'{text}' is not supported: denied packets extend its window too, so a source that \
             keeps trying is locked out for ever, and anyone who forges its address can lock it \
             out (deprecated in the Python library since 4.1): use {} or {} with a 'ban'",
            Strategy::FixedWindow.name(),
            Strategy::Gcra.name(),
        )
    } else if let Some(name) = names.iter().find(begins) {
        format!("unknown {FIELD} '{text}', did you mean '{name}'?")
    } else {
        nearest::unknown(FIELD, text, names)
    }
}

/// Returns a name's letters without the differences between spellings: case, word separators, and the ending
/// of a Python class.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|character| character.is_alphabetic());
    let letters = letters.collect::<String>().to_lowercase();
    match letters.strip_suffix(CLASS_ENDING) {
        Some(letters) => letters.to_owned(),
        None => letters,
    }
}
