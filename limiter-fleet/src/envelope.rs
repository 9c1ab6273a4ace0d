//! Authenticated bytes: the version of the format in one byte, the MAC, and the body.

use hmac::digest::{CtOutput, Output};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest as _, Sha256};

use crate::{Key, Keys, Name, Refusal};

/// The version of the format.
const VERSION: u8 = 1;

/// The length of a MAC, in bytes.
const MAC_LENGTH: usize = 32;

const TOO_LONG: Refusal = Refusal::new("too_long", "it is too long");

const OTHER_VERSION: Refusal = Refusal::new("version", "another version of limiter wrote it");

/// No known key has authenticated it, or its node is of another fleet.
const MAC: Refusal = Refusal::new(
    "mac",
    "its MAC is wrong: its node has another key, other nodes in its list, or another name of the fleet",
);

/// The MAC is right, but the body is malformed.
pub(crate) const UNREADABLE: Refusal = Refusal::new("unreadable", "it cannot be read");

/// A kind of messages, which is part of their MAC: no message passes for one of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Updates of bans.
    Bans,
    /// Updates of known sources.
    Sources,
    /// Heartbeats.
    Heartbeats,
    /// Commands of a rollout.
    Commands,
    /// Replies to commands.
    Replies,
}

impl Kind {
    const fn purpose(self) -> &'static [u8] {
        match self {
            Self::Bans => b"limiter fleet, bans",
            Self::Sources => b"limiter fleet, proofs of sources",
            Self::Heartbeats => b"limiter fleet, beats",
            Self::Commands => b"limiter fleet, push orders",
            Self::Replies => b"limiter fleet, push answers",
        }
    }

    /// The most bytes of a message.
    #[must_use]
    pub const fn most_bytes(self) -> usize {
        // With room to spare: a ban has two prefixes' worth of bytes, texts and numbers.
        match self {
            Self::Bans | Self::Sources => 131_072,
            Self::Heartbeats => 512,
            Self::Commands | Self::Replies => 8_192,
        }
    }
}

/// Authenticates and verifies messages of one kind. Nodes must share only the fleet's name and key: they
/// come and go without a list of members.
#[derive(Clone, Debug)]
pub struct Envelope {
    keys: Keys,
    /// Text that no other use of the key begins with.
    purpose: &'static [u8],
    /// The digest of the configuration that all nodes must share.
    alike: Output<Sha256>,
    /// The most bytes of a message: longer ones are refused unread.
    most_bytes: usize,
}

impl Envelope {
    /// Returns the envelope of a kind of messages in the fleet with that name.
    #[must_use]
    pub fn new(kind: Kind, fleet: &Name, keys: &Keys) -> Self {
        Self {
            keys: keys.clone(),
            purpose: kind.purpose(),
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: kind.most_bytes(),
        }
    }

    /// Writes a message.
    #[must_use]
    pub fn write(&self, body: &(impl Serialize + ?Sized)) -> Vec<u8> {
        self.close(&written(body))
    }

    /// Reads a message. Its content is not checked yet.
    ///
    /// # Errors
    ///
    /// The message is not from a node of the fleet.
    pub fn read<T: DeserializeOwned>(&self, message: &[u8]) -> Result<T, Refusal> {
        match postcard::take_from_bytes(self.open(message)?) {
            Ok((read, [])) => Ok(read),
            _ => Err(UNREADABLE),
        }
    }

    pub(crate) fn close(&self, body: &[u8]) -> Vec<u8> {
        let mut message = vec![VERSION];
        message.extend(self.of(&self.keys.current, body).into_bytes());
        message.extend(body);
        message
    }

