//! Authentication of commands and replies.

use super::{command::Command, reply::Reply};
use crate::{
    Name,
    envelope::{Envelope, Keys, Kind, OpenError},
};

/// Authenticates and verifies commands and replies.
#[derive(Clone, Debug)]
pub struct RolloutAuthenticator {
    commands: Envelope,
    replies: Envelope,
}

impl RolloutAuthenticator {
    /// Returns the authenticator of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        Self {
            commands: Envelope::new(Kind::Commands, fleet, keys),
            replies: Envelope::new(Kind::Replies, fleet, keys),
        }
    }

    /// Writes a command.
    #[must_use]
    pub fn command(&self, command: &Command) -> Vec<u8> {
        self.commands.write(command)
    }

    /// Reads a command. It is not [checked](Command::check) yet.
    ///
    /// # Errors
    ///
    /// The command is not from a node of the fleet.
    pub fn open_command(&self, command: &[u8]) -> Result<Command, OpenError> {
        self.commands.read(command)
    }

    /// Writes a reply.
    #[must_use]
    pub fn reply(&self, reply: &Reply) -> Vec<u8> {
        self.replies.write(reply)
    }

    /// Reads a reply.
    ///
    /// # Errors
    ///
    /// The reply is not from a node of the fleet.
    pub fn open_reply(&self, reply: &[u8]) -> Result<Reply, OpenError> {
        let reply = self.replies.read::<Reply>(reply)?;
        if reply.is_right() {
            Ok(reply)
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
        rollout::{
            NodeState, RolloutId, Step, Takers, Wish, command::MOST_CANARIES, reply::MOST_TEXT,
        },
    };

    fn authenticator(fleet: &str, key: u8) -> RolloutAuthenticator {
        let keys = Keys {
            current: Key::new(&[key; 32]).unwrap(),
            other: None,
        };
        RolloutAuthenticator::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest_name() -> Name {
        "n".repeat(63).as_str().try_into().unwrap()
    }

    fn longest_command() -> Command {
        Command {
            rollout: RolloutId {
                ms: u64::MAX,
                node: longest_name(),
            },
            number: u64::MAX,
            ms: u64::MAX,
            file: [0xff; 32],
            hold_ms: u64::MAX,
            step: Step::Take(Takers::Some(vec![longest_name(); MOST_CANARIES])),
        }
    }

    fn longest_reply() -> Reply {
        Reply {
            rollout: longest_command().rollout,
            node: longest_name(),
            number: u64::MAX,
            state: NodeState::Would("x".repeat(MOST_TEXT).into()),
            wish: Some(Wish::Back),
        }
    }

    #[test]
    fn only_nodes_of_the_fleet_are_accepted() {
        let own = authenticator("edge", 1);
        let (command, reply) = (longest_command(), longest_reply());
        for (fleet, key, is_accepted) in [("edge", 1, true), ("edge", 2, false), ("core", 1, false)]
        {
            let other = authenticator(fleet, key);
            let opened = own.open_command(&other.command(&command));
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
            let opened = own.open_reply(&other.reply(&reply));
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
        }
        assert_eq!(
            own.open_command(&own.command(&command)),
            Ok(command.clone())
        );
        assert_eq!(own.open_reply(&own.reply(&reply)), Ok(reply));
        // A command is no reply.
        assert!(own.open_reply(&own.command(&command)).is_err());
        assert_eq!(
            own.open_command(&vec![1; 1_000_000]),
            Err(OpenError::TooLong)
        );
    }

    proptest! {
        #[test]
        fn any_authenticated_bytes_are_a_command_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let authenticator = authenticator("edge", 1);
            if let Ok(command) = authenticator.open_command(&authenticator.commands.close(&body)) {
                let _ = command.check(0);
            }
            let _ = authenticator.open_reply(&authenticator.replies.close(&body));
        }

        #[test]
        fn a_changed_command_is_none(at in 1_usize..300, to: u8) {
            let authenticator = authenticator("edge", 1);
            let mut command = authenticator.command(&longest_command());
            let at = at % command.len();
            prop_assume!(at > 0 && command[at] != to);
            command[at] = to;
            prop_assert_eq!(authenticator.open_command(&command), Err(OpenError::Mac));
        }
    }
}
