//! Tables of drops and of the events that follow.

use std::{collections::BTreeMap, net::IpAddr};

use limiter_common::{address::Address, limit::KeyPart, offender::RecordingCounts};

use super::*;
use crate::incidents::lines::LINES_PER_MINUTE;

const SECOND: u64 = 1_000_000_000;
const START: u64 = 1_000 * SECOND;
const QUIET: Duration = Duration::from_secs(30);

/// The kernel's records, and the incidents that follow from them.
struct Scene {
    incidents: Incidents,
    now_ns: u64,
    offenders: HashMap<OffenderKey, Offender>,
    counts: RecordingCounts,
    dropped: BTreeMap<LimitId, u64>,
}

impl Scene {
    /// Has limits 1 and 2.
    fn new() -> Self {
        let mut scene = Self {
            incidents: Incidents::new(QUIET, START),
            now_ns: START,
            offenders: HashMap::new(),
            counts: RecordingCounts::default(),
            dropped: [1, 2].map(|limit| (LimitId(limit), 0)).into(),
        };
        assert_eq!(scene.poll(), [""; 0]);
        scene
    }

    /// Limit 1 drops packets of these sources now, so many of each.
    fn drop(&mut self, sources: &[(&str, u64)]) {
        for (source, drops) in sources {
            self.drop_by(1, source.parse().unwrap(), *drops);
        }
    }

    fn drop_by(&mut self, limit: u16, source: IpAddr, drops: u64) {
        let limit = LimitId(limit);
        *self.dropped.entry(limit).or_default() += drops;
        let key = OffenderKey::new(limit, Dropper::Budget, &Address::from(source));
        self.record(key, drops);
    }

    /// Drops packets of a source that asks for a name: they count for both.
    fn drop_for_name(&mut self, limit: u16, source: IpAddr, zone: u64, drops: u64) {
        self.drop_by(limit, source, drops);
        let key = OffenderKey::of_name(LimitId(limit), KeyPart::Zone, zone);
        self.record(key, drops);
    }

    fn record(&mut self, key: OffenderKey, drops: u64) {
        let offender = self.offenders.entry(key).or_insert_with(|| {
            self.counts.inserted += 1;
            Offender {
                drops: 0,
                ..Offender::new(self.now_ns)
            }
        });
        offender.drops += drops;
        offender.last_drop_ns = self.now_ns;
        self.counts.recorded += drops;
    }

    /// A limit drops packets without recording their sources.
    fn drop_unseen(&mut self, limit: u16, drops: u64) {
        *self.dropped.entry(LimitId(limit)).or_default() += drops;
    }

    fn wait(&mut self, seconds: u64) -> &mut Self {
        self.now_ns += seconds * SECOND;
        self
    }

    fn events(&mut self) -> Vec<Event> {
        let dropped: Vec<_> = self.dropped.clone().into_iter().collect();
        let is_name = |(key, _): &(OffenderKey, Offender)| key.name().is_some();
        let (names, offenders) = self.offenders.clone().into_iter().partition(is_name);
        let recorded = self.incidents.is_news(&dropped).then_some(OffenderRecords {
            offenders,
            names,
            counts: self.counts,
        });
        self.incidents
            .observe(self.now_ns, &dropped, recorded.as_ref())
    }

    /// Returns the events as text.
    fn poll(&mut self) -> Vec<String> {
        self.events().iter().map(words).collect()
    }
}

fn words(event: &Event) -> String {
    let named = |subject: &Subject| {
        let limit = subject.limit.0;
        match subject.source {
            Source::Address(address) => format!("{limit} {}", IpAddr::from(address)),
            Source::Range(address) => format!("{limit} range {}", IpAddr::from(address)),
            Source::Name(_, number) => format!("{limit} name {number}"),
            Source::Any => limit.to_string(),
        }
    };
    match event {
        Event::Began {
            subject,
            addresses,
            drops,
        } => format!("{}: {addresses} began, {drops}", named(subject)),
        Event::Ended {
            subject,
            drops,
            is_lower_bound,
            duration_ns,
        } => {
            let sign = if *is_lower_bound { "≥" } else { "" };
            let seconds = duration_ns / SECOND;
            format!("{}: ended, {sign}{drops} in {seconds} s", named(subject))
        }
        Event::More { sources } => format!("{sources} more"),
    }
}

