//! Policies that a node rolls out to all. `limiter-fleet` has the states of the leading node and of the others. This
//! module exchanges their messages with the store once a second, and has the daemon do this node's work. The work
//! uses the mechanism of `limiter run --confirm`, which reverts by itself unless the fleet confirms in time.

use std::{
    path::PathBuf,
    sync::{Arc, MutexGuard, PoisonError},
    time::Duration,
};

use limiter_fleet::{
    Kind, Name,
    rollout::{
        Command, CommandError, LeaderMessage, MOST_FILE, NodePart, NodeState, Reply, RolloutError,
        RolloutId, RolloutPlan, RolloutStatus, Rollouts, Work, file_digest,
    },
};
use limiter_fleet_store::Store;
use limiter_policy::config::folder_of;
use tokio::task::JoinHandle;
use tracing::warn;

use super::{handle::Fleet, node::Node, session_end::SessionEnd, updates::Now};
use crate::{confirm, enforcement::Enforcement, requests::RolloutRequest, rollout::memory};

/// The greatest age of the heartbeat of a node that counts as live.
const ALIVE: Duration = Duration::from_secs(20);

/// The most replies to read.
const MOST: usize = 10_000;

impl Fleet {
    /// Begins a rollout.
    pub(crate) fn begin_rollout(&self, plan: RolloutPlan) -> Result<RolloutStatus, RolloutError> {
        let alive: Vec<_> = {
            let report = self.report();
            if !report.connected {
                return Err(RolloutError::NoStore);
            }
            let nodes = report.nodes().into_iter();
            let nodes = nodes.filter(|(_, node)| Duration::from_nanos(node.ago_ns) < ALIVE);
            let names = nodes.filter_map(|(name, _)| Name::try_from(name.as_str()).ok());
            names.collect()
        };
        let now = Now::new();
        self.rollouts().begin(plan, alive, now.ms, now.monotonic_ns)
    }

    /// Returns the node with the newest rollout known to this node.
    pub(crate) fn leader_name(&self) -> Option<String> {
        let rollouts = self.rollouts();
        let newest = rollouts.newest();
        newest.map(|rollout| rollout.node.to_string())
    }

    /// Counts and logs a refused policy; returns this node's part thereafter.
    fn refuse_rollout(&self, rollout: &RolloutId, why: &str) -> NodePart {
        let leader = &rollout.node;
        warn!("the policy that node {leader} pushes is not taken: {why}");
        self.count_rollout("refused");
        NodePart::because(NodeState::Refuses, why)
    }

    fn count_rollout(&self, outcome: &'static str) {
        *(self.report().pushes.entry(outcome.to_owned())).or_default() += 1;
    }

    pub(crate) fn rollouts(&self) -> MutexGuard<'_, Rollouts> {
        // After a panic elsewhere, the rollout is taken back by itself.
        self.rollouts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// This node's work for rollouts.
pub(super) struct RolloutWork {
    /// The file that a rollout replaces; `None`: this node takes no policies. An error: it cannot remember earlier
    /// rollouts, and takes none.
    file: Result<Option<PathBuf>, String>,
    /// The text of the checked file.
    text: Option<Arc<str>>,
    /// The last command in the store, or nothing; `None`: the store was never read.
    seen: Option<Vec<u8>>,
    running: Option<JoinHandle<()>>,
}

impl RolloutWork {
    pub(super) fn new(enforcement: &Enforcement, fleet: &Fleet) -> Self {
        let accepted = fleet.settings.accept_policy.as_ref();
        let file = accepted.map(|name| folder_of(&enforcement.options.config).join(name));
        let (file, newest) = match file.as_deref().map(memory::read).transpose() {
            Ok(newest) => (Ok(file), newest.flatten()),
            Err(error) => {
                let name = file.map(|file| memory::place(&file).unwrap_or(file));
                let why = format!(
                    "the file '{}', which has the last push, cannot be read: {error}",
                    name.unwrap_or_default().display()
                );
                warn!("no policies are taken from the fleet: {why}; look why, then remove it");
                (Err(why), None)
            }
        };
        *fleet.rollouts() = Rollouts::new(fleet.settings.node.clone(), newest);
        Self {
            file,
            text: None,
            seen: None,
            running: None,
        }
    }

    fn is_running(&self) -> bool {
        let running = self.running.as_ref();
        running.is_some_and(|running| !running.is_finished())
    }
}

impl Node {
    /// Leads the rollout, if it began here. Follows the current command, and replies.
    pub(super) async fn exchange_rollouts(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        self.record_return();
        let in_store = store.command().await?;
        let sent = self.lead(store, in_store.as_deref()).await?;
        self.follow(&sent.or(in_store).unwrap_or_default());
        self.begin_work(store).await?;
        let reply = self.fleet.rollouts().reply(Now::new().monotonic_ns);
        if let Some(reply) = reply {
            let authenticated = self.fleet.envelope(Kind::Replies).write(&reply);
            store.reply(reply.node.as_str(), &authenticated).await?;
        }
        Ok(())
    }

