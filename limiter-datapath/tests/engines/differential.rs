//! Random frames and random policies through both engines, and against a plain model. Halfway,
//! another policy takes over the buckets.

use std::{
    collections::BTreeSet,
    env, iter,
    net::IpAddr,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    thread,
};

use anyhow::{Context as _, Result};
use limiter_common::{
    answer::Answer,
    classified_packet::ClassifiedPacket,
    connection::Ends,
    cookie::CookieCheck,
    decide::account,
    dns::slot_of,
    packet::{Facts, NameMatch, parse},
    policy::{Tables as _, with_overrides},
    reason::{Action, Reason},
    server_name::FlowRecord,
    standing::Standing,
    strategy::{Parameters, Strategy as Rule, gcra::CurrentRate},
};
use limiter_native::BytesFrame;
use limiter_policy::{
    config::Store,
    policy::{CompiledPolicy, Policy, automatic::interval_of},
};
use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    engine::{Engines, START, classified, flow_of},
    model,
    question::Question,
    random,
    server_name::ConnectionName,
};

/// The environment variable that overrides the number of policies of a run.
const POLICIES: &str = "LIMITER_DIFFERENTIAL_POLICIES";
const DEFAULT_POLICIES: u32 = 50;

/// The number of frames for each policy.
const FRAMES: usize = 10_000;

/// The longest usual time between two frames, in nanoseconds.
const STEP: u64 = 3_000_000;

/// The time since the previous frame, an optional move of the automatic rates before this frame,
/// and the frame.
type SentFrame = (u64, Option<Move>, Vec<u8>);

/// The new value of an automatic rate.
#[derive(Clone, Copy, Debug)]
struct Move {
    /// An emission interval in nanoseconds, perhaps beyond the limit's bounds.
    interval_ns: u64,
    /// The time for which it holds, in nanoseconds.
    holds_ns: u64,
}

fn sent() -> impl Strategy<Value = SentFrame> {
    let moves = (1..12_000_000_u64, 0..500_000_000_u64);
    let moves = moves.prop_map(|(interval_ns, holds_ns)| Move {
        interval_ns,
        holds_ns,
    });
    let moves = prop::option::weighted(0.02, moves);
    (step(), moves, random::frame())
}

/// The time between two frames: sometimes exactly a limit's period, when its windows end.
fn step() -> impl Strategy<Value = u64> {
    prop_oneof![
        40 => 0..STEP,
        5 => Just(0),
        2 => prop::sample::select(random::PERIODS.to_vec()),
    ]
}

#[test]
fn kernel_and_native_agree_and_do_what_the_policy_says() -> Result<()> {
    let policies = match env::var(POLICIES) {
        Ok(number) => number.parse().context(POLICIES)?,
        Err(_) => DEFAULT_POLICIES,
    };
    // An emulated machine has time for fewer policies, which cannot show every outcome.
    let shows_everything = policies >= DEFAULT_POLICIES;
    // Rare outcomes may take some more.
    let most = if shows_everything {
        4 * policies
    } else {
        policies
    };
    let frames = prop::collection::vec(sent(), FRAMES);
    let frames = generate(&frames, &mut TestRunner::default());
    let (tried, seen) = (AtomicU32::new(0), Mutex::new(OutcomeCounts::default()));
    let try_policies = || -> Result<()> {
        let mut runner = TestRunner::default();
        for number in
            iter::repeat_with(|| tried.fetch_add(1, SeqCst)).take_while(|number| *number < most)
        {
            if number >= policies && locked(&seen).is_everything() {
                break;
            }
            let policies = ShownOnPanic(generate(&random::successive(), &mut runner));
            let store = if number % 2 == 0 {
                Store::Table
            } else {
                Store::Hash
            };
            let own = generate(&own_addresses(), &mut runner);
            check(&policies.0, &own, store, &frames, &seen)?;
        }
        Ok(())
    };
    // Two at a time, as the verifier takes most of the time.
    thread::scope(|scope| {
        let other = scope.spawn(try_policies);
        try_policies()?;
        other.join().expect("the other thread does not panic")
    })?;
    if shows_everything {
        locked(&seen).assert_everything();
    }
    Ok(())
}

