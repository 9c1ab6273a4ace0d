//! A policy's digest: hosts compare digests to find out whether they have the same policy.

use std::io;

use limiter_common::limit::LimitId;
use sha2::{Digest as _, Sha256};

use super::{Limit, Policy};

/// Returns the first bytes of the SHA-256 of a policy, with the addresses of its lists. Interned ids do not
/// count: they depend on earlier policies.
#[must_use]
pub fn digest(policy: &Policy) -> u64 {
    let mut limits: Vec<_> = policy.limits.iter().collect();
    limits.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let rest = Policy {
        limits: Vec::new(),
        ..policy.clone()
    };
    let mut hasher = Hasher(Sha256::new());
    // Writing to the hasher cannot fail.
    let _ = serde_json::to_writer(&mut hasher, &rest);
    for limit in limits {
        let limit = Limit {
            id: LimitId(0),
            ..limit.clone()
        };
        let _ = serde_json::to_writer(&mut hasher, &limit);
    }
    let first = hasher.0.finalize();
    first
        .iter()
        .take(8)
        .fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Hashes the bytes written to it.
struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config, policy::Names};

    #[test]
    fn only_what_is_limited_counts() {
        let policy = |text: &str| config::parse(text, "test").unwrap().policy;
        let rate = "{burst: 9, count: 9, period: 1s}";
        let two = format!("limits: {{PacketsPerIPAddress: {rate}, PacketsPerIPv6Range: {rate}}}");
        let one = policy(&two);
        let (names, _) = one.clone().with_names(&Names::default(), &[]).unwrap();
        assert_eq!(digest(&one), digest(&names));
        let mut renumbered = one.clone();
        renumbered.limits.reverse();
        for (number, limit) in (7..).zip(&mut renumbered.limits) {
            limit.id = LimitId(number);
        }
        assert_eq!(digest(&one), digest(&renumbered));
        let other = policy(&two.replace("burst: 9", "burst: 10"));
        assert_ne!(digest(&one), digest(&other));
        assert_ne!(
            digest(&one),
            digest(&policy(&format!("{two}\nmalformed: pass")))
        );
    }
}
