//! Exchanges pushes with the store once a second: the current order, and each node's reply.

use std::{
    io, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::pushes::{Act, MOST_FILE, Order, PushId, PushState, WrongOrder, file_digest};
use limiter_fleet_store::Store;
use tokio::task::spawn_blocking;

use super::{
    lead::Lead,
    memory,
    other::OtherPush,
    part::{Doing, Place, Running},
};
use crate::daemon::{
    confirm,
    fleet::{node::Node, over::Over, updates::Now},
    requests::{Push, PushStep},
};

/// How long after the last order a node still replies.
const REPLIES: Duration = Duration::from_secs(20);

/// The most replies to read.
const MOST: usize = 10_000;

impl Node {
    /// Takes the current order, carries it out, and replies. Leads the push, if it began here.
    pub(in crate::daemon::fleet) async fn exchange_pushes(
        &mut self,
        store: &mut Store,
    ) -> Result<(), Over> {
        let (daemon, fleet) = (Arc::clone(&self.daemon), Arc::clone(&self.fleet));
        self.pushes.finish(&daemon, &fleet).await;
        self.pushes.record_time(&daemon, &fleet);
        self.lead(store).await?;
        let order = store.order().await?;
        let is_first = mem::replace(&mut self.pushes.is_new, false);
        if let Some(order) = order
            && self.pushes.seen.as_ref() != Some(&order)
        {
            self.receive_order(store, &order, is_first).await?;
            self.pushes.seen = Some(order);
        }
        self.reply(store).await
    }

    /// Sends the next order of a push that began here, and reads the replies.
    async fn lead(&mut self, store: &mut Store) -> Result<(), Over> {
        let fleet = Arc::clone(&self.fleet);
        let lingers = |lead: &Lead| lead.leader.is_over() && !lead.is_forgotten;
        if fleet.lead().as_ref().is_some_and(lingers) {
            // Another push may have begun; do not overwrite its order.
            let order = store.order().await?;
            let order = order.and_then(|order| self.push_authenticator.open_order(&order).ok());
            if let (Some(order), Some(lead)) = (order, fleet.lead().as_mut())
                && order.push > *lead.leader.push()
            {
                lead.is_forgotten = true;
            }
        }
        let (order, file, done) = {
            let mut lead = fleet.lead();
            let Some(lead) = lead.as_mut().filter(|lead| !lead.is_forgotten) else {
                return Ok(());
            };
            lead.tick();
            let order = lead.leader.order(Now::new().ms);
            let file = (!lead.is_sent).then(|| Arc::clone(&lead.text));
            let nodes = lead.leader.nodes().keys().map(ToString::to_string);
            let done = lead.is_done().then(|| nodes.collect::<Vec<_>>());
            lead.is_forgotten = done.is_some();
            lead.is_sent = true;
            (order, file, done)
        };
        if let Some(nodes) = done {
            store.forget_push(&nodes).await?;
            return Ok(());
        }
        let authenticated = self.push_authenticator.order(&order);
        let file = file.as_ref().map(|text| text.as_bytes());
        let given = store.give_order(&authenticated, file).await;
        if given.is_err()
            && let Some(lead) = fleet.lead().as_mut()
            && file.is_some()
        {
            lead.is_sent = false;
        }
        given?;
        let replies = store.replies(MOST).await?;
        for reply in replies.iter().take(MOST) {
            match self.push_authenticator.open_reply(reply) {
                Ok(reply) => {
                    if let Some(lead) = fleet.lead().as_mut() {
                        let now_ns = lead.now_ns();
                        lead.leader.receive(reply, now_ns);
                    }
                }
                Err(_) => self.refuse(
                    "reply",
                    "a reply to a push is not authenticated by the fleet's key",
                ),
            }
        }
        Ok(())
    }

    async fn receive_order(
        &mut self,
        store: &mut Store,
        authenticated: &[u8],
        is_first: bool,
    ) -> Result<(), Over> {
        let order = match self.push_authenticator.open_order(authenticated) {
            Ok(order) => order,
            Err(error) => {
                self.refuse_message(error);
                return Ok(());
            }
        };
        let act = match self.pushes.follower.receive(&order, Now::new().ms) {
            Ok(act) => act,
            // A node that is gone has left it there.
            Err(WrongOrder::Old | WrongOrder::Long) if is_first => return Ok(()),
            Err(wrong) => {
                self.refuse(wrong.name(), &wrong.to_string());
                return Ok(());
            }
        };
        self.pushes.received = Some(Instant::now());
        {
            let mut report = self.fleet.report();
            report.newest_push = self.pushes.follower.newest().cloned();
            if order.push.node == self.fleet.settings.node {
                report.other_push = None;
            } else {
                OtherPush::receive(&mut report.other_push, order.clone());
            }
        }
        self.act(store, act, &order).await
    }

    async fn act(&mut self, store: &mut Store, act: Act, order: &Order) -> Result<(), Over> {
        let hold = Duration::from_millis(order.hold_ms);
        match act {
            Act::Nothing => {}
            Act::Check => self.check(store, order).await?,
            Act::Take => {
                let running = self.start(PushStep::Take(hold), Some(order.push.clone()));
                self.go_on(running.map(Doing::Take));
            }
            Act::Hold => confirm::hold(&self.daemon, hold),
            Act::Keep => {
                let running = self.start(PushStep::Keep, None);
                self.go_on(running.map(Doing::Keep));
            }
            Act::Back => {
                confirm::hold(&self.daemon, Duration::ZERO);
                self.pushes.doing = Some(Doing::Back);
            }
        }
        Ok(())
    }

    /// Checks the file, if this node takes policies.
    async fn check(&mut self, store: &mut Store, order: &Order) -> Result<(), Over> {
        let state = match &self.pushes.place {
            Place::File(_) => None,
            Place::None => Some(PushState::Declines),
            Place::Forgetful(why) => Some(self.pushes.refused(&self.fleet, why)),
        };
        if let Some(state) = state {
            self.pushes.follower.report(state);
            return Ok(());
        }
        let file = store.pushed_file().await?;
        let file = file.filter(|file| file.len() <= MOST_FILE && file_digest(file) == order.file);
        let text = file.and_then(|file| String::from_utf8(file).ok());
        self.pushes.text = text.map(Into::into);
        let running = self.start(PushStep::Check, None);
        self.go_on(running.map(Doing::Check));
        Ok(())
    }

    /// Records the daemon's work; `None`: without the file, it can do nothing.
    fn go_on(&mut self, doing: Option<Doing>) {
        if doing.is_none() {
            let why = "the store does not have the file that was pushed";
            let state = self.pushes.refused(&self.fleet, why);
            self.pushes.follower.report(state);
        }
        self.pushes.doing = doing;
    }

    /// Starts the daemon's work, and remembers the push if there is one to remember. `None`: there is no
    /// file, or no place for it.
    fn start(&self, step: PushStep, remembered: Option<PushId>) -> Option<Running> {
        let Place::File(file) = &self.pushes.place else {
            return None;
        };
        let push = Push {
            text: Arc::clone(self.pushes.text.as_ref()?),
            file: file.clone(),
            step,
        };
        let (reloads, file) = (self.daemon.reloads.clone(), file.clone());
        Some(self.others.spawn(async move {
            if let Some(remembered) = remembered {
                let written = spawn_blocking(move || memory::write(&file, &remembered)).await;
                let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
                written.map_err(|error| format!("what is pushed cannot be remembered: {error}"))?;
            }
            reloads.push(push).await.map_err(|error| error.to_string())
        }))
    }

    /// Sends this node's reply.
    async fn reply(&mut self, store: &mut Store) -> Result<(), Over> {
        if self
            .pushes
            .received
            .is_none_or(|received| received.elapsed() > REPLIES)
        {
            return Ok(());
        }
        let Some(mut reply) = self.pushes.follower.reply() else {
            return Ok(());
        };
        {
            let other = &self.fleet.report().other_push;
            reply.wish = (other.as_ref()).and_then(|other| other.wish(&reply.push));
        }
        let authenticated = self.push_authenticator.reply(&reply);
        let own = reply.node.to_string();
        Ok(store.reply(&own, &authenticated).await?)
    }
}
