//! Both engines over one policy.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem,
    net::IpAddr,
};

use ipnet::IpNet;
use limiter_common::{
    answer::{Answer, AssumedSocket, Exchange},
    ban::{Ban, BanKey, BanText, Hits},
    bucket::Bucket,
    classified_packet::ClassifiedPacket,
    connection::{ConnectionOrder, CountId, Ends},
    cookie::{CookieCheck, CookieKeys},
    counters::{LimitTraffic, Traffic},
    decide::{AssumedStack, Pipeline, Scratch, Verdict},
    dns::match_frame,
    key::BucketKey,
    limit::{FIRST_CUSTOM_ID, LimitId},
    name_hash::NameKeys,
    offender::{RECORDS_BURST, RECORDS_PER_SECOND},
    packet::{Facts, Frame as _, NameMatch, TcpState, parse},
    policy::{classify, with_overrides},
    reason::{
        Action,
        Reason::{self},
    },
    server_name::{FirstBytes, FlowRecord, Meaning, QuicFlow},
    sieve::{Pressure, SieveTraffic},
    standing::{Event, Record, SourceId, Standing},
    strategy::{
        gcra::{CurrentRate, KeyShare},
        moving_window::{Cursor, STAMPS},
    },
    table::HashKey,
    unit::UnitTable as _,
};
use limiter_datapath::kernel::{DatapathError, SharedMaps, SourceMaps, Trial, possible_cpus};
use limiter_native::{
    BucketLocation, BytesFrame, FixedClock, MemoryBuckets, MemoryOffenders, MemorySieves,
    MemorySourceTables, MemoryStanding, SieveSnapshot, answer_frame, complete_handshake,
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::{CompiledPolicy, DnsName, Limit, Match, Policy, SieveSizes},
};
use nix::{
    sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity},
    unistd::Pid,
};

/// Some fixed time after boot.
pub(crate) const START: u64 = 1_000_000_000_000;

/// The key chooses the shards of sieves, so both engines need the same one.
const HASH_KEY: HashKey = HashKey {
    first: 0x0123_4567_89ab_cdef,
    second: 0xfedc_ba98_7654_3210,
};

/// The key numbers names. All nodes of a fleet share it.
const NAMES_KEY: HashKey = HashKey {
    first: 0x1032_5476_98ba_dcfe,
    second: 0xefcd_ab89_6745_2301,
};

pub(crate) fn policy(limits: impl IntoIterator<Item = Limit>) -> Policy {
    Policy::from(limits.into_iter().collect::<Vec<_>>())
}

/// A policy with one limit per port, from [`FIRST_CUSTOM_ID`] on; the port is also the limit's id. So one program
/// tests them all.
pub(crate) fn apart(limits: impl IntoIterator<Item = Limit>) -> Policy {
    let limits = (FIRST_CUSTOM_ID..)
        .zip(limits)
        .map(|(number, limit)| Limit {
            name: format!("Limit{number}"),
            id: LimitId(number),
            matching: Match {
                destination_ports: vec![number..=number],
                ..Match::default()
            },
            ..limit
        });
    policy(limits)
}

/// A well-formed packet with the class of its source.
pub(crate) fn classified(tables: &CompiledPolicy, frame: &[u8]) -> Option<ClassifiedPacket> {
    let mut facts = Facts::NONE;
    parse(&BytesFrame(frame), &mut facts).ok()?;
    let class = *classify(tables, &facts.source)?;
    let name_match = match_frame(tables, &BytesFrame(frame), facts.datagram);
    Some(ClassifiedPacket {
        facts,
        class,
        now: 0,
        interface: 0,
        name_match: with_overrides(tables, &facts.source, &class, &name_match),
    })
}

/// The record of a connection that asks for that name, or for none.
pub(crate) fn flow_of(tables: &CompiledPolicy, name: Option<&DnsName>) -> FlowRecord {
    let names = &tables.server_names;
    FlowRecord::new(1, 0).read(Meaning::new(names.number(), &names.match_tcp_name(name)))
}

fn compiled(policy: &Policy) -> CompiledPolicy {
    CompiledPolicy::new(policy, possible_cpus()).expect("the test's policy compiles")
}

