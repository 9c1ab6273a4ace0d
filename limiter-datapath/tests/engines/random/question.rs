//! DNS questions, and matches of policies for them.

use limiter_policy::policy::{
    DnsMatch, DnsName, NamePattern, OverriddenName, Rate, SuffixKind, SuffixRule,
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{select, subsequence},
};

use super::policy::rate;

/// Names in queries and in policies; the last is below most of the others.
pub(super) const NAMES: [&str; 6] = [
    ".",
    "com",
    "example.com",
    "net",
    "a.example.com",
    "x.a.example.com",
];

const TYPES: [u16; 4] = [1, 16, 255, 65];

/// A message with a question, now and then in other letters, and sometimes with the record `OPT`.
pub(super) fn message() -> impl Strategy<Value = Vec<u8>> {
    let name = select(NAMES.to_vec());
    let flags = prop_oneof![Just(0x01), Just(0x00), any::<u8>()];
    let of_type = select(TYPES.to_vec());
    (
        name,
        flags,
        of_type,
        any::<bool>(),
        any::<bool>(),
        option::weighted(0.2, "[a-c]{1,3}"),
    )
        .prop_map(|(name, flags, of_type, upper, with_opt, below)| {
            let mut message = vec![0, 9, flags, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(with_opt)];
            let name = if upper {
                name.to_uppercase()
            } else {
                name.to_owned()
            };
            let below = below.as_deref().unwrap_or_default();
            for label in below
                .split('.')
                .chain(name.split('.'))
                .filter(|one| !one.is_empty())
            {
                message.extend(u8::try_from(label.len()));
                message.extend(label.bytes());
            }
            message.push(0);
            message.extend(of_type.to_be_bytes());
            message.extend([0, 1]);
            if with_opt {
                message.extend([0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0]);
            }
            message
        })
}

/// The zones of a policy, perhaps none.
pub(super) fn zones() -> impl Strategy<Value = Vec<DnsName>> {
    names_of(0..5)
}

/// That many of the names, sorted.
pub(super) fn names_of(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<DnsName>> {
    subsequence(NAMES[1..].to_vec(), count).prop_map(|names| {
        let mut names: Vec<DnsName> = names.into_iter().map(name_of).collect();
        names.sort_unstable();
        names
    })
}

/// The public suffixes of a policy, perhaps none.
pub(super) fn public_suffixes() -> impl Strategy<Value = Vec<SuffixRule>> {
    let kinds = [SuffixKind::Name, SuffixKind::RightBelow, SuffixKind::Except];
    let rule = (select(NAMES[1..].to_vec()), select(kinds.to_vec()));
    vec(rule, 0..5).prop_map(|rules| {
        let rules = rules.into_iter();
        let rules = rules.map(|(text, kind)| SuffixRule {
            name: name_of(text),
            kind,
        });
        let mut rules: Vec<_> = rules
            .filter(|rule| rule.name != DnsName::default())
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    })
}

/// A name of an override, with a type; whether it is for every source; and its rate.
pub(super) fn overridden() -> impl Strategy<Value = (OverriddenName, bool, Rate)> {
    let name = (select(NAMES.to_vec()), select(TYPES[..2].to_vec()));
    let name = name.prop_map(|(text, of_type)| OverriddenName {
        name: name_of(text),
        question: Some((of_type, 1)),
    });
    (name, any::<bool>(), rate())
}

/// A limit's match on questions.
pub(super) fn matching() -> impl Strategy<Value = DnsMatch> {
    let names = subsequence(NAMES.to_vec(), 0..3);
    (
        names,
        any::<bool>(),
        subsequence(TYPES.to_vec(), 0..3),
        option::weighted(0.2, prop_oneof![Just(0u8), 0..16u8]),
        option::weighted(0.2, any::<bool>()),
        option::weighted(0.2, any::<bool>()),
    )
        .prop_map(
            |(names, below, types, opcode, recursion_desired, edns)| DnsMatch {
                names: (names.into_iter().map(name_of))
                    .map(|name| NamePattern { name, below })
                    .collect(),
                types,
                opcodes: opcode.into_iter().collect(),
                recursion_desired,
                edns,
            },
        )
}

pub(super) fn name_of(text: &str) -> DnsName {
    text.parse().expect("a name")
}
