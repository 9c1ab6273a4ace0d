//! Mozilla's public suffix list, from Debian's package.

use std::fs;

use anyhow::{Result, ensure};
use jiff::Timestamp;
use limiter_policy::{
    config,
    policy::{CompiledPolicy, DnsName, DomainLabels},
};

use super::program;

#[test]
fn the_published_list_is_read_whole() -> Result<()> {
    let list = program::public_suffixes()?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("limiter.yaml");
    let text = format!(
        "limits: {{Domains: {{id: domain, cost: packets, rate: 9/s}}}}\n\
         public-suffixes: {{file: '{}'}}\n",
        list.display()
    );
    fs::write(&file, text)?;
    let policy = config::load(&file, Timestamp::now())?.policy;
    ensure!(
        policy.public_suffixes.len() > 5_000,
        "{} rules",
        policy.public_suffixes.len()
    );
    let labels = DomainLabels::new(&policy.public_suffixes);
    for (name, domain) in [
        ("www.example.com", "example.com"),
        ("www.example.co.uk", "example.co.uk"),
        ("co.uk", "co.uk"),
        ("a.b.example.github.io", "example.github.io"),
        ("x.www.ck", "www.ck"),
        ("a.b.c.ck", "b.c.ck"),
        ("a.city.kawasaki.jp", "city.kawasaki.jp"),
        ("a.b.other.kawasaki.jp", "b.other.kawasaki.jp"),
        // 公司.cn
        ("a.example.xn--55qx5d.cn", "example.xn--55qx5d.cn"),
    ] {
        let name: DnsName = name.parse()?;
        ensure!(labels.domain(&name).to_string() == domain, "{name}");
    }
    // The datapath's table has room for the list.
    let tables = CompiledPolicy::new(&policy, 4)?;
    ensure!(tables.name_slots.len() >= policy.public_suffixes.len());
    Ok(())
}
