//! Exchanges rollouts with the store once a second: the current command, and each node's reply.

use std::{
    io, mem,
    sync::Arc,
    time::{Duration, Instant},
};

use limiter_fleet::rollout::{
    Act, Command, CommandError, MOST_FILE, NodeState, Reply, RolloutId, file_digest,
};
use limiter_fleet_store::Store;
use tokio::task::spawn_blocking;

use super::{lead::Lead, memory, other::OtherRollout, part::RolloutTask};
use crate::daemon::{
    confirm,
    fleet::{node::Node, session_end::SessionEnd, updates::Now},
    requests::{RolloutRequest, RolloutStep},
};

/// How long after the last command a node still replies.
const REPLIES: Duration = Duration::from_secs(20);

/// The most replies to read.
const MOST: usize = 10_000;

impl Node {
    /// Takes the current command, carries it out, and replies. Leads the rollout, if it began here.
    pub(in crate::daemon::fleet) async fn exchange_rollouts(
        &mut self,
        store: &mut Store,
    ) -> Result<(), SessionEnd> {
        let (daemon, fleet) = (Arc::clone(&self.daemon), Arc::clone(&self.fleet));
        self.rollouts.finish(&daemon, &fleet).await;
        self.rollouts.record_time(&daemon, &fleet);
        self.lead(store).await?;
        let command = store.command().await?;
        let is_first = mem::replace(&mut self.rollouts.is_new, false);
        if let Some(command) = command
            && self.rollouts.seen.as_ref() != Some(&command)
        {
            self.receive_command(store, &command, is_first).await?;
            self.rollouts.seen = Some(command);
        }
        self.reply(store).await
    }

    /// Sends the next command of a rollout that began here, and reads the replies.
    async fn lead(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        let fleet = Arc::clone(&self.fleet);
        let lingers = |lead: &Lead| lead.leader.is_over() && !lead.is_forgotten;
        if fleet.lead().as_ref().is_some_and(lingers) {
            // Another rollout may have begun; do not overwrite its command.
            let command = store.command().await?;
            let command =
                command.and_then(|command| self.envelopes.commands.read::<Command>(&command).ok());
            if let (Some(command), Some(lead)) = (command, fleet.lead().as_mut())
                && command.rollout > *lead.leader.rollout()
            {
                lead.is_forgotten = true;
            }
        }
        let (command, file, done) = {
            let mut lead = fleet.lead();
            let Some(lead) = lead.as_mut().filter(|lead| !lead.is_forgotten) else {
                return Ok(());
            };
            lead.tick();
            let command = lead.leader.command(Now::new().ms);
            let file = (!lead.is_sent).then(|| Arc::clone(&lead.text));
            let nodes = lead.leader.nodes().keys().map(ToString::to_string);
            let done = lead.is_done().then(|| nodes.collect::<Vec<_>>());
            lead.is_forgotten = done.is_some();
            lead.is_sent = true;
            (command, file, done)
        };
        if let Some(nodes) = done {
            store.remove_rollout(&nodes).await?;
            return Ok(());
        }
        let authenticated = self.envelopes.commands.write(&command);
        let file = file.as_ref().map(|text| text.as_bytes());
        let given = store.send_command(&authenticated, file).await;
        if given.is_err()
            && let Some(lead) = fleet.lead().as_mut()
            && file.is_some()
        {
            lead.is_sent = false;
        }
        given?;
        let replies = store.replies(MOST).await?;
        for reply in replies.iter().take(MOST) {
            let reply = self.envelopes.replies.read::<Reply>(reply);
            let Some(reply) = reply.ok().filter(Reply::is_right) else {
                let why = "a reply to a push is not authenticated by the fleet's key";
                fleet.refuse_message("reply", why);
                continue;
            };
            if let Some(lead) = fleet.lead().as_mut() {
                let now_ns = lead.now_ns();
                lead.leader.receive(reply, now_ns);
            }
        }
        Ok(())
    }

