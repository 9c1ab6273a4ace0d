//! The limiter's targets, and whether it meets them.

use bench_common::Layout::{V4, V6Far, V6Near};

use crate::{
    contender::{
        DROP, LINE, NFTABLES, REFUSED_GCRA, REFUSED_UNKNOWN, TABLE_1, TABLE_2, TABLE_LISTS,
        TABLE_RANGE, TABLE_STANDING, TABLE_TOTAL,
    },
    float::to_f64,
    results::Results,
    scenario::Scenario,
    service::{
        ANSWERS, AUTO, Attack, FloodResults, IDEAL, KNOWN_FIRST, LIMITER, NOTHING, Outcome, Rate,
        SYNPROXY,
    },
    target::{
        Bound::{self, AtLeast, AtMost, Within},
        Target,
    },
};

/// The store of the targets: our best one.
const ONE: &str = TABLE_1;
const TWO: &str = TABLE_2;
const RANGE: &str = TABLE_RANGE;
const LISTS: &str = TABLE_LISTS;

/// A client over its limit gets all that the limit allows, and no more, except for a packet or two:
/// the clock is read when packets are sent, not when they are judged.
const ADMITTED: Bound = Within(99.0, 100.1);

/// Returns every target with its measurement, except the targets of the service.
pub(crate) fn judge(results: &Results) -> Vec<Target> {
    [
        rates(results),
        costs(results),
        standing(results),
        both_families(results),
        clients(results),
        overrides(results),
        resources(results),
    ]
    .concat()
}

const fn v4(sources_log2: u32) -> Scenario {
    Scenario::new(V4, sources_log2)
}

fn rates(results: &Results) -> Vec<Target> {
    let against = |contender, scenario| {
        Some(results.rate(ONE, &scenario)? / results.rate(contender, &scenario)?)
    };
    let against_nftables = |sources_log2, least| {
        let scenario = v4(sources_log2);
        Target::new(
            format!("packets a second, {scenario}: times nftables'"),
            AtLeast(least),
            "×",
            against(NFTABLES, scenario),
        )
    };
    vec![
        against_nftables(0, 2.5),
        against_nftables(16, 3.5),
        against_nftables(20, 4.5),
        Target::new(
            format!("packets a second, {}: of XDP_DROP's", v4(24)),
            AtLeast(25.0),
            "%",
            against(DROP, v4(24)).map(|ratio| ratio * 100.0),
        ),
    ]
}

/// Returns a contender's nanoseconds in percent of another's. Ratios within one run can be compared
/// between machines.
fn percent_of(
    results: &Results,
    contender: &str,
    reference: &str,
    scenario: Scenario,
) -> Option<f64> {
    let cost = |contender| results.cost(contender, &scenario);
    Some(cost(contender)? / cost(reference)? * 100.0)
}

fn costs(results: &Results) -> Vec<Target> {
    let target = |scenario: Scenario, what, most, contender, reference| {
        Target::new(
            format!("nanoseconds, {scenario}: {what}"),
            AtMost(most),
            "%",
            percent_of(results, contender, reference, scenario),
        )
    };
    vec![
        target(v4(0), "of parse + clock + line", 150.0, ONE, LINE),
        target(v4(24), "of parse + clock + line", 150.0, ONE, LINE),
        target(v4(0), "two limits on the address, of one", 115.0, TWO, ONE),
    ]
}

/// The bounds on standing correspond to 15 ns with one source and 60 ns with many, on a machine
/// where two limits took about 130 and 265.
fn standing(results: &Results) -> Vec<Target> {
    let beside_none = |scenario: Scenario, most| {
        Target::new(
            format!("nanoseconds, {scenario}: with standing, of without"),
            AtMost(most),
            "%",
            percent_of(results, TABLE_STANDING, TABLE_TOTAL, scenario),
        )
    };
    let refused = |contender, scenario| results.cost(contender, &scenario);
    let unknown = refused(REFUSED_UNKNOWN, v4(24)).zip(refused(REFUSED_GCRA, v4(0)));
    vec![
        beside_none(v4(0), 112.0),
        beside_none(v4(24), 123.0),
        Target::new(
            format!(
                "nanoseconds, {}: unknown refused, of 1 source refused",
                v4(24)
            ),
            AtMost(160.0),
            "%",
            unknown.map(|(unknown, single)| unknown / single * 100.0),
        ),
    ]
}