/// Keeps the thread on its present CPU.
pub(crate) fn stay_on_one_cpu() -> nix::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(sched_getcpu()?)?;
    sched_setaffinity(Pid::from_raw(0), &cpus)
}

fn stays_on_one_cpu() -> bool {
    let cpus = sched_getaffinity(Pid::from_raw(0)).expect("any thread may ask");
    let is_allowed = |cpu: &usize| cpus.is_set(*cpu).unwrap_or_default();
    (0..CpuSet::count()).filter(is_allowed).count() == 1
}

/// The same policy in memory and in the kernel.
pub(crate) struct Engines {
    tables: CompiledPolicy,
    buckets: MemoryBuckets,
    offenders: MemoryOffenders,
    source_tables: MemorySourceTables,
    scratch: Scratch<BucketLocation>,
    exchange: Exchange,
    /// The network stack that both engines assume.
    assumed: AssumedStack,
    /// The latest time.
    now: u64,
    /// The expected counts of the verdicts so far, by reason and by the limit's interned id.
    by_reason: HashMap<Reason, Traffic>,
    by_limit: BTreeMap<u16, LimitTraffic>,
    /// The expected traffic of limits that reserve, by the source's standing.
    by_standing: BTreeMap<(u16, usize), LimitTraffic>,
    /// The answers that were sent for each limit's interned id, by their number.
    by_answer: BTreeMap<(u16, u32), Traffic>,
    /// The number of packets that a bucket or a sieve refused.
    refused: u64,
    /// The number of packets that passed after a refusal, by a bucket or to give way to others.
    perhaps_refused: u64,
    trial: Trial,
    records_connections: bool,
}

impl Engines {
    pub(crate) fn new(policy: &Policy) -> Result<Self, DatapathError> {
        Self::with(policy, Store::Table)
    }

    pub(crate) fn with(policy: &Policy, store: Store) -> Result<Self, DatapathError> {
        Self::of_tables(compiled(policy), store)
    }

    /// Makes engines that record `visits` visits in a tick, and then a part of them. The calling thread stays on
    /// one CPU, as each CPU has its own count.
    pub(crate) fn recording(policy: &Policy, visits: u64) -> Result<Self, DatapathError> {
        stay_on_one_cpu().expect("any thread may");
        let mut tables = compiled(policy);
        tables.features.standing.recorded_visits = visits;
        Self::of_tables(tables, Store::Table)
    }

    fn of_tables(tables: CompiledPolicy, store: Store) -> Result<Self, DatapathError> {
        let buckets = Buckets {
            store,
            // So large that five buckets hardly ever meet in a line of four.
            capacity: match store {
                Store::Table => 1 << 19,
                Store::Hash => 1 << 16,
            },
            ..Buckets::default()
        };
        let tables = tables.keyed(HASH_KEY, NameKeys::new(&NAMES_KEY));
        let trial = Trial::with_same_secret(&tables, buckets, Offenders::default())?;
        let source_tables = MemorySourceTables {
            sieves: MemorySieves::new(SieveSizes::of(&tables.sieves)),
            standing: MemoryStanding::new(&tables.features.standing),
            ..MemorySourceTables::default()
        };
        Ok(Self {
            trial,
            records_connections: tables.features.by_server_name != 0,
            by_limit: BTreeMap::new(),
            by_standing: BTreeMap::new(),
            refused: 0,
            perhaps_refused: 0,
            tables,
            buckets: MemoryBuckets::default(),
            offenders: MemoryOffenders::default(),
            source_tables,
            scratch: Scratch::default(),
            exchange: Exchange::EMPTY,
            assumed: AssumedStack::default(),
            by_answer: BTreeMap::new(),
            now: START,
            by_reason: HashMap::new(),
        })
    }

    /// Bans a prefix in both until `offset_ns` after [`START`].
    pub(crate) fn ban(&mut self, prefix: IpNet, offset_ns: u64) -> Result<(), DatapathError> {
        let key = BanKey::new(&prefix.network().into(), prefix.prefix_len());
        let until_ns = START.saturating_add(offset_ns);
        self.source_tables.bans.insert(key, until_ns);
        let ban = Ban {
            until_ns,
            since_ns: START,
            times: 1,
            limit: Ban::BY_HAND,
            text: BanText::EMPTY,
        };
        self.trial.source_maps().bans().insert(key, ban)
    }