    /// Sends the next command of a rollout that began here, and reads the replies; returns the command.
    async fn lead(
        &self,
        store: &mut Store,
        in_store: Option<&[u8]>,
    ) -> Result<Option<Vec<u8>>, SessionEnd> {
        let commands = self.fleet.envelope(Kind::Commands);
        let in_store = in_store.and_then(|message| commands.read::<Command>(message).ok());
        let now = Now::new();
        let message = self
            .fleet
            .rollouts()
            .lead(in_store.as_ref(), now.ms, now.monotonic_ns);
        let (command, file) = match message {
            Some(LeaderMessage::Command(command, file)) => (commands.write(&command), file),
            Some(LeaderMessage::Remove(nodes)) => {
                let nodes: Vec<_> = nodes.iter().map(Name::as_str).collect();
                store.remove_rollout(&nodes).await?;
                return Ok(None);
            }
            None => return Ok(None),
        };
        let file = file.as_ref().map(String::as_bytes);
        store.send_command(&command, file).await?;
        let replies = self.fleet.envelope(Kind::Replies);
        for reply in store.replies(MOST).await?.iter().take(MOST) {
            let reply = replies.read::<Reply>(reply);
            if let Some(reply) = reply.ok().filter(|reply| reply.part.is_right()) {
                self.fleet
                    .rollouts()
                    .receive(reply, Now::new().monotonic_ns);
            } else {
                let why = "a reply to a push is not authenticated by the fleet's key";
                self.fleet.refuse_message("reply", why);
            }
        }
        Ok(Some(command))
    }

    /// Handles the current command, if there is one. A policy that waits to be confirmed is held for longer.
    fn follow(&mut self, message: &[u8]) {
        let earlier = self.rollout_work.seen.replace(message.to_owned());
        if message.is_empty() || earlier.as_deref() == Some(message) {
            return;
        }
        let commands = self.fleet.envelope(Kind::Commands);
        let command = match commands.read::<Command>(message) {
            Ok(command) => command,
            Err(error) => {
                (self.fleet).refuse_message(error.name(), &error.to_string());
                return;
            }
        };
        let hold = (command.stage.is_undecided()).then(|| Duration::from_nanos(command.hold_ns));
        let now = Now::new();
        let received = self
            .fleet
            .rollouts()
            .follow(command, now.ms, now.monotonic_ns);
        match (received, hold) {
            (Ok(()), Some(hold)) => confirm::hold(&self.enforcement, hold),
            (Ok(()), None) => {}
            // A node that is gone has left it there.
            (Err(CommandError::Old | CommandError::Long), _) if earlier.is_none() => {}
            (Err(wrong), _) => self.fleet.refuse_message(wrong.name(), &wrong.to_string()),
        }
    }

    /// Records that a policy was taken back, by a command or because the time to confirm it was over.
    fn record_return(&self) {
        if !self.rollout_work.is_running()
            && !confirm::awaits_fleet(&self.enforcement)
            && self.fleet.rollouts().went_back()
        {
            let leader = self.fleet.leader_name().unwrap_or_default();
            warn!("the policy that node {leader} pushed is taken back");
            self.fleet.count_rollout("taken_back");
        }
    }

    /// Begins the work that the current command wants, unless earlier work is running.
    async fn begin_work(&mut self, store: &mut Store) -> Result<(), SessionEnd> {
        if self.rollout_work.is_running() {
            return Ok(());
        }
        let (work, must_go_back) = {
            let mut rollouts = self.fleet.rollouts();
            (rollouts.work(), rollouts.must_go_back())
        };
        if must_go_back {
            confirm::hold(&self.enforcement, Duration::ZERO);
        }
        let Some((command, work)) = work else {
            return Ok(());
        };
        if work == Work::Check {
            let file = store.rollout_file().await?;
            let is_right =
                |file: &Vec<u8>| file.len() <= MOST_FILE && file_digest(file) == command.sha256;
            let text = file.filter(is_right).map(String::from_utf8);
            self.rollout_work.text = text.and_then(Result::ok).map(Into::into);
        }
        let rollout = command.rollout;
        let part = match (&self.rollout_work.file, &self.rollout_work.text) {
            (Ok(Some(file)), Some(text)) => {
                let request = RolloutRequest {
                    rollout,
                    text: Arc::clone(text),
                    file: file.clone(),
                    work,
                };
                let (enforcement, fleet) = (Arc::clone(&self.enforcement), Arc::clone(&self.fleet));
                self.rollout_work.running =
                    Some(self.others.spawn(do_work(enforcement, fleet, request)));
                return Ok(());
            }
            (Ok(Some(_)), None) => {
                let why = "the store does not have the file that was pushed";
                self.fleet.refuse_rollout(&rollout, why)
            }
            (Ok(None), _) => NodeState::TakesNone.into(),
            (Err(why), _) => self.fleet.refuse_rollout(&rollout, why),
        };
        self.fleet.rollouts().report(&rollout, part);
        Ok(())
    }
}

/// Has the daemon do this node's work, and records the node's part thereafter.
async fn do_work(enforcement: Arc<Enforcement>, fleet: Arc<Fleet>, request: RolloutRequest) {
    let (rollout, work) = (request.rollout.clone(), request.work);
    let part = match enforcement.reloads.roll_out(request).await {
        Ok(part) => {
            if part.state == NodeState::Kept {
                fleet.count_rollout("kept");
            }
            part
        }
        Err(error) if work == Work::Keep => {
            // The policy is not kept, so end its time now.
            confirm::hold(&enforcement, Duration::ZERO);
            warn!(
                "the policy that node {} pushed is not kept: {error}",
                rollout.node
            );
            fleet.count_rollout("taken_back");
            NodePart::because(NodeState::Back, &error.to_string())
        }
        Err(error) => fleet.refuse_rollout(&rollout, &error.to_string()),
    };
    fleet.rollouts().report(&rollout, part);
}