    async fn receive_command(
        &mut self,
        store: &mut Store,
        authenticated: &[u8],
        is_first: bool,
    ) -> Result<(), SessionEnd> {
        let command = match self.envelopes.commands.read::<Command>(authenticated) {
            Ok(command) => command,
            Err(error) => {
                (self.fleet).refuse_message(error.name(), &error.to_string());
                return Ok(());
            }
        };
        let act = match self.rollouts.follower.receive(&command, Now::new().ms) {
            Ok(act) => act,
            // A node that is gone has left it there.
            Err(CommandError::Old | CommandError::Long) if is_first => return Ok(()),
            Err(wrong) => {
                (self.fleet).refuse_message(wrong.name(), &wrong.to_string());
                return Ok(());
            }
        };
        self.rollouts.received = Some(Instant::now());
        {
            let mut report = self.fleet.report();
            report.newest_rollout = self.rollouts.follower.newest().cloned();
            if command.rollout.node == self.fleet.settings.node {
                report.other_rollout = None;
            } else {
                OtherRollout::receive(&mut report.other_rollout, command.clone());
            }
        }
        self.act(store, act, &command).await
    }

    async fn act(
        &mut self,
        store: &mut Store,
        act: Act,
        command: &Command,
    ) -> Result<(), SessionEnd> {
        let hold = Duration::from_millis(command.hold_ms);
        match act {
            Act::Nothing => {}
            Act::Check => self.check(store, command).await?,
            Act::Take => self.start(RolloutStep::Take(hold), Some(command.rollout.clone())),
            Act::Hold => confirm::hold(&self.daemon, hold),
            Act::Keep => self.start(RolloutStep::Keep, None),
            Act::Back => {
                confirm::hold(&self.daemon, Duration::ZERO);
                self.rollouts.doing = Some(RolloutTask::Back);
            }
        }
        Ok(())
    }

    /// Checks the file, if this node takes policies.
    async fn check(&mut self, store: &mut Store, command: &Command) -> Result<(), SessionEnd> {
        let state = match &self.rollouts.file {
            Ok(Some(_)) => None,
            Ok(None) => Some(NodeState::Declines),
            Err(why) => Some(self.rollouts.refused(&self.fleet, why)),
        };
        if let Some(state) = state {
            self.rollouts.follower.report(state);
            return Ok(());
        }
        let file = store.rollout_file().await?;
        let file = file.filter(|file| file.len() <= MOST_FILE && file_digest(file) == command.file);
        let text = file.and_then(|file| String::from_utf8(file).ok());
        self.rollouts.text = text.map(Into::into);
        self.start(RolloutStep::Check, None);
        Ok(())
    }

    /// Starts the daemon's work, and remembers the rollout if there is one to remember. Without the file, refuses it.
    fn start(&mut self, step: RolloutStep, remembered: Option<RolloutId>) {
        let (Ok(Some(file)), Some(text)) = (&self.rollouts.file, &self.rollouts.text) else {
            let why = "the store does not have the file that was pushed";
            let state = self.rollouts.refused(&self.fleet, why);
            self.rollouts.follower.report(state);
            return;
        };
        let (reloads, file) = (self.daemon.reloads.clone(), file.clone());
        let request = RolloutRequest {
            text: Arc::clone(text),
            file: file.clone(),
            step,
        };
        let running = self.others.spawn(async move {
            if let Some(remembered) = remembered {
                let written = spawn_blocking(move || memory::write(&file, &remembered)).await;
                let written = written.unwrap_or_else(|error| Err(io::Error::other(error)));
                written.map_err(|error| format!("what is pushed cannot be remembered: {error}"))?;
            }
            let done = reloads.roll_out(request).await;
            done.map_err(|error| error.to_string())
        });
        self.rollouts.doing = Some(RolloutTask::Step(step, running));
    }

    /// Sends this node's reply.
    async fn reply(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        if self
            .rollouts
            .received
            .is_none_or(|received| received.elapsed() > REPLIES)
        {
            return Ok(());
        }
        let Some(mut reply) = self.rollouts.follower.reply() else {
            return Ok(());
        };
        {
            let other = &self.fleet.report().other_rollout;
            reply.wish = (other.as_ref()).and_then(|other| other.wish(&reply.rollout));
        }
        let authenticated = self.envelopes.replies.write(&reply);
        let own = reply.node.to_string();
        Ok(store.reply(&own, &authenticated).await?)
    }
}