    /// Gives the host these addresses in both.
    pub(crate) fn set_own(&mut self, addresses: &BTreeSet<IpAddr>) -> Result<(), DatapathError> {
        self.source_tables.own = addresses.iter().copied().collect();
        self.trial.source_maps().own().set(addresses)
    }

    /// Has the host begin a connection in both.
    pub(crate) fn begin(&mut self, ends: Ends) -> Result<(), DatapathError> {
        self.source_tables.own_connections.add(ends);
        self.trial.source_maps().own_connections().add(ends)
    }

    /// Whether connections can be recorded: there is room for them if the first policy asks for their names.
    pub(crate) const fn records_connections(&self) -> bool {
        self.records_connections
    }

    /// Records in both the record of a connection.
    pub(crate) fn name(&mut self, ends: Ends, flow: FlowRecord) -> Result<(), DatapathError> {
        self.source_tables.flows.set(ends, flow);
        self.trial.source_maps().server_names().add(ends, flow)
    }

    /// Records in both the read first bytes of a connection.
    pub(crate) fn add_first_bytes(
        &mut self,
        ends: Ends,
        bytes: &[u8],
    ) -> Result<(), DatapathError> {
        let bytes = FirstBytes::new(bytes);
        self.source_tables.flows.set_first_bytes(ends, bytes);
        let maps = self.trial.source_maps().server_names();
        maps.add_first_bytes(ends, bytes)
    }

    /// Records in both the name of a QUIC flow that was last active `offset_ns` after [`START`].
    pub(crate) fn name_quic(
        &mut self,
        ends: Ends,
        meaning: Meaning,
        offset_ns: u64,
    ) -> Result<(), DatapathError> {
        let flow = QuicFlow::new(meaning, START + offset_ns);
        self.source_tables.flows.set_quic(ends, flow);
        self.trial.source_maps().server_names().add_quic(ends, flow)
    }

    /// Records a QUIC flow in the kernel alone, which has few entries.
    pub(crate) fn name_quic_in_kernel(
        &self,
        ends: Ends,
        meaning: Meaning,
    ) -> Result<(), DatapathError> {
        let flow = QuicFlow::new(meaning, self.now);
        self.trial.source_maps().server_names().add_quic(ends, flow)
    }

    /// The policy's meaning of a QUIC flow's name.
    pub(crate) fn quic_meaning(&self, name: &str) -> Meaning {
        let name: DnsName = name.parse().expect("a name");
        let names = &self.tables.server_names;
        Meaning::new(names.number(), &names.match_quic_name(Some(&name)))
    }

    /// The policy's record of a name, as the readers of names write it.
    pub(crate) fn flow_with_name(&self, name: &str) -> FlowRecord {
        flow_of(&self.tables, Some(&name.parse().expect("a name")))
    }

    /// Counts an open connection of a source by the limit with that index in both.
    pub(crate) fn open(&mut self, source: IpAddr, limit_index: usize) -> Result<(), DatapathError> {
        let count_id = self.count_id(source, limit_index);
        self.source_tables.connections.add(count_id);
        self.trial.source_maps_mut().connections_mut().add(count_id)
    }

    /// Completes a handshake in both.
    pub(crate) fn complete(&self, ends: Ends, offset_ns: u64) -> Result<(), DatapathError> {
        let now_ns = START + offset_ns;
        complete_handshake(&self.tables, &self.buckets, &ends, now_ns);
        self.trial
            .recount([ConnectionOrder::completed(ends, now_ns)])
    }

    /// Removes one open connection in both.
    pub(crate) fn close(
        &mut self,
        source: IpAddr,
        limit_index: usize,
    ) -> Result<(), DatapathError> {
        let count_id = self.count_id(source, limit_index);
        self.source_tables.connections.take_off(count_id);
        let maps = self.trial.source_maps_mut();
        maps.connections_mut().take_off(count_id)
    }

    /// The count id under which the limit with that index counts the connections of a source.
    fn count_id(&self, source: IpAddr, limit_index: usize) -> CountId {
        let facts = Facts {
            source: source.into(),
            ..Facts::NONE
        };
        let limit = &self.tables.limits[limit_index];
        let family = facts.source.family.index();
        CountId::of_packet(&HASH_KEY, limit, &facts, &0, &NameMatch::NOTHING, family)
    }

