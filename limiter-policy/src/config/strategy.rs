//! The field `strategy` of a limit: by which rule it decides.

use limiter_common::{limit::Cost, strategy::Strategy};

use super::{
    nearest,
    node::Node,
    reader::{Fields, Reader},
};

/// The field's name.
pub(super) const FIELD: &str = "strategy";

/// What the name of the Python library's strategy has that is not here:
/// `fixed-window-elastic-expiry`.
const ELASTIC: &str = "elastic";

/// What the names of the Python library's classes end in.
const CLASS_ENDING: &str = "ratelimiter";

/// Reads the strategy, which is the default one when nothing is said of it; `None`: there is
/// something wrong with it, which was noted. Nothing depends on a `cost` that is not known.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    fields: &Fields<'n>,
    cost: Option<Cost>,
) -> Option<Strategy> {
    let Some(node) = fields.get(FIELD) else {
        return Some(Strategy::default());
    };
    let strategy = named(reader, node)?;
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

/// Notes that an override cannot have one.
pub(super) fn refuse_in_override(reader: &mut Reader<'_, '_>, fields: &Fields<'_>) {
    if let Some((name, _)) = fields.named(FIELD) {
        let message = format!(
            "'{FIELD}' is the limit's: an override has other numbers, and is decided by the same \
             rule"
        );
        reader.error(name.at, message);
    }
}

fn named<'n>(reader: &mut Reader<'n, '_>, node: &'n Node<'n>) -> Option<Strategy> {
    let names = Strategy::ALL.map(Strategy::name);
    let text = reader.text(node, &nearest::alternatives(&names))?;
    let found = Strategy::ALL.into_iter().find(|one| one.name() == text);
    if found.is_none() {
        reader.error(node.at, unknown(text, &names));
    }
    found
}

/// What is to be said of a text that names no strategy.
fn unknown(text: &str, names: &[&str]) -> String {
    let letters = letters(text);
    let begins = |name: &&&str| !letters.is_empty() && self::letters(name).starts_with(&letters);
    if letters.contains(ELASTIC) {
        format!(
            "'{text}' is no strategy here: in it every hit extends the window, also a denied one, \
             so who keeps trying is locked out for ever, and whoever can forge an address can do \
             that to it (the Python library deprecates it since 4.1); use {} or {} with a 'ban'",
            Strategy::FixedWindow.name(),
            Strategy::Gcra.name(),
        )
    } else if let Some(name) = names.iter().find(begins) {
        format!("unknown {FIELD} '{text}', did you mean '{name}'?")
    } else {
        nearest::unknown(FIELD, text, names)
    }
}

/// The letters of a name without what spellings differ by: case, what stands between words, and
/// the ending of a class of Python.
fn letters(name: &str) -> String {
    let letters = name.chars().filter(|character| character.is_alphabetic());
    let letters = letters.collect::<String>().to_lowercase();
    match letters.strip_suffix(CLASS_ENDING) {
        Some(letters) => letters.to_owned(),
        None => letters,
    }
}
