//! A leading node and other nodes, with the faults that may happen between them.

use std::collections::BTreeMap;

use super::{
    Act, Command, Follower, Leader, NodeState, Plan, PlanError, Reply, RolloutId, Stage, Wish,
};
use crate::Name;

const NOW_MS: u64 = 1_700_000_000_000;

const S: u64 = 1_000_000_000;

/// A node: its part in the rollout, and until when it holds the policy.
struct Node {
    follower: Follower,
    reports: NodeState,
    until_s: Option<u64>,
    has_new: bool,
    is_kept: bool,
    is_gone: bool,
    /// The wish of an operator there.
    wish: Option<Wish>,
}

struct World {
    leader: Option<Leader>,
    nodes: BTreeMap<Name, Node>,
    /// All commands ever sent.
    sent: Vec<Command>,
    /// All replies ever sent.
    replies: Vec<Reply>,
    now_s: u64,
}

fn name(name: &str) -> Name {
    name.try_into().unwrap()
}

fn plan() -> Plan {
    Plan {
        canary_count: 1,
        canaries: Vec::new(),
        canary_for_ms: 10_000,
        confirm_ms: 60_000,
        is_dry: false,
        keeps_itself: false,
    }
}

impl World {
    fn new(plan: Plan) -> Self {
        let names = ["a", "b", "c"].map(name);
        let rollout = RolloutId {
            ms: NOW_MS,
            node: name("a"),
        };
        let node = |name: &Name| Node {
            follower: Follower::new(name.clone(), None),
            reports: NodeState::Would("one limit".into()),
            until_s: None,
            has_new: false,
            is_kept: false,
            is_gone: false,
            wish: None,
        };
        Self {
            leader: Some(Leader::new(rollout, [1; 32], plan, names.clone(), 0).unwrap()),
            nodes: names
                .iter()
                .map(|name| (name.clone(), node(name)))
                .collect(),
            sent: Vec::new(),
            replies: Vec::new(),
            now_s: 0,
        }
    }

    fn node(&mut self, of: &str) -> &mut Node {
        self.nodes.get_mut(&name(of)).unwrap()
    }

    fn leader(&mut self) -> &mut Leader {
        self.leader.as_mut().unwrap()
    }

    fn stage(&self) -> Stage {
        self.leader.as_ref().unwrap().stage()
    }

    fn new_on(&self) -> String {
        let new = self.nodes.iter().filter(|(_, node)| node.has_new);
        new.map(|(name, _)| name.as_str()).collect()
    }

    fn tick(&mut self) {
        self.now_s += 1;
        let now_ms = NOW_MS + 1_000 * self.now_s;
        let command = self.leader.as_mut().map(|leader| {
            leader.tick(self.now_s * S);
            leader.command(now_ms)
        });
        for node in self.nodes.values_mut() {
            if node.until_s.is_some_and(|until_s| until_s <= self.now_s) {
                node.back();
                node.follower.went_back("not confirmed in time");
            }
            if node.is_gone {
                continue;
            }
            if let Some(command) = &command {
                node.receive(command, self.now_s);
            }
            if let (Some(leader), Some(mut reply)) = (&mut self.leader, node.follower.reply()) {
                reply.wish = node.wish;
                self.replies.push(reply.clone());
                leader.receive(reply, self.now_s * S);
            }
        }
        self.sent.extend(command);
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.tick());
    }
}

impl Node {
    fn back(&mut self) {
        (self.has_new, self.until_s) = (false, None);
    }

    fn receive(&mut self, command: &Command, now_s: u64) {
        let until_s = Some(now_s + command.hold_ms / 1_000);
        match self.follower.receive(command, NOW_MS + 1_000 * now_s) {
            Ok(Act::Check) => self.follower.report(self.reports.clone()),
            Ok(Act::Take) => {
                (self.has_new, self.until_s) = (true, until_s);
                self.follower.report(NodeState::Holds(2));
            }
            Ok(Act::Hold) => self.until_s = until_s,
            Ok(Act::Keep) => {
                (self.is_kept, self.until_s) = (true, None);
                self.follower.report(NodeState::Kept(2));
            }
            Ok(Act::Back) => {
                self.back();
                self.follower
                    .report(NodeState::Back("it was told to".into()));
            }
            Ok(Act::Nothing) | Err(_) => {}
        }
    }
}