/// Returns addresses, each in a range of its own.
fn scattered(count: u32) -> impl Iterator<Item = IpAddr> {
    (0..count).map(|number| IpAddr::from((0x0b00_0001 + (number << 8)).to_be_bytes()))
}

#[test]
fn begins_and_ends() {
    let mut scene = Scene::new();
    scene.wait(1).drop(&[("192.0.2.1", 9), ("2001:db8::1", 10)]);
    // Too few drops are no incident of the source, and here not of the limit either.
    assert_eq!(scene.poll(), ["1 2001:db8::1: 1 began, 10"]);
    for _ in 0..5 {
        scene.wait(1).drop(&[("2001:db8::1", 1)]);
        assert_eq!(scene.poll(), [""; 0]);
    }
    assert_eq!(scene.wait(29).poll(), [""; 0]);
    assert_eq!(scene.wait(1).poll(), ["1 2001:db8::1: ended, 15 in 5 s"]);
    assert_eq!(scene.wait(1_000).poll(), [""; 0]);
}

#[test]
fn all_drops_of_a_beginning_count() {
    let mut scene = Scene::new();
    // A poll comes in between.
    scene.drop(&[("192.0.2.1", 6)]);
    assert_eq!(scene.poll(), [""; 0]);
    scene.wait(1).drop(&[("192.0.2.1", 30)]);
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 36"]);
    assert_eq!(scene.wait(30).poll(), ["1 192.0.2.1: ended, 36 in 1 s"]);
}

#[test]
fn flapping_is_one_incident_or_two() {
    let mut scene = Scene::new();
    scene.drop(&[("192.0.2.1", 10)]);
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 10"]);
    // The quiet has not lasted long enough.
    scene.wait(29).drop(&[("192.0.2.1", 10)]);
    assert_eq!(scene.poll(), [""; 0]);
    assert_eq!(scene.wait(30).poll(), ["1 192.0.2.1: ended, 20 in 29 s"]);
    // Now it has; drops of the first incident are not counted again.
    scene.wait(1).drop(&[("192.0.2.1", 12)]);
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 12"]);
    assert_eq!(scene.wait(30).poll().len(), 1);
}

#[test]
fn each_limit_has_its_own() {
    let mut scene = Scene::new();
    let address = IpAddr::from([192, 0, 2, 1]);
    scene.drop_by(1, address, 10);
    scene.drop_by(2, address, 20);
    assert_eq!(
        scene.poll(),
        ["2 192.0.2.1: 1 began, 20", "1 192.0.2.1: 1 began, 10"]
    );
}

#[test]
fn many_of_a_range_are_one() {
    let mut scene = Scene::new();
    let hosts = |hosts: std::ops::Range<u8>| hosts.map(|host| IpAddr::from([203, 0, 113, host]));
    scene.drop(&[("192.0.2.1", 1_000)]);
    for address in hosts(0..57) {
        scene.drop_by(1, address, 10);
    }
    // As many addresses of a larger range do not belong together.
    for address in scattered(9) {
        scene.drop_by(2, address, 5_000);
    }
    let reported = scene.poll();
    assert!(
        reported[..9]
            .iter()
            .all(|line| line.contains(": 1 began, 5000"))
    );
    assert_eq!(
        reported[9..],
        [
            "1 192.0.2.1: 1 began, 1000",
            "1 range 203.0.113.0: 57 began, 570"
        ]
    );
    // Other addresses of the range join in.
    scene.wait(1);
    for address in hosts(50..200) {
        scene.drop_by(1, address, 1);
    }
    assert_eq!(scene.poll(), [""; 0]);
    let reported = scene.wait(30).poll();
    assert!(reported.contains(&"1 range 203.0.113.0: ended, 720 in 1 s".to_owned()));

    // An IPv6 range is a /64.
    for host in 1..=8 {
        scene.drop_by(1, IpAddr::from([0x2001, 0xdb8, 0, 1, 0, 0, host, 1]), 10);
    }
    let reported = scene.wait(60).poll();
    assert_eq!(reported, ["1 range 2001:db8:0:1::: 8 began, 80"]);
}