fn both_families(results: &Results) -> Vec<Target> {
    let percent_more = |(this, on), (than, at)| {
        let (this, than) = (results.cost(this, &on)?, results.cost(than, &at)?);
        Some((this / than - 1.0) * 100.0)
    };
    [V6Near, V6Far]
        .into_iter()
        .flat_map(|layout| {
            let scenario = Scenario::new(layout, 24);
            [
                Target::new(
                    format!("nanoseconds, {scenario}: more for the /48 limit"),
                    AtMost(60.0),
                    "%",
                    percent_more((RANGE, scenario), (ONE, scenario)),
                ),
                Target::new(
                    format!("nanoseconds, {scenario}: more than IPv4"),
                    AtMost(25.0),
                    "%",
                    percent_more((ONE, scenario), (ONE, v4(24))),
                ),
            ]
        })
        .collect()
}

fn clients(results: &Results) -> Vec<Target> {
    let quality = results.quality(ONE);
    let admitted = |what: &str, measured| {
        let what = format!("client over its limit: {what} admitted of allowed");
        Target::new(what, ADMITTED, "%", measured)
    };
    vec![
        Target::new(
            "clients in the flood: good packets lost, at worst",
            AtMost(0.1),
            "%",
            quality.map(|quality| quality.good_lost.max),
        ),
        admitted("least", quality.map(|quality| quality.over.min)),
        admitted("most", quality.map(|quality| quality.over.max)),
        Target::new(
            "slow client over its limit: most admitted of allowed",
            AtMost(100.0),
            "%",
            quality.and_then(|quality| Some(quality.slow.as_ref()?.max)),
        ),
    ]
}

/// Known clients answered at the first try, in percent, and the 99th percentile of their response
/// times in milliseconds. If no defence can do better than this, the limiter must do as well.
const ALL: f64 = 99.9;
const PROMPT_MS: f64 = 5.0;

/// Returns the limiter's targets at real servers, for each measured configuration.
pub(crate) fn of_service(services: &[FloodResults]) -> Vec<Target> {
    let measured = services.iter().flat_map(|under| {
        let names = under.outcomes.iter().map(|outcome| outcome.defence);
        let limiters = names.filter(|name| [LIMITER, KNOWN_FIRST, ANSWERS, AUTO].contains(name));
        limiters.map(move |name| (under, name))
    });
    measured
        .flat_map(|(under, name)| of_limiter(under, name))
        .collect()
}