fn locked(seen: &Mutex<OutcomeCounts>) -> MutexGuard<'_, OutcomeCounts> {
    seen.lock().expect("no thread panics")
}

/// The host's own addresses, which some frames forge.
fn own_addresses() -> impl Strategy<Value = BTreeSet<IpAddr>> {
    prop::collection::btree_set(random::address(), 0..6)
}

fn check(
    [policy, next]: &[Policy; 2],
    own: &BTreeSet<IpAddr>,
    store: Store,
    frames: &[SentFrame],
    seen: &Mutex<OutcomeCounts>,
) -> Result<()> {
    let mut engines = Engines::with(policy, store)?;
    engines.set_own(own)?;
    engines.set_cookie_keys(random::cookie_keys(&[random::secret(1)]))?;
    let mut now = 0;
    let mut send_half = |engines: &mut Engines, policy, half: &[SentFrame]| {
        // Sockets are full at first, and then have room.
        let (before, with_room) = half.split_at(FRAMES / 4);
        send(engines, policy, own, &mut now, before, seen)?;
        engines.set_room(true)?;
        send(engines, policy, own, &mut now, with_room, seen)?;
        engines.assert_same_state();
        anyhow::Ok(())
    };
    let (before, after) = frames.split_at(FRAMES / 2);
    send_half(&mut engines, policy, before)?;
    engines.replace(next)?;
    send_half(&mut engines, next, after)?;
    locked(seen).cookies += engines.cookie_checks()?[CookieCheck::Valid as usize];
    Ok(())
}

fn send(
    engines: &mut Engines,
    policy: &Policy,
    own: &BTreeSet<IpAddr>,
    now: &mut u64,
    frames: &[SentFrame],
    seen: &Mutex<OutcomeCounts>,
) -> Result<()> {
    for (step, moves, frame) in frames {
        *now += step;
        if let Some(Move {
            interval_ns,
            holds_ns,
        }) = *moves
        {
            let rate = CurrentRate::new(interval_ns, START + *now + holds_ns);
            for limit in policy.limits.iter().filter(|limit| limit.ceiling.is_some()) {
                engines.set_rate(limit.id, rate)?;
            }
        }
        let connection = Connection::of(engines, frame);
        let flow = connection.flow(engines.tables());
        if let Some(flow) = flow.filter(|flow| flow.meaning.compiled_by != 0) {
            engines.name(connection.ends, flow)?;
        }
        let verdict = engines.verdict(*now, frame);
        // The name in such a packet is unknown, so no limit is asked.
        let is_dropped_unchecked = match verdict.reason {
            Reason::MalformedDns => Question::is_hidden(frame),
            Reason::NameContradicted => connection.is_urgent,
            _ => false,
        };
        let matched = if is_dropped_unchecked {
            verdict.matched
        } else {
            meant(
                policy,
                engines.tables(),
                frame,
                &connection,
                verdict.standing(),
            )
        };
        assert_eq!(
            verdict.matched, matched,
            "the limits that count {frame:02x?}"
        );
        let is_answered = verdict.answer() != Answer::Drop;
        let packet = connection.packet(engines.tables(), frame);
        let is_own =
            (packet.as_ref()).is_some_and(|packet| own.contains(&packet.facts.source.into()));
        assert!(!(is_own && is_answered), "an answer to {frame:02x?}");
        let mut seen = locked(seen);
        match verdict.action(engines.tables()) {
            Action::Pass => seen.passed += u64::from(matched != 0),
            Action::Drop => seen.dropped += u64::from(matched != 0),
        }
        seen.would_drop += u64::from(verdict.would_drop != 0);
        let overridden_by_name = packet.map_or(0, |packet| packet.name_match.overridden);
        let by_answering = verdict.refused_by().is_some_and(|limit_index| {
            let limit = &policy.limits[limit_index as usize];
            verdict.reason.is_of_budget() && limit.answers().is_some()
        });
        seen.answered += u64::from(is_answered);
        seen.to_socket += u64::from(verdict.reason == Reason::ListenerHasRoom);
        seen.own += u64::from(is_own && by_answering);
        for (limit_index, limit) in (0..).zip(&policy.limits) {
            let charged = verdict.matched & !verdict.would_drop & (1 << limit_index) != 0;
            let denied = verdict.refused_by() == Some(limit_index);
            let did = LimitOutcomes {
                admitted: u64::from(verdict.reason == Reason::WithinLimits && charged),
                refused: u64::from(verdict.reason == Reason::OverLimit && denied),
            };
            seen.strategies[limit.strategy as usize].add(&did);
            if limit.ceiling.is_some() {
                seen.automatic.add(&did);
            }
            if overridden_by_name & (1 << limit_index) != 0 {
                seen.overridden_by_name.add(&did);
            }
            if limit.counts_by_server_name() {
                seen.by_server_name.add(&did);
            }
            if !limit.matching.icmp_types.is_empty() {
                seen.by_icmp_type.add(&did);
            }
        }
    }
    Ok(())
}