#[test]
fn names_have_incidents_of_their_own() {
    let mut scene = Scene::new();
    // A forged flood for one name: no source is dropped often, and another name is not attacked.
    for address in scattered(500) {
        scene.drop_for_name(1, address, 7, 1);
    }
    scene.drop_for_name(1, IpAddr::from([192, 0, 2, 1]), 8, 9);
    assert_eq!(scene.poll(), ["1 name 7: 0 began, 500"]);
    scene.wait(1);
    scene.drop_for_name(1, IpAddr::from([192, 0, 2, 1]), 7, 30);
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 39"]);
    assert_eq!(
        scene.wait(30).poll(),
        [
            "1 name 7: ended, 530 in 1 s",
            "1 192.0.2.1: ended, 39 in 1 s"
        ]
    );
    // Many names are never merged.
    scene.wait(1);
    for name in 0..9 {
        let from = IpAddr::from([192, 0, 2, 7]);
        scene.drop_for_name(2, from, name, 10);
    }
    let reported = scene.poll();
    assert_eq!(reported[0], "2 192.0.2.7: 1 began, 90");
    assert_eq!(reported.len(), 10, "{reported:?}");
}

#[test]
fn limits_whose_sources_are_not_known() {
    let mut scene = Scene::new();
    scene.drop_unseen(2, 9);
    assert_eq!(scene.poll(), [""; 0]);
    scene.wait(1).drop_unseen(2, 10);
    assert_eq!(scene.poll(), ["2: 0 began, 10"]);
    scene.wait(2).drop_unseen(2, 1);
    assert_eq!(scene.poll(), [""; 0]);
    assert_eq!(scene.wait(30).poll(), ["2: ended, 11 in 2 s"]);

    // Many sources, each dropped once.
    scene.wait(1);
    for address in scattered(500) {
        scene.drop_by(1, address, 1);
    }
    assert_eq!(scene.poll(), ["1: 0 began, 500"]);
}

#[test]
fn what_was_not_recorded_makes_a_lower_bound() {
    let mut scene = Scene::new();
    scene.drop(&[("192.0.2.1", 10)]);
    scene.counts.skipped = 7;
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 10"]);
    // A forgotten offender is counted anew, and its incident goes on.
    scene.offenders.clear();
    scene.wait(1).drop(&[("192.0.2.1", 3), ("192.0.2.2", 10)]);
    assert_eq!(scene.poll(), ["1 192.0.2.2: 1 began, 10"]);
    assert_eq!(
        scene.wait(30).poll(),
        [
            "1 192.0.2.1: ended, ≥13 in 1 s",
            "1 192.0.2.2: ended, ≥10 in 0 s"
        ]
    );
    // The next incident is exact again.
    scene.wait(1).drop(&[("192.0.2.1", 10)]);
    scene.poll();
    assert_eq!(scene.wait(30).poll(), ["1 192.0.2.1: ended, 10 in 1 s"]);
}

#[test]
fn earlier_offenders_are_not_new() {
    let mut scene = Scene::new();
    scene.drop(&[("192.0.2.1", 1_000)]);
    scene.wait(1);
    scene.incidents = Incidents::new(QUIET, scene.now_ns);
    assert_eq!(scene.poll(), [""; 0]);
    // There are too few new drops.
    scene.wait(1).drop(&[("192.0.2.1", 9)]);
    assert_eq!(scene.poll(), [""; 0]);
}