fn of_limiter(under: &FloodResults, name: &str) -> Vec<Target> {
    let [limiter, ideal, nothing] = [name, IDEAL, NOTHING].map(|defence| under.of(defence));
    let first = |outcome: Option<&Outcome>| Some(outcome?.known[0].median);
    let p99 = |outcome: Option<&Outcome>| Some(outcome?.p99_ms.median);
    // A defence that receives more slowly slows the flood down, too.
    let beside = |other: Option<&'_ Outcome>| other?.is_comparable(limiter?).then_some(());
    let less_than = |other| {
        beside(other)?;
        Some(first(other)? - first(limiter)?)
    };
    let target = |what: &str, bound, unit, measured| {
        Target::new(
            format!("{}, {name}: {what}", under.flood.name),
            bound,
            unit,
            measured,
        )
    };
    let new = |attempt: usize| Some(limiter?.new.get(attempt - 1)?.median);
    if under.flood.rate == Rate::None {
        let everybody = first(limiter).zip(new(1));
        return vec![
            target(
                "all at 1st try",
                AtLeast(100.0),
                "%",
                everybody.map(|(known, new)| known.min(new)),
            ),
            target("known, p99", AtMost(PROMPT_MS), "ms", p99(limiter)),
        ];
    }
    let mut targets = vec![
        target(
            "known, less than ideal",
            AtMost(0.5),
            "points",
            less_than(ideal),
        ),
        // A few questions of thousands are no difference.
        target(
            "known, less than nothing",
            AtMost(0.05),
            "points",
            less_than(nothing),
        ),
    ];
    if under.flood.spares_new_clients() {
        targets.push(target("new by 2nd try", AtLeast(99.0), "%", new(2)));
    }
    let is_possible = beside(ideal).is_some()
        && first(ideal).is_some_and(|answered| answered >= ALL)
        && p99(ideal).is_some_and(|p99| p99 <= PROMPT_MS);
    if is_possible {
        targets.push(target(
            "known at 1st try",
            AtLeast(ALL),
            "%",
            first(limiter),
        ));
        targets.push(target("known, p99", AtMost(PROMPT_MS), "ms", p99(limiter)));
    }
    if name == ANSWERS && under.flood.spares_new_clients() {
        targets.extend(of_answers(under, limiter));
    }
    targets
}

/// Returns the targets of a limiter that answers new clients.
fn of_answers(under: &FloodResults, limiter: Option<&Outcome>) -> Vec<Target> {
    let target = |what: &str, bound, measured| {
        let flood = under.flood.name;
        Target::new(format!("{flood}, {ANSWERS}: {what}"), bound, "%", measured)
    };
    match under.flood.attack {
        // A resolver's connection after a truncated response counts with its query.
        Attack::Queries => vec![target(
            "new within one retry over TCP",
            AtLeast(99.0),
            limiter.map(|outcome| outcome.new[0].median),
        )],
        Attack::Syns => {
            let cost = |outcome: Option<&Outcome>| Some(outcome?.receiver_ns.median);
            let costs = cost(limiter).zip(cost(under.of(SYNPROXY)));
            vec![
                target(
                    "new within 250 ms",
                    AtLeast(99.0),
                    limiter.map(|outcome| outcome.new_promptly.median),
                ),
                target(
                    "CPU time for a packet received, of synproxy's",
                    AtMost(50.0),
                    costs.map(|(ours, synproxy)| ours / synproxy * 100.0),
                ),
            ]
        }
        Attack::Acks => Vec::new(),
    }
}

fn overrides(results: &Results) -> Vec<Target> {
    let footprint = &results.footprint;
    vec![
        Target::new(
            format!("nanoseconds, {}: with 100 k overrides, of without", v4(24)),
            AtMost(115.0),
            "%",
            percent_of(results, LISTS, ONE, v4(24)),
        ),
        Target::new(
            "100 k overrides: read, compiled and loaded",
            AtMost(400.0),
            "ms",
            Some(footprint.overrides_seconds * 1e3),
        ),
        Target::new(
            "100 k overrides: kernel memory",
            AtMost(64.0),
            "MiB",
            Some(mebibytes(footprint.overrides_bytes)),
        ),
    ]
}

fn resources(results: &Results) -> Vec<Target> {
    let (one, two) = (v4(20), v4(20).on_cpus(2));
    let ratio = |(two, one): (f64, f64)| two / one;
    vec![
        Target::new(
            "1 M buckets: kernel memory",
            AtMost(64.0),
            "MiB",
            Some(mebibytes(results.footprint.million_buckets_bytes)),
        ),
        Target::new(
            format!("packets a second, {two}: times one CPU's"),
            AtLeast(1.8),
            "×",
            results
                .rate(ONE, &two)
                .zip(results.rate(ONE, &one))
                .map(ratio),
        ),
    ]
}

fn mebibytes(bytes: u64) -> f64 {
    to_f64(bytes) / 1_048_576.0
}