    /// The number of tickets of waiting clients, which must be the same in both.
    pub(crate) fn waiting(&self) -> Result<usize, DatapathError> {
        let queues = self.trial.source_maps().connections().queues();
        let waiting = queues.tickets()?.len();
        assert_eq!(self.source_tables.queues.waiting(), waiting, "in memory");
        Ok(waiting)
    }

    /// Sets the keys that check DNS cookies in both.
    pub(crate) fn set_cookie_keys(&mut self, keys: CookieKeys) -> Result<(), DatapathError> {
        self.source_tables.cookies.keys = keys;
        self.trial.source_maps().cookies().set(keys)
    }

    /// The number of queries by the result of their cookie check, which must be the same in both.
    pub(crate) fn cookie_checks(&self) -> Result<[u64; CookieCheck::COUNT], DatapathError> {
        let mut counts = [0; CookieCheck::COUNT];
        for (count, check) in counts.iter_mut().zip(CookieCheck::ALL) {
            *count = self.trial.source_maps().cookies().count(check)?;
            assert_eq!(*count, self.source_tables.cookies.count(check), "{check:?}");
        }
        Ok(counts)
    }

    /// Sets in both whether listening sockets have room for SYNs, until the policy is replaced.
    pub(crate) fn set_room(&mut self, has_room: bool) -> Result<(), DatapathError> {
        self.assumed.socket = if has_room {
            AssumedSocket::HasRoom
        } else {
            AssumedSocket::Full
        };
        self.trial.set_room(has_room)
    }

    /// Sets in both the connection state that segments other than SYNs find, until the policy is replaced.
    pub(crate) fn set_tcp_state(&mut self, state: TcpState) -> Result<(), DatapathError> {
        self.assumed.others = state;
        self.trial.set_tcp_state(state)
    }

    /// Clears lifted bans from the kernel's filter.
    pub(crate) fn clear_ban_filter(&self) -> Result<(), DatapathError> {
        self.trial.source_maps().bans().clear_filter()
    }

    /// The hits of a prefix's bans, which must be the same in both.
    pub(crate) fn hits(&self, prefix: IpNet) -> Result<Hits, DatapathError> {
        let key = BanKey::new(&prefix.network().into(), prefix.prefix_len());
        let hits = self.trial.source_maps().bans().hits(&key)?;
        assert_eq!(self.source_tables.bans.hits(&key), hits, "{prefix}");
        Ok(hits)
    }

    /// Lifts the ban of a prefix in both. The hits must be the same.
    pub(crate) fn unban(&mut self, prefix: IpNet) -> Result<bool, DatapathError> {
        self.hits(prefix)?;
        let key = BanKey::new(&prefix.network().into(), prefix.prefix_len());
        let lifted = self.trial.source_maps().bans().remove(&key)?;
        assert_eq!(self.source_tables.bans.remove(&key), lifted);
        Ok(lifted)
    }

    /// Sets a pressure in both; it holds until `offset_ns` after [`START`].
    pub(crate) fn press(
        &mut self,
        index: u32,
        pressure: u32,
        offset_ns: u64,
    ) -> Result<(), DatapathError> {
        let pressure = Pressure::new(pressure, START.saturating_add(offset_ns));
        self.source_tables.sieves.set_pressure(index, pressure);
        let sieves = self.trial.source_maps().sieves();
        sieves.pressures().set_pressure(index, pressure)
    }

    /// Gives a limit with an automatic rate a rate in both.
    pub(crate) fn set_rate(
        &mut self,
        limit: LimitId,
        rate: CurrentRate,
    ) -> Result<(), DatapathError> {
        self.tables.current_rates.insert(limit, rate);
        self.trial.source_maps().rates().set(limit, rate)
    }

    /// Gives a key its own share in both; `None` takes it.
    pub(crate) fn set_key_share(
        &self,
        bucket: BucketKey,
        share: Option<KeyShare>,
    ) -> Result<(), DatapathError> {
        self.tables.key_shares.set_key_share(bucket, share);
        let maps = self.trial.source_maps().key_shares();
        match share {
            Some(share) => maps.set(&[(bucket, share)]),
            None => maps.remove(&[bucket]),
        }
    }

