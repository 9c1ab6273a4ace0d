//! Which server has each node's stream, learned from the servers.

use std::collections::HashMap;

use limiter_fleet_store::Place;

use super::patience::Messages;

#[derive(Default)]
pub(super) struct Routes {
    /// The server with this node's stream, the default for all others; `None`: this node receives no
    /// messages.
    pub(super) home: Option<Place>,
    /// Servers with the streams of other nodes, by node. Empty unless the store is a cluster.
    elsewhere: HashMap<String, Place>,
}

impl Routes {
    /// Sorts messages by server. Without a home server this node sends none: it could not receive the
    /// replies, so other nodes would lend to it in vain.
    pub(super) fn sort(&self, messages: Messages) -> HashMap<&Place, Messages> {
        let mut sorted = HashMap::<_, Messages>::new();
        let Some(home) = &self.home else {
            return sorted;
        };
        for message in messages {
            let place = self.elsewhere.get(&message.0).unwrap_or(home);
            sorted.entry(place).or_default().push(message);
        }
        sorted
    }

    pub(super) fn learn(&mut self, node: &str, place: Place) {
        self.elsewhere.insert(node.to_owned(), place);
    }

    /// Forgets a lost server. Its streams may have moved: the remaining servers redirect.
    pub(super) fn forget(&mut self, place: &Place) {
        self.elsewhere.retain(|_, other| other != place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str) -> Place {
        Place {
            host: host.to_owned(),
            port: 6379,
        }
    }

    /// Returns the hosts for messages to these nodes, sorted by node.
    fn hosts(routes: &Routes, nodes: &[&str]) -> Vec<String> {
        let messages = nodes.iter().map(|node| ((*node).to_owned(), Vec::new()));
        let sorted = routes.sort(messages.collect());
        let all = sorted.into_iter().flat_map(|(place, messages)| {
            let rows = messages.into_iter();
            rows.map(|(node, _)| format!("{node} {}", place.host))
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    #[test]
    fn messages_go_where_streams_are() {
        let mut routes = Routes::default();
        assert!(hosts(&routes, &["a", "b"]).is_empty());
        routes.home = Some(place("one"));
        assert_eq!(hosts(&routes, &["a", "b"]), ["a one", "b one"]);
        routes.learn("b", place("two"));
        routes.learn("c", place("three"));
        assert_eq!(
            hosts(&routes, &["a", "b", "b", "c"]),
            ["a one", "b two", "b two", "c three"]
        );
        // The stream moves; another server is lost.
        routes.learn("b", place("three"));
        assert_eq!(hosts(&routes, &["b"]), ["b three"]);
        routes.forget(&place("three"));
        assert_eq!(hosts(&routes, &["b", "c"]), ["b one", "c one"]);
        routes.learn("b", place("two"));
        routes.home = Some(place("four"));
        assert_eq!(hosts(&routes, &["a", "b"]), ["a four", "b two"]);
        routes.home = None;
        assert!(hosts(&routes, &["a", "b"]).is_empty());
    }
}
