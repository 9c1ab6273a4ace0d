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

fn id(ms: u64) -> RolloutId {
    let node = name("a");
    RolloutId { ms, node }
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
        self.rollouts
            .follower
            .receive(command.clone(), unix_ms, second * S)?;
        self.until_s = self.until_s.map(|until_s| until_s.max(second + hold_s));
        Ok(())
    }

    fn work(&mut self, second: u64) {
        let follower = &mut self.rollouts.follower;
        let is_over = self.until_s.is_some_and(|until_s| until_s <= second);
        if is_over || follower.must_go_back() {
            (self.has_new, self.until_s) = (false, None);
        }
        if self.until_s.is_none() {
            follower.went_back();
        }
        let Some((command, work)) = follower.work() else {
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
        follower.report(&command.rollout, part);
    }
}

impl World {
    fn new(plan: RolloutPlan) -> Self {
        Self::begun(plan, NOW_MS)
    }

    fn begun(plan: RolloutPlan, unix_ms: u64) -> Self {
        let names = ["a", "b", "c"].map(name);
        let nodes = names.clone().map(|name| (name.clone(), Node::new(name)));
        let mut world = Self {
            nodes: nodes.into(),
            is_pushing: true,
            sent: Vec::new(),
            replies: Vec::new(),
            second: 0,
        };
        let begun = world.leader().begin(plan, names, unix_ms, 0);
        assert_eq!(begun.unwrap().stage, RolloutStage::Checking);
        world
    }

