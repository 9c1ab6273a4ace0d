//! The longest prefix, compared with the kernel's LPM trie of the same prefixes.

use std::net::IpAddr;

use anyhow::{Context as _, Result};
use aya::maps::{LpmTrie, MapData, MapError, lpm_trie::Key};
use ipnet::IpNet;
use limiter_common::{
    limit::BUILT_IN,
    policy::{classify, parameters_of},
};
use limiter_datapath::kernel::possible_cpus;
use limiter_policy::policy::{CompiledPolicy, Limit, Override, OverrideId, Policy, Rate};
use proptest::prelude::*;

use crate::differential::generate;

/// `BPF_F_NO_PREALLOC` from linux/bpf.h, which the kernel requires for tries.
const NO_PREALLOC: u32 = 1;

const PREFIXES: usize = 5_000;
const PROBES: usize = 20_000;

/// A trie for addresses of `N` bytes, with the prefixes' numbers.
struct Trie<const N: usize>(LpmTrie<MapData, [u8; N], u32>);

impl<const N: usize> Trie<N> {
    fn new(prefixes: &[IpNet], bytes: impl Fn(IpAddr) -> Option<[u8; N]>) -> Result<Self> {
        let mut trie = LpmTrie::create(u32::try_from(prefixes.len())?, NO_PREALLOC)?;
        for (number, prefix) in (0..).zip(prefixes) {
            if let Some(bytes) = bytes(prefix.network()) {
                trie.insert(&Key::new(prefix.prefix_len().into(), bytes), number, 0)?;
            }
        }
        Ok(Self(trie))
    }

    /// The number of the longest prefix that contains an address.
    fn longest(&self, address: [u8; N]) -> Result<Option<u32>> {
        let bits = u32::try_from(8 * N)?;
        match self.0.get(&Key::new(bits, address), 0) {
            Ok(number) => Ok(Some(number)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

const fn v4(address: IpAddr) -> Option<[u8; 4]> {
    match address {
        IpAddr::V4(address) => Some(address.octets()),
        IpAddr::V6(_) => None,
    }
}

const fn v6(address: IpAddr) -> Option<[u8; 16]> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address.octets()),
    }
}

/// Prefixes of any length, many of them within few others.
fn prefix() -> impl Strategy<Value = IpNet> {
    let outer = [
        0u128,
        0x2001_0db8 << 96,
        0x2001_0db8_0001_0002 << 64,
        0x2a10 << 112,
    ];
    let v6 = (
        prop::sample::select(outer.to_vec()),
        any::<u128>(),
        0u32..=128,
        0u8..=128,
    )
        .prop_map(|(outer, bits, common, length)| {
            let bits = outer | bits.checked_shr(common).unwrap_or(0);
            IpNet::new_assert(IpAddr::V6(bits.into()), length).trunc()
        });
    let v4 = (any::<u32>(), 0u32..=32, 0u8..=32).prop_map(|(bits, common, length)| {
        let bits = 0x0a00_0000 | bits.checked_shr(common).unwrap_or(0);
        IpNet::new_assert(IpAddr::V4(bits.into()), length).trunc()
    });
    prop_oneof![v4, v6]
}

#[test]
fn the_kernel_finds_the_same_prefix() -> Result<()> {
    let mut runner = proptest::test_runner::TestRunner::default();
    let mut prefixes = generate(&prop::collection::vec(prefix(), PREFIXES), &mut runner);
    prefixes.sort_unstable();
    prefixes.dedup();
    let probes = generate(&prop::collection::vec(prefix(), PROBES), &mut runner);

    // The burst identifies the found prefix: its number plus 1; 1 alone means none.
    let rate = |burst| Rate {
        burst,
        count: 1,
        period_ns: 1_000_000_000,
    };
    let tables = CompiledPolicy::new(
        &Policy::from(vec![Limit {
            overrides: (2..)
                .zip(&prefixes)
                .map(|(burst, prefix)| Override {
                    id: OverrideId::Prefix(*prefix),
                    rate: rate(burst),
                    comment: None,
                })
                .collect(),
            ..Limit::of_built_in(&BUILT_IN[0], Some(rate(1)))
        }]),
        possible_cpus(),
    )?;
    let (trie_v4, trie_v6) = (Trie::new(&prefixes, v4)?, Trie::new(&prefixes, v6)?);

    for prefix in prefixes.iter().chain(&probes) {
        for address in [prefix.network(), prefix.broadcast()] {
            let number = match address {
                IpAddr::V4(address) => trie_v4.longest(address.octets())?,
                IpAddr::V6(address) => trie_v6.longest(address.octets())?,
            };
            let class = classify(&tables, &address.into()).expect("a class");
            let found = parameters_of(&tables, class, 0).context("a default")?;
            let expected = number.map_or(1, |number| u64::from(number) + 2);
            assert_eq!(found.gcra.burst, expected, "{address}");
        }
    }
    Ok(())
}
