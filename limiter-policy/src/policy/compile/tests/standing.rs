//! Reserves, counted standings and proven sources in the tables, compared with the policy.

use limiter_common::{
    standing::{Reserves, Settings, Standing},
    strategy::gcra::Gcra,
};

use super::*;
use crate::policy::{Mode, Reserve, ReserveSize, StandingSettings};

fn reserved() -> impl Strategy<Value = ReserveSize> {
    prop_oneof![
        (0u64..20).prop_map(ReserveSize::Tokens),
        (0u32..=100).prop_map(|percent| {
            ReserveSize::Fraction(format!("{percent}%").parse().expect("a percentage"))
        }),
    ]
}

fn reserve() -> impl Strategy<Value = Reserve> {
    (reserved(), reserved(), reserved(), reserved()).prop_map(
        |(familiar, fresh, retried, unknown)| Reserve {
            familiar,
            fresh,
            retried,
            unknown,
        },
    )
}

/// A limit's use of standing.
#[derive(Clone, Debug)]
struct Use {
    reserve: Option<Reserve>,
    counted: Vec<Standing>,
    off: bool,
}

fn a_use() -> impl Strategy<Value = Use> {
    let counted = prop::sample::subsequence(Standing::ALL.to_vec(), 0..Standing::COUNT);
    (prop::option::of(reserve()), counted, any::<bool>()).prop_map(|(reserve, counted, off)| Use {
        reserve,
        counted,
        off,
    })
}

const LIMITS: usize = 3;

proptest! {
    #[test]
    fn standing_is_compiled_as_configured(
        overrides in prop::collection::vec(distinct_prefixes(8), LIMITS),
        uses in prop::collection::vec(a_use(), LIMITS),
        office in prop::collection::vec(prefix(), 0..8),
        blocked in prop::collection::vec(prefix(), 0..3),
    ) {
        let mut policy = policy(&overrides);
        for (limit, one) in policy.limits.iter_mut().zip(&uses) {
            limit.reserve = one.reserve;
            limit.matching.standing.clone_from(&one.counted);
            limit.mode = if one.off { Mode::Off } else { Mode::Enforce };
        }
        policy.lists = vec![
            List::new("office".to_owned(), &office),
            List::new("blocked".to_owned(), &blocked),
        ];
        policy.limits[0].block = vec!["blocked".to_owned()];
        policy.standing = Some(StandingSettings {
            capacity: 5_000,
            proven: vec!["office".to_owned()],
            ..StandingSettings::default()
        });
        let tables = CompiledPolicy::new(&policy, CPUS).unwrap();

        let is_used = uses.iter().any(|one| {
            !one.off && (one.reserve.is_some() || !one.counted.is_empty())
        });
        prop_assert_eq!(tables.features.uses_standing(), is_used);
        let settings = policy.standing.as_ref().unwrap().compiled();
        prop_assert_eq!(tables.features.standing, if is_used { settings } else { Settings::NONE });
        let reserves_any = uses.iter().any(|one| !one.off && one.reserve.is_some());
        let expected = if reserves_any { tables.rates.len() } else { 0 };
        prop_assert_eq!(tables.reserves.len(), expected);

        for (limit_index, one) in uses.iter().enumerate() {
            let has = |set: u64| set >> limit_index & 1 == 1;
            let reserves = !one.off && one.reserve.is_some();
            prop_assert_eq!(has(tables.features.reserving), reserves);
            for (index, standing) in Standing::ALL.iter().enumerate() {
                let counts = one.counted.is_empty() || one.counted.contains(standing);
                prop_assert_eq!(has(tables.features.of_standing[index]), counts);
            }
        }

        let prefixes = overrides.iter().flatten().chain(&office).chain(&blocked);
        let edges = prefixes.flat_map(|prefix| [prefix.network(), prefix.broadcast()]);
        for source in edges {
            let class = classify(&tables, &source.into()).expect("a class");
            let proven = office.iter().any(|prefix| prefix.contains(&source));
            prop_assert_eq!(class.listing & Class::PROVEN != 0, proven && is_used, "{}", source);
            let blocks = !uses[0].off && blocked.iter().any(|prefix| prefix.contains(&source));
            prop_assert_eq!(class.listing & !Class::PROVEN != 0, blocks, "{}", source);
            for (limit_index, one) in (0..).zip(&uses) {
                let limit = &policy.limits[limit_index as usize];
                let rate = policy.override_of(limit, source).map_or(rate(1), |other| other.rate);
                let token = Gcra::new(rate.burst, rate.count, rate.period_ns).unwrap();
                let found = tables.reserves(class.rate_index(limit_index));
                let found = found.copied().unwrap_or(Reserves::NONE);
                for standing in Standing::ALL {
                    let tokens = match one.reserve {
                        Some(reserve) if !one.off => reserve.from(standing).tokens(rate.burst),
                        _ => 0,
                    };
                    prop_assert_eq!(found.from(standing), tokens * token.emission_interval);
                }
            }
        }
    }
}

#[test]
fn a_policy_without_standing_has_none() {
    let mut policy = policy(&[vec![], vec![]]);
    policy.standing = Some(StandingSettings::default());
    let tables = CompiledPolicy::new(&policy, CPUS).unwrap();
    assert_eq!(tables.features.standing, Settings::NONE);
    assert_eq!(tables.features.of_standing, [u64::MAX; Standing::COUNT]);
    assert_eq!(tables.features.reserving, 0);
    assert!(tables.reserves(0).is_none());
}
