//! A leading node and other nodes, with the faults that may happen between them.

use std::collections::BTreeMap;

use super::*;

const NOW_MS: u64 = 1_700_000_000_000;

const S: u64 = 1_000_000_000;

/// A node: its rollouts, and until when it holds the policy.
struct Node {
    rollouts: Rollouts,
    checked: NodePart,
    until_s: Option<u64>,
    has_new: bool,
    is_kept: bool,
    is_gone: bool,
}

/// Nodes of which `a` leads a rollout.
struct World {
    nodes: BTreeMap<Name, Node>,
    is_pushing: bool,
    /// All commands ever sent.
    sent: Vec<Command>,
    /// All replies ever sent.
    replies: Vec<Reply>,
    second: u64,
}

fn name(name: &str) -> Name {
    name.try_into().unwrap()
}

fn plan() -> RolloutPlan {
    RolloutPlan {
        text: "limits: {}".to_owned(),
        canary_count: 1,
        canaries: Vec::new(),
        canary_for_ns: 10 * S,
        confirm_ns: 60 * S,
        dry_run: false,
        yes: false,
    }
}

impl Node {
    fn new(name: Name) -> Self {
        Self {
            rollouts: Rollouts::new(name, None),
            checked: NodePart::would("one limit"),
            until_s: None,
            has_new: false,
            is_kept: false,
            is_gone: false,
        }
    }

    fn receive(&mut self, command: &Command, second: u64) -> Result<(), CommandError> {
        let unix_ms = NOW_MS + 1_000 * second;
        let hold_s = command.hold_ns / S;
        self.rollouts.follow(command.clone(), unix_ms, second * S)?;
        self.until_s = self.until_s.map(|until_s| until_s.max(second + hold_s));
        Ok(())
    }

    fn work(&mut self, second: u64) {
        let rollouts = &mut self.rollouts;
        let is_over = self.until_s.is_some_and(|until_s| until_s <= second);
        if is_over || rollouts.must_go_back() {
            (self.has_new, self.until_s) = (false, None);
        }
        if self.until_s.is_none() {
            rollouts.went_back();
        }
        let Some((command, work)) = rollouts.work() else {
            return;
        };
        let part = match work {
            Work::Check => self.checked.clone(),
            Work::Take(hold) => {
                (self.has_new, self.until_s) = (true, Some(second + hold.as_secs()));
                NodePart::in_force(NodeState::Holds, 2)
            }
            Work::Keep => {
                (self.is_kept, self.until_s) = (true, None);
                NodePart::in_force(NodeState::Kept, 2)
            }
        };
        rollouts.report(&command.rollout, part);
    }
}

impl World {
    /// Returns a rollout after some seconds.
    fn after(seconds: u64, change: impl FnOnce(&mut RolloutPlan)) -> Self {
        let names = ["a", "b", "c"].map(name);
        let nodes = names.clone().map(|name| (name.clone(), Node::new(name)));
        let mut world = Self {
            nodes: nodes.into(),
            is_pushing: true,
            sent: Vec::new(),
            replies: Vec::new(),
            second: 0,
        };
        let mut plan = plan();
        change(&mut plan);
        world.leader().begin(plan, names, NOW_MS, 0).unwrap();
        world.run(seconds);
        world
    }

    fn node(&mut self, of: &str) -> &mut Node {
        self.nodes.get_mut(&name(of)).unwrap()
    }

    fn leader(&mut self) -> &mut Rollouts {
        &mut self.node("a").rollouts
    }

    fn end(&mut self, of: &str, keep: bool) -> Result<RolloutStage, RolloutError> {
        let now_ns = self.second * S;
        let ended = self.node(of).rollouts.end(keep, now_ns);
        ended.map(|status| status.stage)
    }

    /// Returns the names of the nodes with the new policy, and the stage of the rollout.
    fn state(&mut self) -> String {
        let new = self.nodes.iter().filter(|(_, node)| node.has_new);
        let new: String = new.map(|(name, _)| name.as_str()).collect();
        format!("{new} {:?}", self.status().stage)
    }

