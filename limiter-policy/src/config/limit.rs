//! One limit of the section `limits`: built in, or defined by the file.

use std::ops::{Deref, DerefMut};

use limiter_common::{
    answer::Answer,
    limit::{BUILT_IN, BuiltIn, Cost, IdFormat, NameKind},
    strategy::Strategy,
};

use super::{
    diagnostics::FilePosition,
    fields, foreign,
    limit_fields::{COST, FIELDS},
    limit_id::{ID, LimitKeys},
    list_names::ListNames,
    nearest,
    node::Node,
    rate::{self, RateContext},
    reader::{Fields, Name, Reader},
};
use crate::policy::{self, Limit, Mode, Rate};

/// A limit of the file, with the facts that later checks need. It derefs to the limit, which lacks its interned id, its
/// lists and overrides, and of several rates all but the first.
pub(super) struct Definition {
    pub(super) limit: Limit,
    /// The position of its first mention.
    pub(super) position: FilePosition,
    /// The positions of fields that later checks name.
    pub(super) fields: FieldPositions,
    pub(super) unknown: UnknownParts,
    /// The rates of keys without an override, each a limit of its own; empty: none, or invalid.
    pub(super) rates: Vec<Rate>,
    /// Whether all fields of a rate are absent.
    pub(super) lacks_rate: bool,
    /// The lists with packets that it does not count.
    pub(super) exclude_lists: ListNames,
    /// The lists with packets that it drops.
    pub(super) block_lists: ListNames,
    /// Whether it names lists to drop, even wrong ones.
    pub(super) blocks: bool,
}

/// The positions of a limit's fields; `None`: absent or invalid.
#[derive(Default)]
pub(super) struct FieldPositions {
    pub(super) ban: Option<FilePosition>,
    pub(super) group: Option<FilePosition>,
    pub(super) ip_rep: Option<FilePosition>,
    pub(super) metrics: Option<FilePosition>,
    /// `scope: fleet`; `None`: each host has its own budget.
    pub(super) fleet: Option<FilePosition>,
}

/// The parts of a limit that are missing or invalid, so that nothing can be checked against them.
#[derive(Default)]
pub(super) struct UnknownParts {
    pub(super) keys: bool,
    pub(super) cost: bool,
    pub(super) strategy: bool,
}

impl Deref for Definition {
    type Target = Limit;

    fn deref(&self) -> &Limit {
        &self.limit
    }
}

impl DerefMut for Definition {
    fn deref_mut(&mut self) -> &mut Limit {
        &mut self.limit
    }
}

impl Definition {
    /// Wraps a limit that has its rates, without the positions of fields.
    pub(super) fn new(limit: Limit, position: FilePosition, rates: Vec<Rate>) -> Self {
        Self {
            limit,
            position,
            fields: FieldPositions::default(),
            unknown: UnknownParts::default(),
            lacks_rate: rates.is_empty(),
            rates,
            exclude_lists: ListNames::default(),
            block_lists: ListNames::default(),
            blocks: false,
        }
    }

    /// Returns a built-in limit without any settings.
    pub(super) fn of(limit: &BuiltIn, position: FilePosition) -> Self {
        Self::new(Limit::of_built_in(limit, None), position, Vec::new())
    }

    /// Returns a limit of the file's own, whose id and cost are not known yet.
    fn of_its_own(name: &str, position: FilePosition) -> Self {
        let limit = Limit::with_name(name, IdFormat::Total, Cost::Packets);
        Self {
            unknown: UnknownParts {
                keys: true,
                cost: true,
                strategy: false,
            },
            ..Self::new(limit, position, Vec::new())
        }
    }

    pub(super) fn keys(&self) -> LimitKeys {
        LimitKeys {
            format: self.id_format,
            per_name: self.per_name,
        }
    }

    pub(super) fn set_keys(&mut self, keys: LimitKeys) {
        self.id_format = keys.format;
        self.per_name = keys.per_name;
    }

    pub(super) fn known_keys(&self) -> Option<LimitKeys> {
        (!self.unknown.keys).then(|| self.keys())
    }

    pub(super) fn known_id_format(&self) -> Option<IdFormat> {
        self.known_keys().map(|keys| keys.format)
    }

    pub(super) fn known_cost(&self) -> Option<Cost> {
        (!self.unknown.cost).then_some(self.cost)
    }

