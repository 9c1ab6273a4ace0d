//! Seals of orders and answers.

use sha2::{Digest as _, Sha256};

use super::{
    answer::{MOST_TEXT, PushAnswer},
    order::{MOST_CANARIES, Order},
};
use crate::{
    Name,
    envelope::{Envelope, Keys, OpenError, SEAL, read, written},
};

/// The most bytes besides texts and lists of names.
const REST: usize = 512;

/// The most bytes of a name, including its length.
const LONGEST_NAME: usize = 64;

/// Seals and opens orders and answers.
#[derive(Clone, Debug)]
pub struct PushSeal {
    orders: Envelope,
    answers: Envelope,
}

impl PushSeal {
    /// Returns the seal of the fleet with that name.
    #[must_use]
    pub fn new(fleet: &Name, keys: &Keys) -> Self {
        let envelope = |purpose, bytes: usize| Envelope {
            keys: keys.clone(),
            purpose,
            alike: Sha256::digest(fleet.as_str()),
            most_bytes: 1 + SEAL + bytes,
        };
        Self {
            orders: envelope(
                b"limiter fleet, push orders",
                REST + MOST_CANARIES * LONGEST_NAME,
            ),
            answers: envelope(b"limiter fleet, push answers", REST + MOST_TEXT),
        }
    }

    /// Writes an order.
    #[must_use]
    pub fn order(&self, order: &Order) -> Vec<u8> {
        self.orders.close(&written(order))
    }

    /// Reads an order. It is not [checked](Order::check) yet.
    ///
    /// # Errors
    ///
    /// The order is not from a node of the fleet.
    pub fn open_order(&self, order: &[u8]) -> Result<Order, OpenError> {
        read(self.orders.open(order)?)
    }

    /// Writes an answer.
    #[must_use]
    pub fn answer(&self, answer: &PushAnswer) -> Vec<u8> {
        self.answers.close(&written(answer))
    }

    /// Reads an answer.
    ///
    /// # Errors
    ///
    /// The answer is not from a node of the fleet.
    pub fn open_answer(&self, answer: &[u8]) -> Result<PushAnswer, OpenError> {
        let answer = read::<PushAnswer>(self.answers.open(answer)?)?;
        if answer.is_right() {
            Ok(answer)
        } else {
            Err(OpenError::Notes)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        Key,
        pushes::{PushId, Said, Step, Takers, Wish},
    };

    fn seal(fleet: &str, key: u8) -> PushSeal {
        let keys = Keys {
            current: Key::new(&[key; 32]).unwrap(),
            other: None,
        };
        PushSeal::new(&fleet.try_into().unwrap(), &keys)
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

    fn longest_answer() -> PushAnswer {
        PushAnswer {
            push: longest_order().push,
            node: longest_name(),
            number: u64::MAX,
            said: Said::Would("x".repeat(MOST_TEXT).into()),
            wish: Some(Wish::Back),
        }
    }

    #[test]
    fn only_nodes_of_the_fleet_are_heard() {
        let own = seal("edge", 1);
        let (order, answer) = (longest_order(), longest_answer());
        for (fleet, key, is_heard) in [("edge", 1, true), ("edge", 2, false), ("core", 1, false)] {
            let other = seal(fleet, key);
            let opened = own.open_order(&other.order(&order));
            assert_eq!(opened.is_ok(), is_heard, "{fleet} {key}");
            let opened = own.open_answer(&other.answer(&answer));
            assert_eq!(opened.is_ok(), is_heard, "{fleet} {key}");
        }
        assert_eq!(own.open_order(&own.order(&order)), Ok(order.clone()));
        assert_eq!(own.open_answer(&own.answer(&answer)), Ok(answer));
        // An order is no answer.
        assert!(own.open_answer(&own.order(&order)).is_err());
        assert_eq!(own.open_order(&vec![1; 1_000_000]), Err(OpenError::TooLong));
    }

    proptest! {
        #[test]
        fn any_sealed_bytes_are_an_order_or_none(body in prop::collection::vec(any::<u8>(), 0..300)) {
            let seal = seal("edge", 1);
            if let Ok(order) = seal.open_order(&seal.orders.close(&body)) {
                let _ = order.check(0);
            }
            let _ = seal.open_answer(&seal.answers.close(&body));
        }

        #[test]
        fn a_changed_order_is_none(at in 1_usize..300, to: u8) {
            let seal = seal("edge", 1);
            let mut order = seal.order(&longest_order());
            let at = at % order.len();
            prop_assume!(at > 0 && order[at] != to);
            order[at] = to;
            prop_assert_eq!(seal.open_order(&order), Err(OpenError::Seal));
        }
    }
}