    fn why(&mut self) -> String {
        self.status().why.unwrap_or_default()
    }

    fn status(&mut self) -> RolloutStatus {
        self.leader().leader.as_ref().unwrap().status().clone()
    }

    fn tick(&mut self) {
        self.second += 1;
        let (second, now_ns) = (self.second, self.second * S);
        if self.is_pushing {
            self.leader().status(now_ns).unwrap();
        }
        let message = self.leader().lead(None, NOW_MS + 1_000 * second, now_ns);
        let command = match message {
            Some(LeaderMessage::Command(command, _)) if !self.node("a").is_gone => Some(command),
            _ => None,
        };
        let mut replies = Vec::new();
        for node in self.nodes.values_mut() {
            if !node.is_gone
                && let Some(command) = &command
            {
                node.receive(command, second).unwrap();
            }
            node.work(second);
            if !node.is_gone {
                replies.extend(node.rollouts.reply(now_ns));
            }
        }
        for reply in &replies {
            self.leader().receive(reply.clone(), now_ns);
        }
        self.sent.extend(command);
        self.replies.extend(replies);
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.tick());
    }
}

#[test]
fn first_a_canary_then_all_then_kept() {
    let mut world = World::after(3, |_| ());
    assert_eq!(world.state(), "a Canaries");
    assert_eq!(world.end("a", true), Err(RolloutError::NotWaiting));
    world.run(8);
    assert_eq!(world.state(), "a Canaries");
    world.run(4);
    assert_eq!(world.state(), "abc Waiting");
    assert!(world.status().left_ns.unwrap() > 55 * S);
    assert_eq!(world.end("a", true), Ok(RolloutStage::Keeping));
    world.run(3);
    assert_eq!(world.state(), "abc Kept");
    assert!(world.nodes.values().all(|node| node.is_kept));
    // The changes stay known, for the command line.
    let diffs = world
        .status()
        .nodes
        .into_values()
        .map(|node| node.part.diff);
    assert!(
        diffs
            .into_iter()
            .all(|diff| diff.as_deref() == Some("one limit"))
    );
    assert_eq!(world.end("a", false), Err(RolloutError::Decided));
    world.run(200);
    assert_eq!(world.state(), "abc Kept");
    // By itself.
    let mut world = World::after(8, |plan| (plan.yes, plan.canary_count) = (true, 0));
    assert_eq!(world.state(), "abc Waiting");
    world.run(8);
    assert_eq!(world.state(), "abc Kept");
}

#[test]
fn an_operator_on_another_node_has_it_kept_or_taken_back() {
    for (keep, end) in [(true, "abc Kept"), (false, " TakenBack")] {
        let mut world = World::after(15, |_| ());
        assert_eq!(world.end("c", keep), Ok(RolloutStage::Waiting));
        world.run(5);
        assert_eq!(world.state(), end);
        // It is decided, there too.
        assert_eq!(world.end("c", !keep), Err(RolloutError::Decided));
        world.end("c", keep).unwrap();
    }
    // Before all nodes hold the policy, the only choice is to go back.
    let mut world = World::after(8, |_| ());
    assert_eq!(world.end("c", true), Err(RolloutError::NotWaiting));
    world.end("c", false).unwrap();
    world.run(5);
    assert_eq!(world.why(), "an operator on node c has it taken back");
    world.second += 16;
    assert_eq!(world.end("c", true), Err(RolloutError::Nothing));
}