    /// The keys' shares with their demand, which must be the same in both.
    pub(crate) fn key_shares(&self) -> HashMap<BucketKey, KeyShare> {
        let maps = self.trial.source_maps().key_shares();
        let mut kernel = HashMap::new();
        let shown = maps.each(|_, bucket, share| {
            kernel.insert(*bucket, share);
        });
        shown.expect("a readable map");
        assert_eq!(kernel, self.tables.key_shares.by_key());
        kernel
    }

    /// The kernel's source maps.
    pub(crate) const fn source_maps(&self) -> &SourceMaps {
        self.trial.source_maps()
    }

    /// Removes and returns the keys that want a share, which must be the same in both.
    pub(crate) fn take_wanting(&self) -> HashMap<BucketKey, u64> {
        let maps = self.trial.source_maps().key_shares();
        let kernel = maps.take_wanting().expect("a readable map");
        let kernel: HashMap<_, _> = kernel.into_iter().collect();
        assert_eq!(kernel, self.tables.key_shares.take_wanting());
        kernel
    }

    /// The counters of a use of a sieve, which must be the same in both.
    pub(crate) fn sieve_traffic(&self, index: u32) -> Result<SieveTraffic, DatapathError> {
        let kernel = self.trial.source_maps().sieves().traffic(index)?;
        assert_eq!(
            kernel,
            self.source_tables.sieves.traffic(index),
            "use {index}"
        );
        Ok(kernel)
    }

    /// The contents of a sieve, which must be the same in both.
    pub(crate) fn in_sieve(&self, number: usize) -> SieveSnapshot {
        let sieve = &self.tables.sieves[number];
        let kernel = self.trial.source_maps().sieves().memory().snapshot(sieve);
        assert_eq!(kernel, self.source_tables.sieves.memory().snapshot(sieve));
        kernel
    }

    /// Records an event of a source in both, `offset_ns` after [`START`]; returns its standing afterwards, which
    /// must be the same in both.
    pub(crate) fn record_event(
        &self,
        offset_ns: u64,
        source: IpAddr,
        event: Event,
    ) -> Result<Standing, DatapathError> {
        let (features, now) = (&self.tables.features, START + offset_ns);
        let source = SourceId::new(&features.standing, &source.into());
        let kernel = self.trial.source_maps().standing();
        let kernel = kernel.record_event(features, source, event, now)?;
        let native = &self.source_tables.standing;
        let native = native.happened(features, source, event, now);
        assert_eq!(kernel, native, "{event:?} of {source:?} at {now}");
        Ok(kernel)
    }

    /// The standing of an address in the kernel, `offset_ns` after [`START`].
    pub(crate) fn standing(
        &self,
        offset_ns: u64,
        address: IpAddr,
    ) -> Result<Standing, DatapathError> {
        let prefix = IpNet::from(address);
        let key = BanKey::new(&prefix.addr().into(), prefix.prefix_len());
        let found = self.trial.standing_of(&key, START + offset_ns)?;
        Ok(found.standing)
    }

