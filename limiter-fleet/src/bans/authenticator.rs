//! Authentication of ban updates and heartbeats.
//!
//! Nodes must share only the fleet's name and key: they come and go without a list of members.

use sha2::{Digest as _, Sha256};

use super::{
    heartbeat::{EarlierHeartbeat, Heartbeat},
    update::BanUpdate,
};
use crate::{
    Name,
    envelope::{Envelope, Keys, MAC_LENGTH, OpenError, read, written},
};

/// The most updates about bans in a message.
pub const MOST_BAN_UPDATES: usize = 256;

/// The most bytes of an update: two prefixes' worth, the texts and the numbers, with room to spare.
const LONGEST_UPDATE: usize = 512;

/// Authenticates and verifies ban updates and heartbeats.
#[derive(Clone, Debug)]
pub struct BanAuthenticator {
    bans: Envelope,
    heartbeats: Envelope,
}

impl BanAuthenticator {
    /// Returns the authenticator of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        let envelope = |purpose, updates: usize| Envelope {
            keys: keys.clone(),
            purpose,
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: 1 + MAC_LENGTH + 2 + updates * LONGEST_UPDATE,
        };
        Self {
            bans: envelope(b"limiter fleet, bans", MOST_BAN_UPDATES),
            heartbeats: envelope(b"limiter fleet, beats", 1),
        }
    }

    /// Writes a message of at most [`MOST_BAN_UPDATES`].
    #[must_use]
    pub fn message(&self, updates: &[BanUpdate]) -> Vec<u8> {
        debug_assert!(updates.len() <= MOST_BAN_UPDATES, "{}", updates.len());
        self.bans.close(&written(&updates))
    }

    /// Reads a message. Its updates are not [checked](BanUpdate::check) yet.
    ///
    /// # Errors
    ///
    /// The message is not from a node of the fleet.
    pub fn open(&self, message: &[u8]) -> Result<Vec<BanUpdate>, OpenError> {
        let updates = read::<Vec<BanUpdate>>(self.bans.open(message)?)?;
        if updates.len() > MOST_BAN_UPDATES {
            return Err(OpenError::Body);
        }
        Ok(updates)
    }

    /// Returns whether an [opened](Self::open) message is authenticated with the current key. A message
    /// under the other key becomes unreadable once the nodes forget that key.
    #[must_use]
    pub fn is_current(&self, message: &[u8]) -> bool {
        self.bans.is_current(message)
    }

    /// Writes a heartbeat.
    #[must_use]
    pub fn heartbeat(&self, heartbeat: &Heartbeat) -> Vec<u8> {
        self.heartbeats.close(&written(heartbeat))
    }

    /// Reads a heartbeat.
    ///
    /// # Errors
    ///
    /// The heartbeat is not from a node of the fleet.
    pub fn open_heartbeat(&self, heartbeat: &[u8]) -> Result<Heartbeat, OpenError> {
        let body = self.heartbeats.open(heartbeat)?;
        let heartbeat = read::<Heartbeat>(body)
            .or_else(|_| read::<EarlierHeartbeat>(body).map(Heartbeat::from))?;
        if heartbeat.is_right() {
            Ok(heartbeat)
        } else {
            Err(OpenError::Body)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Key,
        bans::{
            heartbeat::StreamPlace,
            update::{BanId, BanState, Stamp},
        },
    };

    fn authenticator(fleet: &str, current: u8, other: Option<u8>) -> BanAuthenticator {
        let key = |byte: u8| Key::new(&[byte; 32]).unwrap();
        let keys = Keys {
            current: key(current),
            other: other.map(key),
        };
        BanAuthenticator::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest() -> BanUpdate {
        BanUpdate {
            id: BanId {
                prefix: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128"
                    .parse()
                    .unwrap(),
                origin: "o".repeat(64).into(),
            },
            stamp: Stamp {
                ms: u64::MAX,
                node: "n".repeat(63).as_str().try_into().unwrap(),
            },
            state: BanState::Banned {
                until_ms: Some(u64::MAX),
                reason: "r".repeat(88).into(),
                limit: Some("l".repeat(128).into()),
            },
            ends_ms: u64::MAX,
        }
    }

    #[test]
    fn a_message_has_what_was_written() {
        let authenticator = authenticator("edge", 1, None);
        let updates = vec![longest(); MOST_BAN_UPDATES];
        assert_eq!(
            authenticator.open(&authenticator.message(&updates)),
            Ok(updates)
        );
        let heartbeat = Heartbeat::new("a".try_into().unwrap(), "1.2.3", 7, 9);
        assert_eq!(
            authenticator.open_heartbeat(&authenticator.heartbeat(&heartbeat)),
            Ok(heartbeat.clone())
        );
        let place = StreamPlace { ms: 5, number: 6 };
        let more = heartbeat
            .clone()
            .with_read(Some(place))
            .with_nodes(Some(u64::MAX));
        assert_eq!(
            authenticator.open_heartbeat(&authenticator.heartbeat(&more)),
            Ok(more)
        );
        // An earlier version does not report the last message read.
        let earlier = written(&(
            &heartbeat.node,
            &heartbeat.version,
            heartbeat.policy,
            heartbeat.ms,
        ));
        assert_eq!(
            authenticator.open_heartbeat(&authenticator.heartbeats.close(&earlier)),
            Ok(heartbeat)
        );
    }

    #[test]
    fn only_nodes_of_the_fleet_are_accepted() {
        let own = authenticator("edge", 1, Some(2));
        let updates = [longest()];
        for (fleet, key, is_accepted) in [
            ("edge", 1, true),
            ("edge", 2, true),
            ("edge", 3, false),
            ("core", 1, false),
        ] {
            let opened = own.open(&authenticator(fleet, key, None).message(&updates));
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
        }
        for (key, other, is_current) in [(1, None, true), (1, Some(2), true), (2, Some(1), false)] {
            let message = authenticator("edge", 1, None).message(&updates);
            let now = authenticator("edge", key, other);
            assert_eq!(now.is_current(&message), is_current, "{key} {other:?}");
        }
        // A heartbeat is no message.
        let heartbeat = Heartbeat::new("a".try_into().unwrap(), "1", 7, 9);
        assert_eq!(own.open(&own.heartbeat(&heartbeat)), Err(OpenError::Mac));
        assert_eq!(own.open(&vec![1; 1_000_000]), Err(OpenError::TooLong));
    }

    proptest! {
        /// Any bytes that a key holder authenticates are updates or an error, never a panic.
        #[test]
        fn any_authenticated_bytes_are_updates_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let authenticator = authenticator("edge", 1, None);
            if let Ok(updates) = authenticator.open(&authenticator.bans.close(&body)) {
                for update in updates {
                    let _ = update.check(0);
                }
            }
            let _ = authenticator.open_heartbeat(&authenticator.heartbeats.close(&body));
        }

        #[test]
        fn a_changed_message_is_none(at in 1_usize..200, to: u8) {
            let authenticator = authenticator("edge", 1, None);
            let mut message = authenticator.message(&[longest()]);
            let at = at % message.len();
            prop_assume!(at > 0 && message[at] != to);
            message[at] = to;
            prop_assert_eq!(authenticator.open(&message), Err(OpenError::Mac));
        }
    }
}