#[test]
fn an_old_wish_counts_for_no_later_rollout_nor_again() {
    let mut world = World::after(15, |_| ());
    let mut wish = world.replies.last().unwrap().clone();
    wish.wish = Some(true);
    world.leader().receive(wish.clone(), 15 * S);
    assert_eq!(world.state(), "abc Waiting");
    wish.number += 1_000_000;
    for change in [
        |wish: &mut Reply| wish.rollout.ms -= 1,
        // A node that joined later.
        |wish: &mut Reply| wish.node = name("z"),
    ] {
        let mut wish = wish.clone();
        change(&mut wish);
        world.leader().receive(wish, 15 * S);
        assert_eq!(world.state(), "abc Waiting");
    }
    world.leader().receive(wish, 15 * S);
    assert_eq!(world.state(), "abc Keeping");
    // A wish ends soon.
    let mut world = World::after(15, |_| ());
    world.end("c", true).unwrap();
    world.second += 2;
    world.run(2);
    assert_eq!(world.state(), "abc Waiting");
}

#[test]
fn named_canaries() {
    let mut world = World::after(4, |plan| plan.canaries = ["b", "c"].map(name).into());
    assert_eq!(world.state(), "bc Canaries");
    let mut world = World::after(0, |plan| plan.canaries = vec![name("b")]);
    world.node("b").checked = NodeState::TakesNone.into();
    world.run(5);
    assert_eq!(world.state(), " TakenBack");
}

#[test]
fn nothing_is_changed_by_a_dry_run_or_where_one_refuses() {
    let mut world = World::after(3, |plan| plan.dry_run = true);
    assert_eq!(world.state(), " Checked");
    let mut nodes = world.status().nodes.into_values();
    assert!(nodes.all(|node| node.part.diff.is_some()));
    // It is repeated for a while, then removed.
    world.run(17);
    assert!(world.sent.len() > 15 && world.sent.len() < 20);

    let mut world = World::after(0, |_| ());
    world.node("c").checked = NodePart::because(NodeState::Refuses, "the guard");
    for _ in 0..10 {
        world.tick();
        assert!(world.state().starts_with(' '));
    }
    assert_eq!(world.state(), " TakenBack");
    assert_eq!(world.why(), "node c refuses it: the guard");
}

#[test]
fn nodes_that_take_no_policies_stand_in_no_way() {
    let mut world = World::after(0, |_| ());
    world.node("a").checked = NodeState::TakesNone.into();
    world.run(17);
    assert_eq!(world.state(), "bc Waiting");
    world.end("a", true).unwrap();
    world.run(3);
    assert_eq!(world.state(), "bc Kept");
    // Without recipients there is nothing to do.
    let mut world = World::after(0, |_| ());
    for node in world.nodes.values_mut() {
        node.checked = NodeState::TakesNone.into();
    }
    world.run(5);
    assert_eq!(world.state(), " TakenBack");
}

#[test]
fn all_go_back_without_a_confirmation_or_the_command_that_pushed() {
    for (pushing, why) in [
        (90, "nobody has confirmed it in time"),
        (20, "the command that pushed it has ended"),
    ] {
        let mut world = World::after(pushing, |_| ());
        world.is_pushing = false;
        world.run(15);
        assert_eq!(world.state(), " TakenBack");
        assert_eq!(world.why(), why);
    }
}

#[test]
fn a_node_that_falls_silent_takes_it_back() {
    for (after, why) in [(0, "node b does not answer"), (4, "node b is silent")] {
        let mut world = World::after(after, |plan| plan.canaries = vec![name("b")]);
        world.node("b").is_gone = true;
        world.run(40);
        assert!(world.state().ends_with(" TakenBack"));
        assert_eq!(world.why(), why);
        // It goes back although it cannot receive the command to.
        world.run(60);
        assert_eq!(world.state(), " TakenBack");
    }
}

#[test]
fn a_node_that_does_not_end_its_check_takes_it_back() {
    let mut world = World::after(0, |_| ());
    world.node("c").checked = NodeState::Checking.into();
    world.run(119);
    assert_eq!(world.state(), " Checking");
    world.run(3);
    assert_eq!(world.why(), "node c is not done with it in time");
}

#[test]
fn all_go_back_when_the_leading_node_is_gone() {
    for after in 1..25 {
        let mut world = World::after(after, |_| ());
        world.node("a").is_gone = true;
        world.run(61);
        let mut nodes = world.nodes.values();
        assert!(nodes.all(|node| !node.has_new && !node.is_kept), "{after}");
    }
}

