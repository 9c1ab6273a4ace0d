//! The page's view of the daemon: the control channel's responses, and some facts that no response has.

use std::net::{IpAddr, Ipv4Addr};

use limiter_common::{
    counters::LimitTraffic,
    reason::{Action, Reason},
};
use limiter_datapath::kernel::DatapathError;
use limiter_protocol::{Failure, LimitExplanation, bans::BanStatus};

use super::{
    bans,
    labels::bucket_label,
    respond::MapCall,
    responses::{explain_limit, packets},
    shared::Daemon,
};

/// Why packets of a source do not pass now, and until when.
pub struct SourceBlock {
    /// The widest ban that holds; `None`: none does.
    pub ban: Option<BanStatus>,
    /// Nanoseconds until the limit has a token for it again; `None`: it has one.
    pub retry_in_ns: Option<u64>,
}

impl Daemon {
    /// Answers a request, as over the control channel.
    pub fn query<C: MapCall>(&self, call: &C) -> Result<C::Response, Failure> {
        let measured = self.enforcement.datapath.pressures.measured();
        call.respond(&self.datapath(), Some(self), &measured)
    }

    /// The levels of the buckets of limits on all sources together.
    pub fn totals(&self) -> Result<Vec<LimitExplanation>, DatapathError> {
        let datapath = self.datapath();
        let limit_buckets = datapath.total_buckets()?;
        // Such a limit has no overrides, so no address matters.
        let nobody = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        let limits = limit_buckets.iter();
        Ok(limits
            .filter_map(|limit_bucket| explain_limit(&datapath, nobody, limit_bucket, None))
            .collect())
    }

    /// The traffic of each limit, by its name.
    pub fn traffic(&self) -> Result<Vec<(String, LimitTraffic)>, DatapathError> {
        let datapath = self.datapath();
        let limits = datapath.manifest().policy.limits.iter();
        limits
            .map(|limit| Ok((limit.name.clone(), datapath.limit_traffic(limit.id)?)))
            .collect()
    }

    /// Returns why packets of an address do not pass.
    pub fn hold(&self, address: IpAddr, limit: &str) -> Result<SourceBlock, DatapathError> {
        let datapath = self.datapath();
        let bans = bans::of_address(&datapath, address)?;
        let limit_buckets = datapath.limit_buckets(address, None, None)?;
        let retry_in_ns = limit_buckets.iter().filter_map(|limit_bucket| {
            let label = bucket_label(&datapath, limit_bucket, None)?;
            (label.limit.name == limit).then_some(limit_bucket.level.retry_in_ns)
        });
        Ok(SourceBlock {
            ban: bans.into_iter().find(|ban| ban.excluded_by.is_none()),
            retry_in_ns: retry_in_ns.max().filter(|ns| *ns > 0),
        })
    }

    /// The number of packets by reason, over all interfaces, and the action for malformed ones.
    pub fn packets(&self) -> Result<(Action, Vec<(Reason, u64)>), DatapathError> {
        let datapath = self.datapath();
        let malformed = datapath.manifest().policy.malformed;
        Ok((malformed, packets(&datapath)?))
    }
}
