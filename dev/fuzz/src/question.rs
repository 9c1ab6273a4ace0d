//! Any bytes as a DNS message: limits count it exactly as a simple reference parser does.

use std::sync::OnceLock;

use limiter_common::dns::{MOST_BYTES, Message, match_message};
use limiter_policy::{
    config,
    policy::{CompiledPolicy, Policy},
};

use crate::decision::question::{Question, counts};

/// Limits with every part of a match, and names nested in each other.
const CONFIGURATION: &str = "
zones: [., a, b.a, c.b.a]
limits:
  Zone: {id: zone, cost: packets, rate: 1/s}
  Question: {id: question, cost: packets, rate: 1/s}
  Below: {id: total, cost: packets, rate: 1/s, match: {dns-name: ['*.a', b.a]}}
  Above: {id: total, cost: packets, rate: 1/s, match: {dns-name: ['*.c.b.a', ., a.b]}}
  Types: {id: total, cost: packets, rate: 1/s, match: {dns-type: [A, ANY, 0]}}
  Flags: {id: total, cost: packets, rate: 1/s, match: {dns-opcode: 0, dns-rd: true, edns: true}}
  Others: {id: total, cost: packets, rate: 1/s, match: {dns-opcode: [notify, 15], edns: false}}
";

/// Reads a message, and compares the result with the reference.
pub fn run(data: &[u8]) {
    static POLICY: OnceLock<(Policy, CompiledPolicy)> = OnceLock::new();
    let (policy, tables) = POLICY.get_or_init(|| {
        let config = config::parse(CONFIGURATION, "fuzz");
        let policy = config.unwrap_or_else(|errors| panic!("{errors}")).policy;
        let tables = CompiledPolicy::new(&policy, 1).unwrap_or_else(|error| panic!("{error}"));
        (policy, tables)
    });
    let mut message = Message::EMPTY;
    let length = data.len().min(MOST_BYTES);
    // Remains of an earlier message.
    message.begin(0).fill(1);
    message.begin(length as u64)[..length].copy_from_slice(&data[..length]);
    let asked = match_message(tables, &mut message);
    let question = Question::of_message(data);
    for (limit_index, limit) in policy.limits.iter().enumerate() {
        let is_counted = asked.limits >> limit_index & 1 == 1;
        let is_meant = counts(policy, limit, question.as_ref());
        assert_eq!(is_counted, is_meant, "{} counts {data:x?}", limit.name);
    }
    assert!(
        question.is_some() || asked.zone == 0 && asked.question == 0,
        "no question has a key: {data:x?}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name of the policy, other names, each flag and type, whole and truncated anywhere.
    #[test]
    fn messages_that_limits_tell_apart() {
        for name in [
            &b"\0"[..],
            b"\x01a\0",
            b"\x01B\x01A\0",
            b"\x01c\x01b\x01a\0",
            b"\x01x\x01c\x01b\x01a\0",
            b"\x01a\x01b\0",
            b"\x01a\xc0\x0c",
        ] {
            for flags in [0, 1, 0x20, 0x78, 0x79, 0x80] {
                for of_type in [0, 1, 16, 255] {
                    for records in 0..=1 {
                        let mut message = vec![0, 0, flags, 0, 0, 1, 0, 0, 0, 0, 0, records];
                        message.extend(name);
                        message.extend([0, of_type, 0, 1]);
                        message.extend([0, 0, 41, 0, 0, 0, 0, 0, 0, 0, 0]);
                        for length in 0..=message.len() {
                            run(&message[..length]);
                        }
                    }
                }
            }
        }
    }
}
