//! The server that has each node's stream, as servers say.

use std::collections::HashMap;

use limiter_fleet_store::Place;

use super::patience::Letters;

/// The servers that have nodes' streams.
#[derive(Default)]
pub(super) struct Routes {
    /// The one that has this node's, and by default all; `None`: this node hears no letters.
    pub(super) home: Option<Place>,
    /// Those that have the streams of other nodes, by the nodes' names: all is on one, unless it is a cluster.
    elsewhere: HashMap<String, Place>,
}

impl Routes {
    /// Sorts letters by server. A node that hears no answers sends none: others would lend to it in vain.
    pub(super) fn sort(&self, letters: Letters) -> HashMap<&Place, Letters> {
        let mut sorted = HashMap::<_, Letters>::new();
        let Some(home) = &self.home else {
            return sorted;
        };
        for letter in letters {
            let place = self.elsewhere.get(&letter.0).unwrap_or(home);
            sorted.entry(place).or_default().push(letter);
        }
        sorted
    }

    /// Notes that a server has a node's stream.
    pub(super) fn learn(&mut self, node: &str, place: Place) {
        self.elsewhere.insert(node.to_owned(), place);
    }

    /// Forgets a server that is gone: another may have its streams, as servers that are there will say.
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

    /// Returns to which hosts letters to these nodes go, by the nodes' names in order.
    fn hosts(routes: &Routes, nodes: &[&str]) -> Vec<String> {
        let letters = nodes.iter().map(|node| ((*node).to_owned(), Vec::new()));
        let sorted = routes.sort(letters.collect());
        let all = sorted.into_iter().flat_map(|(place, letters)| {
            let rows = letters.into_iter();
            rows.map(|(node, _)| format!("{node} {}", place.host))
        });
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    #[test]
    fn letters_go_where_streams_are() {
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
        // It moves; another is gone.
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