#[test]
fn first_a_canary_then_all_then_kept() {
    let mut world = World::new(plan());
    world.run(3);
    assert_eq!(world.new_on(), "a");
    world.run(8);
    assert_eq!(world.new_on(), "a");
    world.run(4);
    assert_eq!(world.new_on(), "abc");
    assert_eq!(world.stage(), Stage::Waiting);
    let now = world.now_s * S;
    assert!(world.leader().left_ns(now).unwrap() > 55 * S);
    assert!(world.leader().keep(now));
    world.run(3);
    assert_eq!(world.stage(), Stage::Kept);
    assert!(world.nodes.values().all(|node| node.is_kept));
    // It is too late to go back.
    assert!(!world.leader().take_back("a change of mind", now));
    world.run(200);
    assert_eq!(world.new_on(), "abc");
}

#[test]
fn an_operator_on_another_node_has_it_kept_or_taken_back() {
    for (wish, stage, new_on) in [
        (Wish::Keep, Stage::Kept, "abc"),
        (Wish::Back, Stage::TakenBack, ""),
    ] {
        let mut world = World::new(plan());
        world.run(15);
        assert_eq!(world.stage(), Stage::Waiting);
        world.node("c").wish = Some(wish);
        world.run(5);
        assert_eq!(world.stage(), stage);
        assert_eq!(world.new_on(), new_on);
    }
    // Before all nodes hold the policy, the only choice is to go back.
    let mut world = World::new(plan());
    world.node("c").wish = Some(Wish::Keep);
    world.run(8);
    assert_eq!(
        (world.stage(), world.new_on()),
        (Stage::Canaries, "a".to_owned())
    );
    world.node("c").wish = Some(Wish::Back);
    world.run(5);
    assert_eq!(world.stage(), Stage::TakenBack);
    let why = "an operator on node c has it taken back";
    assert_eq!(world.leader().why(), Some(why));
    // A node that joined later does not count either.
    let mut world = World::new(plan());
    world.run(15);
    let mut stranger = world.replies.last().unwrap().clone();
    (stranger.node, stranger.wish) = (name("z"), Some(Wish::Keep));
    let now = world.now_s * S;
    world.leader().receive(stranger, now);
    assert_eq!(world.stage(), Stage::Waiting);
}

#[test]
fn an_old_wish_counts_for_no_later_rollout_nor_again() {
    let mut world = World::new(plan());
    // The wish comes too early, and ends.
    world.node("c").wish = Some(Wish::Keep);
    world.run(10);
    world.node("c").wish = None;
    world.run(5);
    assert_eq!(world.stage(), Stage::Waiting);
    let now = world.now_s * S;
    for reply in world.replies.clone() {
        world.leader().receive(reply, now);
    }
    assert_eq!(world.stage(), Stage::Waiting);
    world.node("c").wish = Some(Wish::Keep);
    world.run(3);
    assert_eq!(world.stage(), Stage::Kept);

    let old = world.replies;
    let mut world = World::new(plan());
    let rollout = RolloutId {
        ms: NOW_MS + 1,
        node: name("a"),
    };
    let names = ["a", "b", "c"].map(name);
    world.leader = Some(Leader::new(rollout, [1; 32], plan(), names, 0).unwrap());
    world.run(15);
    assert_eq!(world.stage(), Stage::Waiting);
    let now = world.now_s * S;
    for mut reply in old {
        // Even with the highest number.
        reply.number += 1_000_000;
        world.leader().receive(reply, now);
    }
    assert_eq!(world.stage(), Stage::Waiting);
}

#[test]
fn kept_by_itself() {
    let mut world = World::new(Plan {
        keeps_itself: true,
        canary_count: 0,
        ..plan()
    });
    world.run(8);
    assert_eq!(world.stage(), Stage::Waiting);
    world.run(8);
    assert_eq!(world.stage(), Stage::Kept);
}

#[test]
fn named_canaries() {
    let named = |names: &[&str]| Plan {
        canaries: names.iter().map(|of| name(of)).collect(),
        ..plan()
    };
    let mut world = World::new(named(&["b", "c"]));
    world.run(4);
    assert_eq!(world.new_on(), "bc");
    let rollout = world.leader().rollout().clone();
    let unknown = Leader::new(rollout, [1; 32], named(&["z"]), [name("a")], 0);
    assert_eq!(unknown.unwrap_err(), PlanError::Unknown(name("z")));
    let mut world = World::new(named(&["b"]));
    world.node("b").reports = NodeState::Declines;
    world.run(5);
    assert_eq!(world.stage(), Stage::TakenBack);
}