/// The connection of a frame, if the frame is a segment of one.
struct Connection {
    ends: Ends,
    /// Whether the frame has urgent data.
    is_urgent: bool,
    /// The known name of the connection.
    name: ConnectionName,
}

impl Connection {
    fn of(engines: &Engines, frame: &[u8]) -> Self {
        let mut facts = Facts::NONE;
        let is_good = parse(&BytesFrame(frame), &mut facts).is_ok();
        let is_recorded = is_good && engines.records_connections();
        let name = if is_recorded {
            random::server_name(&facts)
        } else {
            ConnectionName::Nothing
        };
        Self {
            ends: Ends::of_facts(&facts),
            is_urgent: facts.is_urgent(),
            name,
        }
    }

    /// The policy's record of the connection; `None`: nothing is known.
    fn flow(&self, tables: &CompiledPolicy) -> Option<FlowRecord> {
        let is_recorded = !matches!(self.name, ConnectionName::Nothing);
        is_recorded.then(|| flow_of(tables, self.name.name()))
    }

    /// The packet of a well-formed frame of the connection.
    fn packet(&self, tables: &CompiledPolicy, frame: &[u8]) -> Option<ClassifiedPacket> {
        let mut packet = classified(tables, frame)?;
        if let Some(flow) = self.flow(tables) {
            ask(tables, &mut packet, &flow);
        }
        Some(packet)
    }
}

/// The limits that count a frame of a source of that standing, by the model. Its rates must agree
/// with the tables.
fn meant(
    policy: &Policy,
    tables: &CompiledPolicy,
    frame: &[u8],
    connection: &Connection,
    standing: Option<Standing>,
) -> u64 {
    let Some(packet) = connection.packet(tables, frame) else {
        return 0;
    };
    let question = Question::of(frame);
    let wish = model::PacketNames {
        question: question.as_ref(),
        server_name: &connection.name,
    };
    let mut meant = 0;
    for (limit_index, limit) in (0..).zip(&policy.limits) {
        let Some(rate) = model::rate(policy, limit, &packet.facts, wish) else {
            continue;
        };
        let of_standing = &limit.matching.standing;
        if of_standing.is_empty() || standing.is_some_and(|one| of_standing.contains(&one)) {
            meant |= 1 << limit_index;
        }
        let account = account(tables, &packet, limit_index).expect("a limit with that index");
        let (count, period_ns) = match limit.ceiling {
            Some(_) => (1, interval_of(rate.count)),
            None => (rate.count, rate.period_ns),
        };
        let parameters = Parameters::new(limit.strategy, rate.burst, count, period_ns);
        // The policy compiler has numbered the units.
        let parameters = parameters.map(|parameters| Parameters {
            unit: account.parameters.unit,
            stamp_unit: account.parameters.stamp_unit,
            ..parameters
        });
        assert_eq!(
            Some(*account.parameters),
            parameters,
            "limit {limit_index} for {frame:02x?}"
        );
    }
    meant
}