    pub(super) fn known_strategy(&self) -> Option<Strategy> {
        (!self.unknown.strategy).then_some(self.strategy)
    }

    /// Returns the constraints on its rates and on the rates of its overrides.
    pub(super) fn context(&self) -> RateContext {
        RateContext {
            cost: self.known_cost(),
            strategy: self.known_strategy(),
        }
    }

    /// Returns whether it tells registered domains apart.
    pub(super) fn is_of_domains(&self) -> bool {
        self.name_kind() == Some(NameKind::Domain)
    }

    /// Returns whether it has no effect without overrides.
    pub(super) fn needs_overrides(&self) -> bool {
        self.lacks_rate && !self.blocks && self.mode != Mode::Off
    }

    /// Returns the number of its rates, each a limit of its own; `None`: unknown.
    pub(super) fn parts(&self) -> Option<usize> {
        match self.rates.len() {
            0 if self.lacks_rate => Some(1),
            0 => None,
            parts => Some(parts),
        }
    }

    /// Returns whether it answers the senders of dropped packets.
    pub(super) fn answers(&self) -> bool {
        self.deny.is_some() && self.mode == Mode::Enforce
    }

    pub(super) fn makes_syn_cookies(&self) -> bool {
        self.answers() && self.deny.is_some_and(|deny| deny.sends(Answer::SynCookie))
    }

    /// Returns the names of the limits that its rates make.
    pub(super) fn part_names(&self) -> impl Iterator<Item = String> {
        let parts = self.parts().unwrap_or(1);
        (0..parts).map(|part| policy::part_name(&self.name, part))
    }
}

pub(super) fn built_in(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().find(|limit| limit.name == name)
}

/// Reads a limit; `None`: its id or cost is unknown, and an error was reported.
pub(super) fn read<'n>(
    reader: &mut Reader<'n, '_>,
    name: Name<'n>,
    body: &'n Node<'n>,
) -> Option<Definition> {
    let position = reader.position(name.at);
    let built_in = built_in(name.text);
    let mut limit = match built_in {
        Some(built_in) => Definition::of(built_in, position),
        None => Definition::of_its_own(name.text, position),
    };
    let fields = fields::read(reader, body, rate::EXPECTED, FIELDS, &mut limit);
    if built_in.is_none() {
        check_definition(reader, name, fields.as_ref());
    }
    fields?;
    (!limit.unknown.keys && !limit.unknown.cost).then_some(limit)
}

/// Reports a limit of the file's own that has no valid name, or lacks the fields that define it.
fn check_definition(reader: &mut Reader<'_, '_>, name: Name<'_>, fields: Option<&Fields<'_>>) {
    let Some(fields) = fields.filter(|fields| !(fields.is_missing(ID) && fields.is_missing(COST)))
    else {
        report_unknown(reader, name);
        return;
    };
    check_name(reader, name);
    for field in [ID, COST] {
        if fields.is_missing(field) {
            reader.error(name.at, format!("missing field '{field}'"));
        }
    }
}

/// Reports an unknown limit, with the nearest known name.
fn report_unknown(reader: &mut Reader<'_, '_>, name: Name<'_>) {
    if let Some(message) = foreign::boulder_limit(name.text) {
        reader.error(name.at, message);
        return;
    }
    let known = BUILT_IN.map(|limit| limit.name);
    let message = match nearest::nearest(name.text, &known) {
        Some(near) => format!(
            "unknown limit '{}', did you mean '{near}'? (A limit of your own needs '{ID}' and \
             '{COST}')",
            name.text
        ),
        None => format!(
            "unknown limit '{}': a limit of your own needs '{ID}' and '{COST}'; the built-in \
             limits are {}",
            name.text,
            known.join(", ")
        ),
    };
    reader.error(name.at, message);
}

fn check_name(reader: &mut Reader<'_, '_>, name: Name<'_>) {
    let same = BUILT_IN
        .iter()
        .find(|limit| limit.name.eq_ignore_ascii_case(name.text));
    let why = if !nearest::is_name(name.text) {
        nearest::expected_name()
    } else if let Some(limit) = same {
        format!(
            "which differs from a built-in name only in case, did you mean '{}'?",
            limit.name
        )
    } else {
        return;
    };
    reader.error(name.at, format!("invalid name '{}', {why}", name.text));
}