    /// Returns a rollout after some seconds.
    fn after(seconds: u64, plan: RolloutPlan) -> Self {
        let mut world = Self::new(plan);
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
    fn state(&mut self) -> (String, RolloutStage) {
        let new = self.nodes.iter().filter(|(_, node)| node.has_new);
        let new = new.map(|(name, _)| name.as_str()).collect();
        (new, self.status().stage)
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
                replies.extend(node.rollouts.follower.reply(now_ns));
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

fn in_state(new: &str, stage: RolloutStage) -> (String, RolloutStage) {
    (new.to_owned(), stage)
}

#[test]
fn first_a_canary_then_all_then_kept() {
    let mut world = World::after(3, plan());
    assert_eq!(world.state(), in_state("a", RolloutStage::Canaries));
    assert_eq!(world.end("a", true), Err(RolloutError::NotWaiting));
    world.run(8);
    assert_eq!(world.state(), in_state("a", RolloutStage::Canaries));
    world.run(4);
    assert_eq!(world.state(), in_state("abc", RolloutStage::Waiting));
    assert!(world.status().left_ns.unwrap() > 55 * S);
    assert_eq!(world.end("a", true), Ok(RolloutStage::Keeping));
    world.run(3);
    assert_eq!(world.state(), in_state("abc", RolloutStage::Kept));
    assert!(world.nodes.values().all(|node| node.is_kept));
    // The changes stay known, for the command line.
    let nodes = world.status().nodes;
    assert!(
        nodes
            .values()
            .all(|node| node.part.diff.as_deref() == Some("one limit"))
    );
    assert_eq!(world.end("a", false), Err(RolloutError::Decided));
    world.run(200);
    assert_eq!(world.state(), in_state("abc", RolloutStage::Kept));
}

#[test]
fn an_operator_on_another_node_has_it_kept_or_taken_back() {
    for (keep, end) in [
        (true, in_state("abc", RolloutStage::Kept)),
        (false, in_state("", RolloutStage::TakenBack)),
    ] {
        let mut world = World::after(15, plan());
        assert_eq!(world.end("c", keep), Ok(RolloutStage::Requested));
        world.run(5);
        assert_eq!(world.state(), end);
        // It is decided, there too.
        assert_eq!(world.end("c", !keep), Err(RolloutError::Decided));
        assert!(
            world
                .end("c", keep)
                .is_ok_and(|stage| !stage.is_undecided())
        );
    }
    // Before all nodes hold the policy, the only choice is to go back.
    let mut world = World::after(8, plan());
    assert_eq!(world.end("c", true), Err(RolloutError::NotWaiting));
    world.end("c", false).unwrap();
    world.run(5);
    let why = "an operator on node c has it taken back";
    assert_eq!(world.status().why.as_deref(), Some(why));
    // A node that joined later does not count, nor does one that lost the rollout.
    let mut world = World::after(15, plan());
    let mut stranger = world.replies.last().unwrap().clone();
    (stranger.node, stranger.wish) = (name("z"), Some(true));
    world.leader().receive(stranger, 15 * S);
    assert_eq!(world.state().1, RolloutStage::Waiting);
    world.second += 16;
    assert_eq!(world.end("c", true), Err(RolloutError::Nothing));
}

#[test]
fn an_old_wish_counts_for_no_later_rollout_nor_again() {
    let mut world = World::after(15, plan());
    let mut wish = world.replies.last().unwrap().clone();
    wish.wish = Some(true);
    world.leader().receive(wish.clone(), 15 * S);
    assert_eq!(world.state().1, RolloutStage::Waiting);
    wish.number += 1_000_000;
    let mut later = World::begun(plan(), NOW_MS + 1);
    later.run(15);
    later.leader().receive(wish.clone(), 15 * S);
    assert_eq!(later.state().1, RolloutStage::Waiting);
    world.leader().receive(wish, 15 * S);
    assert_eq!(world.state().1, RolloutStage::Keeping);
}

#[test]
fn kept_by_itself() {
    let mut world = World::after(
        8,
        RolloutPlan {
            yes: true,
            canary_count: 0,
            ..plan()
        },
    );
    assert_eq!(world.state(), in_state("abc", RolloutStage::Waiting));
    world.run(8);
    assert_eq!(world.state(), in_state("abc", RolloutStage::Kept));
}

#[test]
fn named_canaries() {
    let named = |names: &[&str]| RolloutPlan {
        canaries: names.iter().map(|of| name(of)).collect(),
        ..plan()
    };
    let mut world = World::after(4, named(&["b", "c"]));
    assert_eq!(world.state(), in_state("bc", RolloutStage::Canaries));
    let mut world = World::new(named(&["b"]));
    world.node("b").checked = NodeState::TakesNone.into();
    world.run(5);
    assert_eq!(world.state(), in_state("", RolloutStage::TakenBack));
}

#[test]
fn nothing_is_changed_by_a_dry_run_or_where_one_refuses() {
    let mut world = World::after(
        3,
        RolloutPlan {
            dry_run: true,
            ..plan()
        },
    );
    assert_eq!(world.state(), in_state("", RolloutStage::Checked));
    let nodes = world.status().nodes;
    assert!(nodes.values().all(|node| node.part.diff.is_some()));

    let mut world = World::new(plan());
    world.node("c").checked = NodePart::because(NodeState::Refuses, "the guard");
    for _ in 0..10 {
        world.tick();
        assert_eq!(world.state().0, "");
    }
    assert_eq!(world.state().1, RolloutStage::TakenBack);
    assert_eq!(
        world.status().why.as_deref(),
        Some("node c refuses it: the guard")
    );
}

#[test]
fn nodes_that_take_no_policies_stand_in_no_way() {
    let mut world = World::new(plan());
    world.node("a").checked = NodeState::TakesNone.into();
    world.run(17);
    assert_eq!(world.state(), in_state("bc", RolloutStage::Waiting));
    world.end("a", true).unwrap();
    world.run(3);
    assert_eq!(world.state(), in_state("bc", RolloutStage::Kept));
    // Without recipients there is nothing to do.
    let mut world = World::new(plan());
    for node in world.nodes.values_mut() {
        node.checked = NodeState::TakesNone.into();
    }
    world.run(5);
    assert_eq!(world.state(), in_state("", RolloutStage::TakenBack));
}

#[test]
fn all_go_back_without_a_confirmation_or_the_command_that_pushed() {
    for (pushing_s, why) in [
        (90, "nobody has confirmed it in time"),
        (20, "the command that pushed it has ended"),
    ] {
        let mut world = World::after(pushing_s, plan());
        world.is_pushing = false;
        world.run(15);
        assert_eq!(world.state(), in_state("", RolloutStage::TakenBack));
        assert_eq!(world.status().why.as_deref(), Some(why));
    }
}

#[test]
fn a_node_that_falls_silent_takes_it_back() {
    for (after_s, why) in [(0, "node b does not answer"), (4, "node b is silent")] {
        let canaries = vec![name("b")];
        let mut world = World::after(after_s, RolloutPlan { canaries, ..plan() });
        world.node("b").is_gone = true;
        world.run(40);
        assert_eq!(world.state().1, RolloutStage::TakenBack);
        assert_eq!(world.status().why.as_deref(), Some(why));
        // It goes back although it cannot receive the command to.
        world.run(60);
        assert_eq!(world.state().0, "");
    }
}

#[test]
fn all_go_back_when_the_leading_node_is_gone() {
    for after_s in 1..25 {
        let mut world = World::after(after_s, plan());
        world.node("a").is_gone = true;
        world.run(61);
        assert_eq!(world.state().0, "", "{after_s}");
        assert!(world.nodes.values().all(|node| !node.is_kept));
    }
}

#[test]
fn a_policy_kept_on_some_nodes_is_reported() {
    let mut world = World::after(16, plan());
    world.node("c").is_gone = true;
    world.end("a", true).unwrap();
    world.run(80);
    assert_eq!(world.state(), in_state("ab", RolloutStage::KeptBySome));
}

#[test]
fn whatever_is_repeated_puts_nothing_in_force() {
    let mut world = World::after(15, plan());
    world.end("a", false).unwrap();
    world.run(5);
    assert_eq!(world.state(), in_state("", RolloutStage::TakenBack));
    let (sent, second) = (world.sent.clone(), world.second);
    // This holds for restarted nodes too, since they remember.
    for is_restarted in [false, true] {
        for node in world.nodes.values_mut() {
            if is_restarted {
                let newest = node.rollouts.follower.newest().cloned();
                node.rollouts = Rollouts::new(name("x"), newest);
            }
            let wrong = if is_restarted {
                CommandError::Older
            } else {
                CommandError::Repeated
            };
            for command in sent.iter().chain(sent.iter().rev()) {
                assert_eq!(node.receive(command, second), Err(wrong));
                node.work(second);
                assert!(!node.has_new);
            }
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
    let mut world = World::after(15, plan());
    let (second, unix_ms) = (world.second, NOW_MS + 15_000);
    for node in world.nodes.values_mut() {
        let begun = node
            .rollouts
            .begin(plan(), [name("a")], unix_ms, second * S);
        assert_eq!(begun, Err(RolloutError::UnderWay(name("a"))));
    }
    let mut newer = world.sent[0].clone();
    newer.rollout.node = name("b");
    let node = world.node("c");
    assert_eq!(node.receive(&newer, second), Err(CommandError::Busy));
    world.end("a", false).unwrap();
    world.run(3);
    assert_eq!(world.node("c").receive(&newer, second), Ok(()));
    // The leading node repeats its last command, but yields to a newer rollout.
    assert!(world.leader().lead(None, unix_ms, second * S).is_some());
    assert_eq!(world.leader().lead(Some(&newer), unix_ms, second * S), None);
    assert_eq!(world.leader().lead(None, unix_ms, second * S), None);
    // The next rollout is above all known ones, whatever the clock says.
    let begun = world
        .node("c")
        .rollouts
        .begin(plan(), [name("c")], 0, (second + 60) * S);
    assert!(begun.unwrap().rollout > newer.rollout);
}

#[test]
fn an_ended_rollout_is_removed() {
    let mut world = World::after(
        20,
        RolloutPlan {
            dry_run: true,
            ..plan()
        },
    );
    let removed = world.leader().lead(None, NOW_MS, 20 * S);
    assert_eq!(removed, None);
    assert_eq!(world.status().stage, RolloutStage::Checked);
    assert!(world.sent.len() > 15 && world.sent.len() < 20);
}

#[test]
fn a_command_during_work_is_followed_thereafter() {
    let world = World::after(15, plan());
    let mut node = Node::new(name("b"));
    let mut commands = world.sent.iter();
    node.receive(commands.next().unwrap(), 1).unwrap();
    node.work(1);
    let take = commands
        .find(|command| command.stage == RolloutStage::Others)
        .unwrap();
    node.receive(take, 12).unwrap();
    let (_, work) = node.rollouts.follower.work().unwrap();
    assert_eq!(work, Work::Take(std::time::Duration::from_mins(1)));
    let mut back = take.clone();
    (back.number, back.stage) = (99, RolloutStage::GoingBack);
    node.receive(&back, 13).unwrap();
    let follower = &mut node.rollouts.follower;
    follower.report(&back.rollout, NodePart::in_force(NodeState::Holds, 2));
    assert!(follower.must_go_back() && follower.went_back() && !follower.went_back());
    // A result for an earlier rollout is none for this one.
    follower.report(&id(1), NodePart::in_force(NodeState::Holds, 2));
    assert_eq!(follower.reply(13 * S).unwrap().part.state, NodeState::Back);
}

#[test]
fn only_right_commands_are_followed() {
    let world = World::after(5, plan());
    let changed: [(fn(&mut Command), _); 12] = [
        (|_| {}, Ok(())),
        (|command| command.ms -= MOST_OLD_MS, Ok(())),
        (
            |command| command.ms -= MOST_OLD_MS + 1,
            Err(CommandError::Old),
        ),
        (|command| command.ms += 61_000, Err(CommandError::Ahead)),
        (
            |command| command.rollout.ms -= 3 * 3_600_000,
            Err(CommandError::Long),
        ),
        (
            |command| command.rollout.ms += 62_000,
            Err(CommandError::Long),
        ),
        (
            |command| command.hold_ns = 4_999_999_999,
            Err(CommandError::Hold),
        ),
        (
            |command| command.hold_ns = u64::MAX,
            Err(CommandError::Hold),
        ),
        (
            |command| command.canaries = vec![name("a"); MOST_CANARIES + 1],
            Err(CommandError::Names),
        ),
        (
            |command| command.stage = RolloutStage::Others,
            Err(CommandError::Unchecked),
        ),
        (
            |command| command.stage = RolloutStage::Keeping,
            Err(CommandError::Unchecked),
        ),
        (|command| command.rollout.ms -= 1, Ok(())),
    ];
    for (change, expected) in changed {
        let mut command = world.sent[0].clone();
        change(&mut command);
        let mut node = Node::new(name("b"));
        assert_eq!(node.receive(&command, 1), expected, "{command:?}");
    }
    // A rollout has one file.
    let mut node = Node::new(name("b"));
    node.receive(&world.sent[0], 1).unwrap();
    let mut other = world.sent[4].clone();
    other.sha256 = file_digest(b"other");
    assert_eq!(node.receive(&other, 5), Err(CommandError::OtherFile));
}

#[test]
fn plans_that_do_not_fit_are_refused() {
    let refused = |change: fn(&mut RolloutPlan)| {
        let mut plan = plan();
        change(&mut plan);
        let begun = Rollouts::new(name("a"), None).begin(plan, [name("a")], NOW_MS, 0);
        begun.unwrap_err()
    };
    let long = refused(|plan| plan.text = "#".repeat(MOST_FILE + 1));
    assert_eq!(long, RolloutError::TooLong);
    assert_eq!(
        refused(|plan| plan.confirm_ns = 5 * S - 1),
        RolloutError::Times
    );
    assert_eq!(
        refused(|plan| plan.confirm_ns = u64::MAX),
        RolloutError::Times
    );
    assert_eq!(
        refused(|plan| plan.canary_for_ns = u64::MAX),
        RolloutError::Times
    );
    assert_eq!(
        refused(|plan| plan.canary_count = 65),
        RolloutError::TooMany
    );
    let unknown = refused(|plan| plan.canaries = vec![name("z")]);
    assert_eq!(unknown, RolloutError::Unknown(name("z")));
    let mut alone = Rollouts::new(name("a"), None);
    assert_eq!(
        alone.begin(plan(), [], NOW_MS, 0),
        Err(RolloutError::Nobody)
    );
    assert_eq!(alone.status(0), Err(RolloutError::Nothing));
    assert_eq!(alone.end(true, 0), Err(RolloutError::Nothing));
}

#[test]
fn ids_and_texts_are_bounded() {
    let rollout = id(NOW_MS);
    assert_eq!(RolloutId::try_from(rollout.to_string()), Ok(rollout));
    for wrong in ["", "1", "x a", "1 ", "1 A", "-1 a"] {
        let id = RolloutId::try_from(wrong.to_owned());
        assert_eq!(id, Err(InvalidRolloutId), "{wrong}");
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