/// Returns sources, each in a range of its own, with enough drops for an incident.
fn flood(sources: u32) -> OffenderRecords {
    let offenders = scattered(sources).map(|address| {
        let mut offender = Offender::new(START);
        offender.drops = LEAST_DROPS;
        (
            OffenderKey::new(LimitId(1), Dropper::Budget, &address.into()),
            offender,
        )
    });
    OffenderRecords {
        offenders: offenders.collect(),
        names: Vec::new(),
        counts: RecordingCounts {
            inserted: sources.into(),
            ..RecordingCounts::default()
        },
    }
}

#[test]
fn a_flood_has_few_lines_and_bounded_memory() {
    const SOURCES: u32 = 100_000;
    let mut incidents = Incidents::new(QUIET, START);
    let reported = incidents.observe(START, &[], Some(&flood(SOURCES)));
    assert_eq!(reported.len() as u64, LINES_PER_MINUTE);
    assert_eq!(incidents.open.len(), MOST_OPEN);
    assert_eq!(incidents.seen.len(), SOURCES as usize);
}

#[test]
fn a_flood_that_goes_on_is_counted_once() {
    const SOURCES: u32 = 5_000;
    let mut incidents = Incidents::new(QUIET, START);
    let mut recorded = flood(SOURCES);
    incidents.observe(START, &[], Some(&recorded));
    for (_, offender) in &mut recorded.offenders {
        offender.drops += LEAST_DROPS;
        offender.last_drop_ns += SECOND;
    }
    let reported = incidents.observe(START + SECOND, &[], Some(&recorded));
    assert_eq!(reported, []);
    assert_eq!(incidents.open.len(), MOST_OPEN);

    // The next logged event has the number left out. Incidents without a logged beginning ended unlogged. One logged
    // incident remains open, because the summary took its line.
    let reported = incidents.observe(START + 61 * SECOND, &[], None);
    let reported: Vec<_> = reported.iter().map(words).collect();
    assert_eq!(reported.len() as u64, LINES_PER_MINUTE);
    assert!(
        reported[0].ends_with(": ended, 20 in 1 s"),
        "{}",
        reported[0]
    );
    let unreported = u64::from(SOURCES) - LINES_PER_MINUTE;
    assert_eq!(reported[1], format!("{unreported} more"));
    assert_eq!(incidents.open.len(), 1);
    let reported = incidents.observe(START + 65 * SECOND, &[], None);
    assert_eq!(reported.len(), 1);
    assert_eq!(incidents.open.len(), 0);
}

/// A new source each second for ten minutes: the budget holds, and the count includes every source.
#[test]
fn lines_a_minute() {
    const SECONDS: u32 = 600;
    let mut scene = Scene::new();
    let (mut lines, mut sources) = (0, 0);
    for address in scattered(SECONDS) {
        scene.wait(1).drop_by(1, address, 10);
        for event in scene.events() {
            lines += 1;
            sources += match event {
                Event::Began { addresses, .. } => addresses,
                Event::Ended { .. } => 0,
                Event::More { sources } => sources,
            };
        }
    }
    let most = LINES_PER_MINUTE * (1 + u64::from(SECONDS) / 60);
    assert!(lines <= most && lines > most * 9 / 10, "{lines} of {most}");
    assert!(
        sources <= u64::from(SECONDS) && sources > u64::from(SECONDS) - 60,
        "{sources}"
    );
}

#[test]
fn a_clock_that_is_set() {
    let mut scene = Scene::new();
    scene.drop(&[("192.0.2.1", 10)]);
    assert_eq!(scene.poll(), ["1 192.0.2.1: 1 began, 10"]);
    // The clock goes back: nothing ends, nothing is logged twice, and counting goes on.
    scene.now_ns -= 500 * SECOND;
    assert_eq!(scene.poll(), [""; 0]);
    scene.drop(&[("192.0.2.1", 5)]);
    assert_eq!(scene.poll(), [""; 0]);
    // The clock jumps far ahead: the incident has ended.
    scene.now_ns += 10_000 * SECOND;
    assert_eq!(scene.poll(), ["1 192.0.2.1: ended, 15 in 0 s"]);
}
