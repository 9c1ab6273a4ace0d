//! The effect of lists on classes, compared with a model that checks each prefix.

use limiter_common::limit::IdFormat;

use super::*;

/// The prefixes of each list, and the lists' uses.
#[derive(Clone, Debug)]
struct Listing {
    lists: Vec<Vec<IpNet>>,
    global: Uses,
    limits: Vec<Uses>,
}

/// The indices of the lists that exclude, and of the lists that block.
#[derive(Clone, Debug)]
struct Uses {
    exclude: Vec<usize>,
    block: Vec<usize>,
}

fn uses() -> impl Strategy<Value = Uses> {
    let some = || prop::sample::subsequence((0..LISTS).collect::<Vec<_>>(), 0..=2);
    (some(), some()).prop_map(|(exclude, block)| Uses { exclude, block })
}

const LISTS: usize = 5;

const LIMITS: usize = 4;

fn listing() -> impl Strategy<Value = Listing> {
    (
        prop::collection::vec(prop::collection::vec(prefix(), 0..12), LISTS),
        uses(),
        prop::collection::vec(uses(), LIMITS),
    )
        .prop_map(|(lists, global, limits)| Listing {
            lists,
            global,
            limits,
        })
}

impl Listing {
    fn name(index: usize) -> String {
        format!("list{index}")
    }

    fn apply(&self, policy: &mut Policy) {
        let names = |indices: &[usize]| indices.iter().copied().map(Self::name).collect();
        let lists = self.lists.iter().enumerate();
        policy.lists = lists
            .map(|(index, prefixes)| List::new(Self::name(index), prefixes))
            .collect();
        policy.exclude = names(&self.global.exclude);
        policy.block = names(&self.global.block);
        for (limit, uses) in policy.limits.iter_mut().zip(&self.limits) {
            limit.exclude = names(&uses.exclude);
            limit.block = names(&uses.block);
        }
    }

    fn have(&self, lists: &[usize], source: IpAddr) -> bool {
        let prefixes = lists.iter().flat_map(|list| &self.lists[*list]);
        prefixes.into_iter().any(|prefix| prefix.contains(&source))
    }
}

/// Returns the address before or after another of its family.
fn beside(address: IpAddr, step: i8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            IpAddr::V4(u32::from(address).wrapping_add_signed(step.into()).into())
        }
        IpAddr::V6(address) => {
            IpAddr::V6(u128::from(address).wrapping_add_signed(step.into()).into())
        }
    }
}

proptest! {
    #[test]
    fn lists_say_what_each_of_their_prefixes_says(
        listing in listing(),
        overrides in prop::collection::vec(distinct_prefixes(8), LIMITS),
        subscribers in prop::collection::hash_set(prefix(), 0..6),
        defaults in prop::collection::vec(any::<bool>(), LIMITS),
    ) {
        let mut policy = policy(&overrides);
        for (limit, default) in policy.limits.iter_mut().zip(defaults) {
            limit.default = limit.default.filter(|_| default);
        }
        policy.limits[0].id_format = IdFormat::Ipv4RangeCidr { prefix_length: 24 };
        policy.limits[1].id_format = IdFormat::RegId;
        policy.limits[1].overrides.clear();
        policy.subscribers = [(7, subscribers.into_iter().collect())].into();
        listing.apply(&mut policy);
        let tables = CompiledPolicy::new(&policy, CPUS).unwrap();

        let prefixes = listing.lists.iter().chain(&overrides).chain(policy.subscribers.values());
        let edges = prefixes.flatten().flat_map(|prefix| {
            let (first, last) = (prefix.network(), prefix.broadcast());
            [beside(first, -1), first, last, beside(last, 1)]
        });
        for source in edges {
            let class = classify(&tables, &source.into()).expect("a class");
            let Uses { exclude, block } = &listing.global;
            if listing.have(exclude, source) {
                prop_assert_eq!(class.listing, Class::EXCLUDED, "{}", source);
                continue;
            }
            if listing.have(block, source) {
                prop_assert_eq!(class.listing, Class::BLOCKED, "{}", source);
                continue;
            }
            let blocked_by = match class.listing {
                0 => 0,
                set => {
                    prop_assert!(set >= limiter_common::policy::Masks::RANGES);
                    *tables.mask(set).expect("a set of limits")
                }
            };
            for ((limit_index, limit), uses) in (0..).zip(&policy.limits).zip(&listing.limits) {
                let excluded = listing.have(&uses.exclude, source);
                let blocked = listing.have(&uses.block, source);
                let has_bucket = match limit.id_format {
                    IdFormat::RegId => policy.subscriber_of(source).is_some(),
                    _ => source.is_ipv4() || limit_index != 0,
                };
                let has_rate = limit.default.is_some()
                    || policy.override_of(limit, source).is_some();
                let applies = has_bucket && !excluded && (has_rate || blocked);
                prop_assert_eq!(class.applies >> limit_index & 1 == 1, applies, "{} {}", source, limit_index);
                let drops = applies && blocked;
                prop_assert_eq!(blocked_by >> limit_index & 1 == 1, drops, "{} {}", source, limit_index);
                if applies && has_rate {
                    let expected = naive_burst(&policy, source, limit_index as usize);
                    prop_assert_eq!(compiled_burst(&tables, source, limit_index), expected);
                }
            }
        }
    }
}

/// One class per prefix would not fit into the kernel's memory.
#[test]
fn a_list_makes_one_class() {
    let prefixes: Vec<IpNet> = (0..20_000u32)
        .map(|number| IpNet::from(IpAddr::from(number.wrapping_mul(0x9e37_79b1).to_be_bytes())))
        .collect();
    let mut policy = policy(&[vec![], vec![]]);
    policy.lists = vec![List::new("feed".to_owned(), &prefixes)];
    let classes = |policy: &Policy| CompiledPolicy::new(policy, CPUS).unwrap().classes.len();
    // The two default classes, one for each family.
    assert_eq!(classes(&policy), 2, "nothing uses it");
    policy.limits[1].block = vec!["feed".to_owned()];
    assert_eq!(classes(&policy), 3);
    policy.exclude = vec!["feed".to_owned()];
    assert_eq!(classes(&policy), 3);
}