#[test]
fn a_policy_kept_on_some_nodes_is_reported() {
    let mut world = World::after(16, |_| ());
    world.node("c").is_gone = true;
    world.end("a", true).unwrap();
    world.run(80);
    assert_eq!(world.state(), "ab KeptBySome");
}

#[test]
fn whatever_is_repeated_puts_nothing_in_force() {
    let mut world = World::after(15, |_| ());
    world.end("a", false).unwrap();
    world.run(5);
    assert_eq!(world.state(), " TakenBack");
    let (sent, second) = (world.sent.clone(), world.second);
    // This holds for restarted nodes too, since they remember.
    for wrong in [CommandError::Repeated, CommandError::Older] {
        for node in world.nodes.values_mut() {
            for command in sent.iter().chain(sent.iter().rev()) {
                assert_eq!(node.receive(command, second), Err(wrong));
                node.work(second);
                assert!(!node.has_new);
            }
            let newest = node.rollouts.newest().cloned();
            node.rollouts = Rollouts::new(name("x"), newest);
        }
    }
    let mut newer = sent[0].clone();
    newer.rollout.ms += 1;
    assert_eq!(world.node("b").receive(&newer, second), Ok(()));
    // Within a minute, a node that forgot could be fooled, for `hold_ns` at most; later, no node can.
    let mut fresh = Node::new(name("b"));
    for command in &sent {
        assert_eq!(fresh.receive(command, second + 61), Err(CommandError::Old));
    }
}

#[test]
fn one_rollout_at_a_time() {
    let mut world = World::after(15, |_| ());
    let (second, now_ns) = (world.second, world.second * S);
    for node in world.nodes.values_mut() {
        let begun = node.rollouts.begin(plan(), [name("a")], NOW_MS, now_ns);
        assert_eq!(begun, Err(RolloutError::UnderWay(name("a"))));
    }
    let mut newer = world.sent[0].clone();
    newer.rollout.node = name("b");
    let received = world.node("c").receive(&newer, second);
    assert_eq!(received, Err(CommandError::Busy));
    world.end("a", false).unwrap();
    world.run(3);
    assert_eq!(world.node("c").receive(&newer, second), Ok(()));
    // The leading node repeats its last command, but yields to a newer rollout.
    let leader = world.leader();
    assert!(leader.lead(None, NOW_MS, now_ns).is_some());
    for in_store in [Some(&newer), None] {
        assert_eq!(leader.lead(in_store, NOW_MS, now_ns), None);
    }
    // The next rollout is above all known ones, whatever the clock says.
    let next = &mut world.node("c").rollouts;
    let begun = next.begin(plan(), [name("c")], 0, now_ns + 60 * S);
    assert!(begun.unwrap().rollout > newer.rollout);
}

#[test]
fn a_command_during_work_is_followed_thereafter() {
    let world = World::after(15, |_| ());
    let mut node = Node::new(name("b"));
    node.receive(&world.sent[0], 1).unwrap();
    node.work(1);
    let [mut take, mut back] =
        [(50, RolloutStage::Others), (51, RolloutStage::GoingBack)].map(|(number, stage)| {
            Command {
                number,
                stage,
                ..world.sent[0].clone()
            }
        });
    node.receive(&take, 12).unwrap();
    let hold = std::time::Duration::from_mins(1);
    let work = node.rollouts.work();
    assert_eq!(work, Some((take.clone(), Work::Take(hold))));
    node.receive(&back, 13).unwrap();
    let rollouts = &mut node.rollouts;
    let holds = NodePart::in_force(NodeState::Holds, 2);
    rollouts.report(&back.rollout, holds.clone());
    assert!(rollouts.must_go_back() && rollouts.went_back() && !rollouts.went_back());
    // A result for another rollout is none for this one.
    take.rollout.ms -= 1;
    rollouts.report(&take.rollout, holds);
    assert_eq!(rollouts.reply(13 * S).unwrap().part.state, NodeState::Back);
    // A rollout has one file.
    (back.number, back.sha256) = (52, file_digest(b"other"));
    assert_eq!(node.receive(&back, 14), Err(CommandError::OtherFile));
}