    /// Checks that both have the same records of all sources, and the same latest shortage; returns the number of
    /// known sources.
    pub(crate) fn assert_same_standing(&self) -> Result<usize, DatapathError> {
        let kernel = self.trial.source_maps().standing();
        let native = &self.source_tables.standing;
        assert_eq!(kernel.shortage()?, native.shortage());
        let in_order = |mut known: Vec<(SourceId, Record)>| {
            known.sort_unstable_by_key(|(source, _)| source.0);
            known
        };
        let known = in_order(native.records().collect());
        assert_eq!(in_order(kernel.all().collect()), known);
        for (source, record) in &known {
            assert_eq!(kernel.record(&self.tables.features, *source), *record);
        }
        Ok(known.len())
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; returns the reason.
    pub(crate) fn judge(&mut self, offset_ns: u64, frame: &[u8]) -> Reason {
        self.verdict(offset_ns, frame).reason
    }

    /// Puts a frame through both, `offset_ns` after [`START`]; returns the verdict, which must be the same in
    /// both.
    pub(crate) fn verdict(&mut self, offset_ns: u64, frame: &[u8]) -> Verdict {
        let now = START + offset_ns;
        let allowance_ns = RECORDS_BURST * 1_000_000_000 / RECORDS_PER_SECOND;
        assert!(
            now + allowance_ns / 2 >= self.now || stays_on_one_cpu(),
            "time that goes back spends the records' allowance of one CPU, not of another"
        );
        let frame_in_memory = BytesFrame(frame);
        let pipeline = Pipeline {
            clock: &FixedClock(now),
            tables: &self.tables,
            buckets: &self.buckets,
            offenders: &self.offenders,
            source_tables: &self.source_tables,
        };
        let native = pipeline.decide_with(
            &frame_in_memory,
            &mut self.scratch,
            &mut self.exchange,
            self.assumed,
        );
        let kernel = self
            .trial
            .judge(now, frame)
            .expect("the kernel runs the program");
        assert_eq!(
            kernel, native,
            "kernel and native differ on {frame:02x?} at {now}"
        );
        let answer = match native.answer() {
            Answer::Drop => Vec::new(),
            _ => answer_frame(frame, &self.exchange),
        };
        assert_eq!(self.trial.answer(), answer, "to {frame:02x?} at {now}");
        self.count_answer(&native, answer.len() as u64);
        self.now = now;
        self.count(&native, frame_in_memory.length() as u64);
        native
    }

    /// Replaces the policy and keeps the buckets, counters and offenders.
    pub(crate) fn replace(&mut self, policy: &Policy) -> Result<(), DatapathError> {
        let rates = mem::take(&mut self.tables.current_rates);
        let shares = mem::take(&mut self.tables.key_shares);
        self.tables = CompiledPolicy::with_units(policy, &self.tables.units, possible_cpus())
            .expect("the test's policy compiles")
            .keyed(HASH_KEY, NameKeys::new(&NAMES_KEY));
        self.tables.current_rates = rates;
        self.tables.key_shares = shares;
        self.buckets.set_units(self.tables.units.clone());
        self.assumed = AssumedStack::default();
        self.trial.replace(&self.tables)
    }

    /// The answer to the last frame; empty if it was not answered.
    pub(crate) fn answer(&self) -> &[u8] {
        self.trial.answer()
    }

    fn count_answer(&mut self, verdict: &Verdict, length: u64) {
        if verdict.answer() != Answer::Drop
            && let Some(limit_index) = verdict.refused_by()
        {
            let id = self.tables.limits[limit_index as usize].id;
            let by_answer = self.by_answer.entry((id, verdict.answer() as u32));
            *by_answer.or_default() += Traffic::of_frame(length);
        }
    }

    fn count(&mut self, verdict: &Verdict, length: u64) {
        let carried = Traffic::of_frame(length);
        *self.by_reason.entry(verdict.reason).or_default() += carried;
        // No offenders are: a source that a list blocks for a limit, that gives way, or that has too many
        // connections. A source that a sieve drops is one, even without a limit.
        let by_sieve = verdict.reason.is_of_sieve();
        let by_budget = verdict.refused_by().is_some()
            && !verdict.reason.is_of_list()
            && !matches!(
                verdict.reason,
                Reason::Reserved | Reason::TooManyConnections
            );
        let after_all = matches!(
            verdict.reason,
            Reason::ValidSynCookie | Reason::ListenerHasRoom
        );
        let may_give_way = self.tables.features.reserving != 0;
        self.refused += u64::from(by_sieve || by_budget || after_all && !may_give_way);
        self.perhaps_refused += u64::from(after_all && may_give_way);
        let action = verdict.action(&self.tables);
        for (limit_index, limit) in (0..).zip(&self.tables.limits) {
            let bit = 1 << limit_index;
            let mut got = LimitTraffic::default();
            match action {
                Action::Drop if verdict.refused_by() == Some(limit_index) => {
                    got.dropped += carried;
                }
                Action::Pass if verdict.would_drop & bit != 0 => got.would_drop += carried,
                Action::Pass if verdict.matched & bit != 0 => got.passed += carried,
                _ => {}
            }
            *self.by_limit.entry(limit.id).or_default() += got;
            if self.tables.features.reserving_anything() & bit != 0
                && let Some(standing) = verdict.standing()
            {
                let by_standing = self.by_standing.entry((limit.id, standing as usize));
                *by_standing.or_default() += got;
            }
        }
    }

    /// Checks that every bucket and offender is the same on both sides, and that the kernel has counted every
    /// verdict.
    pub(crate) fn assert_same_state(&self) {
        let maps = self.maps();
        let native = self.buckets.clone().into_states();
        for key in native.keys().filter(|key| key.part() == 0) {
            let native = self.buckets.bucket(key).expect("it is there");
            let kernel = maps.bucket(key).expect("a readable map");
            let unit = self.tables.units.unit(native.unit).expect("a known unit");
            // A full bucket may be forgotten: a missing one is full.
            if unit.layout.strategy().has_log() {
                let in_kernel = |key: &BucketKey| maps.bucket(key).expect("a readable map");
                let in_memory = |key: &BucketKey| self.buckets.bucket(key);
                let kernel =
                    kernel.map_or_else(Vec::new, |cursor| self.counting(key, cursor, in_kernel));
                assert_eq!(kernel, self.counting(key, native, in_memory), "{key:?}");
            } else if kernel.is_some() || unit.debt_ns(self.now, native.state) > 0 {
                assert_eq!(kernel, Some(native), "{key:?}");
            }
        }
        let lost = maps.lossy_evictions().expect("a readable map");
        assert_eq!(lost, 0, "there is room for all");
        let count = maps.bucket_count().expect("a readable map");
        assert!(count <= native.len(), "the kernel has {count}");
        for reason in Reason::ALL {
            let kernel = maps.reason_traffic(0, *reason).expect("a readable map");
            let native = self.by_reason.get(reason).copied().unwrap_or_default();
            assert_eq!(kernel, native, "{}", reason.name());
        }
        for (id, native) in &self.by_limit {
            let kernel = maps.limit_traffic(LimitId(*id)).expect("a readable map");
            assert_eq!(kernel, *native, "limit {id}");
            for (number, standing) in Standing::ALL.into_iter().enumerate() {
                let kernel = maps.standing_traffic(LimitId(*id), standing);
                let native = self.by_standing.get(&(*id, number)).copied();
                assert_eq!(
                    kernel.expect("a readable map"),
                    native.unwrap_or_default(),
                    "limit {id}, {}",
                    standing.name()
                );
            }
        }
        for id in self.by_limit.keys() {
            for answer in Answer::ALL {
                let kernel = maps.answer_traffic(LimitId(*id), answer);
                let native = self.by_answer.get(&(*id, answer as u32)).copied();
                let kernel = kernel.expect("a readable map");
                assert_eq!(kernel, native.unwrap_or_default(), "limit {id}, {answer:?}");
            }
        }
        let recorded = maps.offenders().read().expect("a readable map");
        assert_eq!(
            HashMap::<_, _>::from_iter(recorded.offenders),
            HashMap::from_iter(self.offenders.list())
        );
        assert_eq!(
            HashMap::<_, _>::from_iter(recorded.names),
            HashMap::from_iter(self.offenders.names())
        );
        let counts = recorded.counts;
        assert_eq!(counts, self.offenders.counts());
        let refused = self.refused..=self.refused + self.perhaps_refused;
        assert!(
            refused.contains(&(counts.recorded + counts.skipped)),
            "{counts:?}, not {refused:?}"
        );
    }

    /// The TATs in a log that still count, the last one first. The stamps have the same numbers on both sides
    /// only until one side forgets the cursor of a full bucket.
    fn counting(
        &self,
        key: &BucketKey,
        cursor: Bucket,
        stored: impl Fn(&BucketKey) -> Option<Bucket>,
    ) -> Vec<u64> {
        let cursor = Cursor::of_state(cursor.state, self.now);
        let stamps = (2..=STAMPS).filter_map(|nth| stored(&key.of_part(cursor.stamp(nth))));
        [cursor.last]
            .into_iter()
            .chain(stamps.map(|stamp| stamp.state))
            .filter(|tat| *tat > self.now)
            .collect()
    }

    pub(crate) fn maps(&self) -> &SharedMaps {
        self.trial.maps()
    }

    pub(crate) fn tables(&self) -> &CompiledPolicy {
        &self.tables
    }
}