/// The outcomes that occurred. A test without them would prove nothing.
#[derive(Default)]
struct OutcomeCounts {
    passed: u64,
    dropped: u64,
    would_drop: u64,
    answered: u64,
    /// The refused SYNs that listening sockets got.
    to_socket: u64,
    /// The refused packets from the host's own addresses, by limits that answer.
    own: u64,
    /// The queries with valid cookies.
    cookies: u64,
    /// By the strategy's number.
    strategies: [LimitOutcomes; Rule::ALL.len()],
    /// By limits with an automatic rate.
    automatic: LimitOutcomes,
    /// By limits with an override for the name in the packet.
    overridden_by_name: LimitOutcomes,
    /// By limits that count connections by their names.
    by_server_name: LimitOutcomes,
    /// By limits that count ICMP messages by their types.
    by_icmp_type: LimitOutcomes,
}

/// The packets that some limits admitted and refused.
#[derive(Default)]
struct LimitOutcomes {
    admitted: u64,
    refused: u64,
}

impl LimitOutcomes {
    const fn add(&mut self, more: &Self) {
        self.admitted += more.admitted;
        self.refused += more.refused;
    }
}

impl OutcomeCounts {
    /// Whether every outcome occurred.
    fn is_everything(&self) -> bool {
        let others = [
            &self.automatic,
            &self.overridden_by_name,
            &self.by_server_name,
            &self.by_icmp_type,
        ];
        let all = self.strategies.iter().chain(others);
        let both = |did: &LimitOutcomes| did.admitted > 0 && did.refused > 0;
        self.events().into_iter().all(|seen| seen > 0) && all.into_iter().all(both)
    }

    const fn events(&self) -> [u64; 7] {
        [
            self.passed,
            self.dropped,
            self.would_drop,
            self.answered,
            self.to_socket,
            self.own,
            self.cookies,
        ]
    }

    fn assert_everything(&self) {
        let Self {
            passed,
            dropped,
            would_drop,
            answered,
            to_socket,
            own,
            cookies,
            strategies,
            automatic,
            overridden_by_name,
            by_server_name,
            by_icmp_type,
        } = self;
        println!("limited frames: {passed} passed, {dropped} dropped; {would_drop} observed");
        println!("{answered} answered, {to_socket} to a socket; {own} in the host's own name");
        println!("{cookies} proven by cookies");
        assert!(self.events().into_iter().all(|seen| seen > 0));
        let names = Rule::ALL.iter().map(|strategy| strategy.name());
        let others = [
            ("automatic", automatic),
            ("override by name", overridden_by_name),
            ("server name", by_server_name),
            ("ICMP type", by_icmp_type),
        ];
        let all = names.zip(strategies).chain(others);
        for (name, LimitOutcomes { admitted, refused }) in all {
            println!("{name}: {admitted} admitted, {refused} refused");
            assert!(*admitted > 0 && *refused > 0, "{name}");
        }
    }
}

struct ShownOnPanic([Policy; 2]);

impl Drop for ShownOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{:#?}", self.0);
        }
    }
}

/// Generates a value without shrinking, which would load a program each time. A failure prints its
/// frame.
pub(crate) fn generate<T>(strategy: &impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy
        .new_tree(runner)
        .expect("the strategies reject little")
        .current()
}

/// Adds the record of its connection to a packet.
fn ask(tables: &CompiledPolicy, packet: &mut ClassifiedPacket, flow: &FlowRecord) {
    let features = tables.features();
    if features.by_server_name == 0 {
        return;
    }
    let slot = slot_of(tables, flow.meaning.name);
    let name_match = NameMatch {
        limits: flow.meaning.limits,
        zone: flow.meaning.name,
        overrides: slot.map_or(0, |slot| slot.overrides),
        ..NameMatch::NOTHING
    };
    packet.name_match = with_overrides(tables, &packet.facts.source, &packet.class, &name_match);
}