    /// Returns the authenticated body.
    fn open<'l>(&self, message: &'l [u8]) -> Result<&'l [u8], Refusal> {
        if message.len() > self.most_bytes {
            return Err(TOO_LONG);
        }
        let (version, rest) = message.split_first().ok_or(MAC)?;
        if *version != VERSION {
            return Err(OTHER_VERSION);
        }
        let (mac, body) = parts(rest).ok_or(MAC)?;
        let mut keys = [&self.keys.current].into_iter().chain(&self.keys.other);
        if keys.any(|key| self.of(key, body) == mac) {
            Ok(body)
        } else {
            Err(MAC)
        }
    }

    /// Returns whether a [read](Self::read) message is authenticated with the current key. A message under
    /// the other key becomes unreadable once the nodes forget that key.
    #[must_use]
    pub fn is_current(&self, message: &[u8]) -> bool {
        // Most of the time there is no other key.
        self.keys.other.is_none()
            || message
                .split_first()
                .and_then(|(_, rest)| parts(rest))
                .is_some_and(|(mac, body)| self.of(&self.keys.current, body) == mac)
    }

    fn of(&self, key: &Key, body: &[u8]) -> CtOutput<hmac::Hmac<Sha256>> {
        key.mac(&[self.purpose, &self.alike, body])
    }
}

/// Splits the bytes after the version into MAC and body.
fn parts(rest: &[u8]) -> Option<(CtOutput<hmac::Hmac<Sha256>>, &[u8])> {
    let (mac, body) = rest.split_first_chunk::<MAC_LENGTH>()?;
    Some((CtOutput::new((*mac).into()), body))
}

