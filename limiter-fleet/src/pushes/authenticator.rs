//! Authentication of orders and replies.

use super::{order::Order, reply::PushReply};
use crate::{
    Name,
    envelope::{Envelope, Keys, Kind, OpenError},
};

/// Authenticates and verifies orders and replies.
#[derive(Clone, Debug)]
pub struct PushAuthenticator {
    orders: Envelope,
    replies: Envelope,
}

impl PushAuthenticator {
    /// Returns the authenticator of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        Self {
            orders: Envelope::new(Kind::Orders, fleet, keys),
            replies: Envelope::new(Kind::Replies, fleet, keys),
        }
    }

    /// Writes an order.
    #[must_use]
    pub fn order(&self, order: &Order) -> Vec<u8> {
        self.orders.write(order)
    }

    /// Reads an order. It is not [checked](Order::check) yet.
    ///
    /// # Errors
    ///
    /// The order is not from a node of the fleet.
    pub fn open_order(&self, order: &[u8]) -> Result<Order, OpenError> {
        self.orders.read(order)
    }

    /// Writes a reply.
    #[must_use]
    pub fn reply(&self, reply: &PushReply) -> Vec<u8> {
        self.replies.write(reply)
    }

    /// Reads a reply.
    ///
    /// # Errors
    ///
    /// The reply is not from a node of the fleet.
    pub fn open_reply(&self, reply: &[u8]) -> Result<PushReply, OpenError> {
        let reply = self.replies.read::<PushReply>(reply)?;
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
        pushes::{PushId, PushState, Step, Takers, Wish, order::MOST_CANARIES, reply::MOST_TEXT},
    };

    fn authenticator(fleet: &str, key: u8) -> PushAuthenticator {
        let keys = Keys {
            current: Key::new(&[key; 32]).unwrap(),
            other: None,
        };
        PushAuthenticator::new(&fleet.try_into().unwrap(), &keys)
    }

    fn longest_name() -> Name {
        "n".repeat(63).as_str().try_into().unwrap()
    }

    fn longest_order() -> Order {
        Order {
            push: PushId {
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

    fn longest_reply() -> PushReply {
        PushReply {
            push: longest_order().push,
            node: longest_name(),
            number: u64::MAX,
            state: PushState::Would("x".repeat(MOST_TEXT).into()),
            wish: Some(Wish::Back),
        }
    }

    #[test]
    fn only_nodes_of_the_fleet_are_accepted() {
        let own = authenticator("edge", 1);
        let (order, reply) = (longest_order(), longest_reply());
        for (fleet, key, is_accepted) in [("edge", 1, true), ("edge", 2, false), ("core", 1, false)]
        {
            let other = authenticator(fleet, key);
            let opened = own.open_order(&other.order(&order));
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
            let opened = own.open_reply(&other.reply(&reply));
            assert_eq!(opened.is_ok(), is_accepted, "{fleet} {key}");
        }
        assert_eq!(own.open_order(&own.order(&order)), Ok(order.clone()));
        assert_eq!(own.open_reply(&own.reply(&reply)), Ok(reply));
        // An order is no reply.
        assert!(own.open_reply(&own.order(&order)).is_err());
        assert_eq!(own.open_order(&vec![1; 1_000_000]), Err(OpenError::TooLong));
    }

    proptest! {
        #[test]
        fn any_authenticated_bytes_are_an_order_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let authenticator = authenticator("edge", 1);
            if let Ok(order) = authenticator.open_order(&authenticator.orders.close(&body)) {
                let _ = order.check(0);
            }
            let _ = authenticator.open_reply(&authenticator.replies.close(&body));
        }

        #[test]
        fn a_changed_order_is_none(at in 1_usize..300, to: u8) {
            let authenticator = authenticator("edge", 1);
            let mut order = authenticator.order(&longest_order());
            let at = at % order.len();
            prop_assume!(at > 0 && order[at] != to);
            order[at] = to;
            prop_assert_eq!(authenticator.open_order(&order), Err(OpenError::Mac));
        }
    }
}
