//! The servers of the store that take messages.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use limiter_fleet_store::Place;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tracing::{info, warn};

use super::{
    super::super::handle::Fleet,
    patience::{Messages, WAITING},
    routes::Routes,
    server::{Batch, Event, Moved, Server},
};

/// The most servers to send messages to: the store decides which there are, so bound them.
const MOST_SERVERS: usize = 128;

pub(super) struct Servers {
    fleet: Arc<Fleet>,
    routes: Routes,
    started: HashMap<Place, Server>,
    events: Receiver<Event>,
    reporter: Sender<Event>,
}

impl Servers {
    pub(super) fn new(fleet: Arc<Fleet>) -> Self {
        let (reporter, events) = mpsc::channel(WAITING);
        Self {
            fleet,
            routes: Routes::default(),
            started: HashMap::new(),
            events,
            reporter,
        }
    }

    pub(super) fn events(&self) -> Sender<Event> {
        self.reporter.clone()
    }

    /// Forgets the home server: no task reads messages to this node.
    pub(super) fn leave_home(&mut self) {
        self.routes.home = None;
    }

    /// Sends messages until the channel closes, or the home server is lost: then returns the reason.
    pub(super) async fn route(&mut self, leaving: &mut Receiver<Messages>) -> Result<(), String> {
        loop {
            tokio::select! {
                Some(event) = self.events.recv() => self.heed(event)?,
                messages = leaving.recv() => match messages {
                    Some(messages) => self.send(messages, false),
                    None => return Ok(()),
                },
            }
        }
    }

    fn send(&mut self, messages: Messages, has_moved: bool) {
        for (place, messages) in self.routes.sort(messages) {
            let has_room = self.started.len() < MOST_SERVERS;
            let server = match self.started.entry(place.clone()) {
                Entry::Occupied(server) => server.into_mut(),
                Entry::Vacant(vacant) if has_room => {
                    let fleet = Arc::clone(&self.fleet);
                    vacant.insert(Server::start(fleet, place.clone(), self.reporter.clone()))
                }
                Entry::Vacant(_) => continue,
            };
            server.send(Batch {
                messages,
                has_moved,
            });
        }
    }

    fn heed(&mut self, event: Event) -> Result<(), String> {
        match event {
            Event::Home(place) => self.routes.home = place,
            Event::Taking(place, lost) => self.report(&place, lost),
            Event::Moved(moved) => self.follow(moved),
            Event::Gone(place, why) => {
                self.routes.forget(&place);
                self.report(&place, Some(why.clone()));
                if self.routes.home.as_ref() == Some(&place) {
                    return Err(why);
                }
            }
            Event::Idle(place) => {
                self.started.remove(&place);
                self.fleet
                    .report()
                    .message_servers
                    .remove(&place.to_string());
            }
        }
        Ok(())
    }

    /// Learns new places of streams, and sends the redirected messages there.
    fn follow(&mut self, moved: Vec<Moved>) {
        let mut messages = Messages::new();
        for Moved {
            node,
            place,
            message,
        } in moved
        {
            self.routes.learn(&node, place);
            messages.extend(message.map(|message| (node, message)));
        }
        self.send(messages, true);
    }

    /// Records whether a server takes messages, and logs changes.
    fn report(&self, place: &Place, error: Option<String>) {
        let mut report = self.fleet.report();
        let before = report
            .message_servers
            .insert(place.to_string(), error.clone());
        match (error, before.flatten()) {
            (Some(why), None) => warn!(
                why,
                "messages of the fleet to {place} are lost: {why}; with the nodes whose messages it has, no budgets are shared"
            ),
            (None, Some(_)) => info!("messages of the fleet to {place} are taken"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers() -> Servers {
        Servers::new(Arc::new(Fleet::without_store()))
    }

    fn place(number: usize) -> Place {
        Place {
            host: format!("server-{number}"),
            port: 6379,
        }
    }

    /// An event: the messages of node `number` have moved to server `number`.
    fn moved(number: usize) -> Event {
        Event::Moved(vec![Moved {
            node: format!("node-{number}"),
            place: place(number),
            message: Some(vec![1]),
        }])
    }

    #[tokio::test]
    async fn no_more_servers_are_connected_than_there_may_be() {
        let mut servers = servers();
        servers.heed(Event::Home(Some(place(0)))).unwrap();
        for number in 1..=2 * MOST_SERVERS {
            servers.heed(moved(number)).unwrap();
        }
        assert_eq!(servers.started.len(), MOST_SERVERS);
        // One ends, and makes room for another.
        let last = place(2 * MOST_SERVERS);
        assert!(!servers.started.contains_key(&last));
        servers.heed(Event::Idle(place(1))).unwrap();
        servers.heed(moved(2 * MOST_SERVERS)).unwrap();
        assert!(servers.started.contains_key(&last));
        assert_eq!(servers.started.len(), MOST_SERVERS);
    }

    #[tokio::test]
    async fn only_the_loss_of_its_own_server_is_a_nodes_business() {
        let mut servers = servers();
        servers.heed(Event::Home(Some(place(0)))).unwrap();
        servers.heed(moved(1)).unwrap();
        let gone = |number| Event::Gone(place(number), "gone".to_owned());
        servers.heed(gone(1)).unwrap();
        let report = servers.fleet.report().message_servers.clone();
        assert_eq!(report["server-1:6379"].as_deref(), Some("gone"));
        assert_eq!(servers.heed(gone(0)), Err("gone".to_owned()));
        servers.leave_home();
        servers.heed(gone(0)).unwrap();
        servers.heed(Event::Idle(place(1))).unwrap();
        assert_eq!(servers.fleet.report().message_servers.len(), 1);
    }
}