fn written(body: &(impl Serialize + ?Sized)) -> Vec<u8> {
    postcard::to_stdvec(body).expect("memory takes all that is written")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Position,
        bans::{BanId, BanState, BanUpdate},
        heartbeat::Heartbeat,
        replicated::{MOST_UPDATES, Stamp, Value as _},
        rollout::{Command, MOST_CANARIES, MOST_TEXT, NodePart, Reply, RolloutId, RolloutStage},
        sources::{Proof, Source, SourceKey, SourceUpdate},
    };

    fn envelope(kind: Kind, fleet: &str, current: u8, other: Option<u8>) -> Envelope {
        let key = |byte: u8| Key::new(&[byte; 32]).unwrap();
        let keys = Keys {
            current: key(current),
            other: other.map(key),
        };
        Envelope::new(kind, &fleet.try_into().unwrap(), &keys)
    }

    fn longest_stamp() -> Stamp {
        Stamp {
            ms: u64::MAX,
            node: "n".repeat(63).as_str().try_into().unwrap(),
        }
    }

    fn longest_ban() -> BanUpdate {
        BanUpdate {
            key: BanId {
                prefix: "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff/128"
                    .parse()
                    .unwrap(),
                origin: "o".repeat(64).into(),
            },
            stamp: longest_stamp(),
            value: BanState::Banned {
                until_ms: Some(u64::MAX),
                reason: "r".repeat(88).into(),
                limit: Some("l".repeat(128).into()),
            },
            ends_ms: u64::MAX,
        }
    }

    fn longest_proof() -> SourceUpdate {
        SourceUpdate {
            key: SourceKey {
                source: Source::V6([255; 8]),
                node: longest_stamp().node,
            },
            stamp: longest_stamp(),
            value: Proof {
                since_s: u64::MAX,
                until_s: u64::MAX,
                is_fresh: true,
                ipv6_prefix: 64,
            },
            ends_ms: u64::MAX,
        }
    }

    fn longest_command() -> Command {
        let node = longest_stamp().node;
        Command {
            rollout: RolloutId {
                ms: u64::MAX,
                node: node.clone(),
            },
            number: u64::MAX,
            ms: u64::MAX,
            sha256: "f".repeat(64),
            hold_ns: u64::MAX,
            stage: RolloutStage::Canaries,
            canaries: vec![node; MOST_CANARIES],
        }
    }

    #[test]
    fn a_message_has_what_was_written() {
        let bans = envelope(Kind::Bans, "edge", 1, None);
        let updates = vec![longest_ban(); MOST_UPDATES];
        assert_eq!(bans.read(&bans.write(&updates)), Ok(updates));
        let sources = envelope(Kind::Sources, "edge", 1, None);
        let updates = vec![longest_proof(); MOST_UPDATES];
        assert_eq!(sources.read(&sources.write(&updates)), Ok(updates));
        let heartbeats = envelope(Kind::Heartbeats, "edge", 1, None);
        let heartbeat = Heartbeat {
            node: longest_stamp().node,
            version: Heartbeat::version(&"1".repeat(99)),
            policy: u64::MAX,
            ms: u64::MAX,
            read: Some(Position::LAST),
        };
        assert!(heartbeat.is_right());
        assert_eq!(
            heartbeats.read(&heartbeats.write(&heartbeat)),
            Ok(heartbeat)
        );
        let commands = envelope(Kind::Commands, "edge", 1, None);
        let command = longest_command();
        assert_eq!(commands.read(&commands.write(&command)), Ok(command));
        let replies = envelope(Kind::Replies, "edge", 1, None);
        let reply = Reply {
            rollout: longest_command().rollout,
            node: longest_stamp().node,
            number: u64::MAX,
            part: NodePart::would(&"x".repeat(MOST_TEXT)),
            wish: Some(false),
        };
        assert!(reply.part.is_right());
        assert_eq!(replies.read(&replies.write(&reply)), Ok(reply));
    }

    #[test]
    fn only_nodes_of_the_fleet_are_accepted() {
        let own = envelope(Kind::Bans, "edge", 1, Some(2));
        let updates = vec![longest_ban()];
        for (fleet, key, is_accepted) in [
            ("edge", 1, true),
            ("edge", 2, true),
            ("edge", 3, false),
            ("core", 1, false),
        ] {
            let message = envelope(Kind::Bans, fleet, key, None).write(&updates);
            let opened = own.read::<Vec<BanUpdate>>(&message);
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
        }
        for (key, other, is_current) in [(1, None, true), (1, Some(2), true), (2, Some(1), false)] {
            let message = envelope(Kind::Bans, "edge", 1, None).write(&updates);
            let now = envelope(Kind::Bans, "edge", key, other);
            assert_eq!(now.is_current(&message), is_current, "{key} {other:?}");
        }
        for kind in [
            Kind::Sources,
            Kind::Heartbeats,
            Kind::Commands,
            Kind::Replies,
        ] {
            let message = envelope(kind, "edge", 1, None).write(&updates);
            assert_eq!(own.read::<Vec<BanUpdate>>(&message), Err(MAC));
        }
        let long = vec![1; 1_000_000];
        assert_eq!(own.read::<Vec<BanUpdate>>(&long), Err(TOO_LONG));
    }

    proptest! {
        /// Any bytes that a key holder authenticates are updates or an error, never a panic.
        #[test]
        fn any_authenticated_bytes_are_updates_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let envelope = envelope(Kind::Bans, "edge", 1, None);
            let message = envelope.close(&body);
            for update in envelope.read::<Vec<BanUpdate>>(&message).unwrap_or_default() {
                let _ = BanState::check(&update, (), 0);
            }
            for update in envelope.read::<Vec<SourceUpdate>>(&message).unwrap_or_default() {
                let _ = Proof::check(&update, 64, 0);
            }
            let _ = envelope.read::<Heartbeat>(&message);
            if let Ok(command) = envelope.read::<Command>(&message) {
                let _ = command.check(0);
            }
            if let Ok(reply) = envelope.read::<Reply>(&message) {
                let _ = reply.part.is_right();
            }
        }

        #[test]
        fn a_changed_message_is_none(at in 1_usize..200, to: u8) {
            let envelope = envelope(Kind::Bans, "edge", 1, None);
            let mut message = envelope.write(&[longest_ban()]);
            let at = at % message.len();
            prop_assume!(at > 0 && message[at] != to);
            message[at] = to;
            prop_assert_eq!(envelope.read::<Vec<BanUpdate>>(&message), Err(MAC));
        }
    }
}
