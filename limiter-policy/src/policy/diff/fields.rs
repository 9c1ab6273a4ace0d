//! The fields of a limit, as a difference shows them: one entry for each, in the order of the output.

use std::fmt::Display;

use limiter_common::{limit::Cost, strategy::Strategy};

use super::BucketFate;
use crate::policy::{Limit, Rate, automatic, id_text};

/// A field of a limit.
pub(super) struct Field {
    /// Its name in configuration files; `rate` stands for `burst`, `count` and `period`.
    pub(super) name: &'static str,
    /// Its value as in a configuration file.
    pub(super) text: fn(&Limit) -> String,
    /// Whether an added limit shows it: it always matters, or differs from the default.
    pub(super) is_shown: fn(&Limit) -> bool,
    /// Whether two limits differ in it.
    pub(super) differs: fn(&Limit, &Limit) -> bool,
    /// The effect of a change on the limit's buckets.
    pub(super) buckets: BucketFate,
}

/// An entry for an optional field that a change of buckets does not depend on.
macro_rules! optional {
    ($name:literal, $field:ident) => {
        Field {
            name: $name,
            text: |limit| or_none(limit.$field.as_ref()),
            is_shown: |limit| limit.$field.is_some(),
            differs: |old, new| old.$field != new.$field,
            buckets: BucketFate::Kept,
        }
    };
}

/// An entry for a field that names lists.
macro_rules! lists {
    ($name:literal, $field:ident) => {
        Field {
            name: $name,
            text: |limit| list_names(&limit.$field),
            is_shown: |limit| !limit.$field.is_empty(),
            differs: |old, new| old.$field != new.$field,
            buckets: BucketFate::Kept,
        }
    };
}

pub(super) const FIELDS: [Field; 17] = [
    Field {
        name: "id",
        text: |limit| id_text(limit.id_format, limit.per_name),
        is_shown: |_| true,
        differs: |old, new| (old.id_format, old.per_name) != (new.id_format, new.per_name),
        buckets: BucketFate::Full,
    },
    Field {
        name: "cost",
        text: |limit| limit.cost.name().to_owned(),
        is_shown: |_| true,
        differs: |old, new| old.cost != new.cost,
        buckets: BucketFate::Full,
    },
    Field {
        name: "strategy",
        text: |limit| limit.strategy.name().to_owned(),
        is_shown: |limit| limit.strategy != Strategy::default(),
        differs: |old, new| old.strategy != new.strategy,
        buckets: BucketFate::Anew,
    },
    Field {
        name: "match",
        text: |limit| {
            if limit.matching.is_everything() {
                "all".to_owned()
            } else {
                limit.matching.to_string()
            }
        },
        is_shown: |_| true,
        differs: |old, new| old.matching != new.matching,
        buckets: BucketFate::Kept,
    },
    Field {
        name: "rate",
        text: rate_of,
        is_shown: |_| true,
        differs: |old, new| (old.default, old.ceiling) != (new.default, new.ceiling),
        buckets: BucketFate::DebtInTokens,
    },
    // A share of another number of nodes is another rate, but a budget of all nodes has other buckets than the host's.
    Field {
        name: "scope",
        text: |limit| {
            (if limit.fleet_nodes.is_some() {
                "fleet"
            } else {
                "host"
            })
            .to_owned()
        },
        is_shown: |limit| limit.fleet_nodes.is_some(),
        differs: |old, new| old.fleet_nodes.is_some() != new.fleet_nodes.is_some(),
        buckets: BucketFate::Full,
    },
    Field {
        name: "nodes",
        text: |limit| or_none(limit.fleet_nodes.as_ref()),
        is_shown: |limit| limit.fleet_nodes.is_some(),
        differs: |old, new| {
            let nodes = old.fleet_nodes.zip(new.fleet_nodes);
            nodes.is_some_and(|(old, new)| old != new)
        },
        buckets: BucketFate::DebtInTokens,
    },
    Field {
        name: "mode",
        text: |limit| limit.mode.name().to_owned(),
        is_shown: |_| true,
        differs: |old, new| old.mode != new.mode,
        buckets: BucketFate::Kept,
    },
    optional!("reserve", reserve),
    optional!("deny", deny),
    optional!("ban", ban),
    optional!("queue", queue),
    optional!("group", group),
    optional!("ip-rep", ip_rep),
    optional!("metrics", metrics),
    lists!("exclude", exclude),
    lists!("block", block),
];

fn rate_of(limit: &Limit) -> String {
    match (limit.default, limit.ceiling) {
        (Some(floor), Some(ceiling)) => automatic::shown(&floor, ceiling),
        (Some(rate), _) if limit.cost == Cost::Connections => format!("{{limit: {}}}", rate.burst),
        (rate, _) => rate_text(rate, limit.strategy),
    }
}

pub(super) fn rate_text(rate: Option<Rate>, strategy: Strategy) -> String {
    or_none(rate.map(|rate| rate.shown(strategy)).as_ref())
}

pub(super) fn list_names(names: &[String]) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn or_none(value: Option<&impl Display>) -> String {
    value.map_or_else(|| "none".to_owned(), ToString::to_string)
}