#[test]
fn only_right_commands_begin_a_rollout() {
    use CommandError::{Ahead, Hold, Long, Names, Old, Unchecked};
    let first = World::after(1, |_| ()).sent.remove(0);
    let received = |change: fn(&mut Command)| {
        let mut command = first.clone();
        change(&mut command);
        Node::new(name("b")).receive(&command, 1)
    };
    assert_eq!(received(|_| {}), Ok(()));
    assert_eq!(received(|first| first.ms -= 60_000), Ok(()));
    assert_eq!(received(|first| first.ms -= 60_001), Err(Old));
    assert_eq!(received(|first| first.ms += 60_001), Err(Ahead));
    assert_eq!(received(|first| first.rollout.ms += 62_000), Err(Long));
    assert_eq!(received(|first| first.rollout.ms -= 10_800_000), Err(Long));
    assert_eq!(received(|first| first.hold_ns = 5 * S - 1), Err(Hold));
    assert_eq!(received(|first| first.hold_ns = u64::MAX), Err(Hold));
    let many = |first: &mut Command| first.canaries = vec![name("a"); MOST_CANARIES + 1];
    assert_eq!(received(many), Err(Names));
    let later = |first: &mut Command| first.stage = RolloutStage::Others;
    assert_eq!(received(later), Err(Unchecked));
}

#[test]
fn only_plans_that_fit_begin_a_rollout() {
    use RolloutError::{Nobody, Nothing, Times, TooLong, TooMany, Unknown};
    let refused = |change: fn(&mut RolloutPlan)| {
        let mut plan = plan();
        change(&mut plan);
        let begun = Rollouts::new(name("a"), None).begin(plan, [name("a")], NOW_MS, 0);
        begun.unwrap_err()
    };
    let long = |plan: &mut RolloutPlan| plan.text = "#".repeat(MOST_FILE + 1);
    assert_eq!(refused(long), TooLong);
    assert_eq!(refused(|plan| plan.confirm_ns = 5 * S - 1), Times);
    assert_eq!(refused(|plan| plan.confirm_ns = u64::MAX), Times);
    assert_eq!(refused(|plan| plan.canary_for_ns = u64::MAX), Times);
    assert_eq!(refused(|plan| plan.canary_count = 65), TooMany);
    let stranger = |plan: &mut RolloutPlan| plan.canaries = vec![name("z")];
    assert_eq!(refused(stranger), Unknown(name("z")));
    let mut alone = Rollouts::new(name("a"), None);
    assert_eq!(alone.begin(plan(), [], NOW_MS, 0), Err(Nobody));
    assert_eq!(alone.status(0), Err(Nothing));
    assert_eq!(alone.end(true, 0), Err(Nothing));
}

#[test]
fn ids_and_texts_are_bounded() {
    let id = RolloutId::try_from("17 fra-1".to_owned()).unwrap();
    assert_eq!(id.to_string(), "17 fra-1");
    for wrong in ["", "1", "x a", "1 ", "1 A", "-1 a"] {
        assert!(RolloutId::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
    let diff = |text: &str| NodePart::would(text).diff.unwrap();
    assert_eq!(&*diff("one\n  two\u{1b}[1m\n"), "one\n  two [1m");
    let long = diff(&"ä".repeat(MOST_TEXT));
    assert!(long.len() <= MOST_TEXT && long.ends_with("ä\n…"));
    let part = |why: &str, diff: &str| NodePart {
        why: Some(why.into()),
        diff: Some(diff.into()),
        ..NodePart::default()
    };
    assert!(part("", &long).is_right());
    assert!(!part("\u{1b}[1m", "").is_right());
    assert!(!part("x", &"x".repeat(MOST_TEXT)).is_right());
}
