//! The table of names: the longest known suffix of a question's name is its zone, wherever the search stops.

use std::collections::BTreeSet;

use limiter_common::{
    dns::{Message, match_message},
    name_hash::zone_number,
};
use proptest::prelude::*;

use crate::{config, policy::CompiledPolicy};

/// A query for the IPv4 address of a name.
fn query(labels: &[&str]) -> Message {
    let mut bytes = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in labels {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.extend([0, 0, 1, 0, 1]);
    let mut message = Message::EMPTY;
    message.begin(bytes.len() as u64)[..bytes.len()].copy_from_slice(&bytes);
    message
}

/// Some labels, few of them different.
fn labels() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(prop_oneof![Just("a"), Just("bb")], 0..7)
}

proptest! {
    #[test]
    fn the_longest_zone_is_found(
        zones in proptest::collection::btree_set(labels(), 1..8),
        questions in proptest::collection::vec(labels(), 1..20),
    ) {
        let list: Vec<String> = zones.iter().map(|zone| format!("{}.", zone.join("."))).collect();
        let text = format!(
            "limits: {{Zones: {{id: zone, cost: packets, burst: 1, count: 1, period: 1s}}}}\nzones: {list:?}\n"
        );
        let config = config::parse(&text, "policy").map_err(|errors| TestCaseError::fail(errors.to_string()))?;
        let tables = CompiledPolicy::new(&config.policy, 1).unwrap();
        let zones: BTreeSet<&[&str]> = zones.iter().map(Vec::as_slice).collect();
        for question in questions {
            let longest = (0..=question.len()).map(|first| &question[first..]).find(|end| zones.contains(end));
            let number = longest.map_or(0, |zone| {
                let wire: Vec<u8> = zone
                    .iter()
                    .flat_map(|label| [&[u8::try_from(label.len()).unwrap()], label.as_bytes()].concat())
                    .chain([0])
                    .collect();
                zone_number(&wire)
            });
            prop_assert_eq!(match_message(&tables, &mut query(&question)).zone, number, "{:?}", question);
        }
    }
}