#[test]
fn nothing_is_changed_by_a_dry_run_or_where_one_refuses() {
    let mut world = World::new(Plan {
        is_dry: true,
        ..plan()
    });
    world.run(3);
    assert_eq!(world.stage(), Stage::Checked);
    assert!(
        world
            .leader()
            .nodes()
            .values()
            .all(|node| node.diff.is_some())
    );

    let mut world = World::new(plan());
    world.node("c").reports = NodeState::Refuses("the guard".into());
    for _ in 0..10 {
        world.tick();
        assert_eq!(world.new_on(), "");
    }
    assert_eq!(world.stage(), Stage::TakenBack);
    assert_eq!(world.leader().why(), Some("node c refuses it: the guard"));
}

#[test]
fn nodes_that_take_no_policies_stand_in_no_way() {
    let mut world = World::new(plan());
    world.node("a").reports = NodeState::Declines;
    world.run(17);
    assert_eq!(world.new_on(), "bc");
    let now = world.now_s * S;
    assert!(world.leader().keep(now));
    world.run(3);
    assert_eq!(world.stage(), Stage::Kept);
    // Without recipients there is nothing to do.
    let mut world = World::new(plan());
    for of in ["a", "b", "c"] {
        world.node(of).reports = NodeState::Declines;
    }
    world.run(5);
    assert_eq!(world.stage(), Stage::TakenBack);
}

#[test]
fn nobody_confirms() {
    let mut world = World::new(plan());
    world.run(90);
    assert_eq!(world.new_on(), "");
    assert_eq!(world.stage(), Stage::TakenBack);
}

#[test]
fn a_canary_that_falls_silent_takes_it_back() {
    let mut world = World::new(plan());
    world.run(4);
    world.node("a").is_gone = true;
    world.run(40);
    assert_eq!(world.stage(), Stage::TakenBack);
    assert_eq!(world.leader().why(), Some("node a is silent"));
    // It goes back although it cannot receive the command to.
    world.run(60);
    assert_eq!(world.new_on(), "");
}

#[test]
fn all_go_back_when_the_leading_node_is_gone() {
    for after in 1..25 {
        let mut world = World::new(plan());
        world.run(after);
        world.leader = None;
        world.run(61);
        assert_eq!(world.new_on(), "", "{after}");
        assert!(world.nodes.values().all(|node| !node.is_kept));
    }
}

#[test]
fn whatever_is_repeated_puts_nothing_in_force() {
    let mut world = World::new(plan());
    world.run(15);
    let now = world.now_s * S;
    assert!(world.leader().take_back("a change of mind", now));
    world.run(5);
    assert_eq!(
        (world.new_on(), world.stage()),
        (String::new(), Stage::TakenBack)
    );
    world.leader = None;
    let sent = world.sent.clone();
    let now_s = world.now_s;
    // This holds for restarted nodes too, since they remember.
    for anew in [false, true] {
        for node in world.nodes.values_mut() {
            if anew {
                let newest = node.follower.newest().cloned();
                node.follower = Follower::new(name("x"), newest);
            }
            for command in sent.iter().chain(sent.iter().rev()) {
                node.receive(command, now_s);
                assert!(!node.has_new);
            }
        }
    }
    // Within a minute, a node that forgot could be fooled, for `hold_ms` at most; later, no node can.
    let mut fresh = Follower::new(name("b"), None);
    let later_ms = NOW_MS + 1_000 * (now_s + 61);
    assert!(
        sent.iter()
            .all(|command| fresh.receive(command, later_ms).is_err())
    );
}

#[test]
fn what_is_kept_here_and_lost_there_is_reported() {
    let mut world = World::new(plan());
    world.run(16);
    world.node("c").is_gone = true;
    let now = world.now_s * S;
    assert!(world.leader().keep(now));
    world.run(20);
    assert_eq!(world.stage(), Stage::KeptBySome);
    world.run(60);
    assert_eq!(world.new_on(), "ab");
}
