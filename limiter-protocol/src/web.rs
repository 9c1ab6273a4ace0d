//! The daemon's state as the HTTP servers in its process read it: the status, and details that only the metrics or the
//! page show. No such type crosses the control socket.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use limiter_common::{
    answer::Answer,
    counters::{LimitTraffic, Traffic},
    offender::RecordingCounts,
    reason::{Action, Reason},
    standing::Standing,
};
use limiter_policy::config::ListenAddress;
use tokio::sync::Notify;

use super::{
    Call, Explain, Failure, FleetStatus, KeyQuery, LimitExplanation, OffenderQuery, OffenderStatus,
    Status,
    bans::{BanStatus, BansQuery},
};

/// Reads a part of the daemon's state.
pub type Read<T> = Box<dyn Fn() -> Result<T, Failure> + Send + Sync>;

/// Looks up a part of the daemon's state.
pub type Lookup<Q, T> = Box<dyn Fn(&Q) -> Result<T, Failure> + Send + Sync>;

/// Answers a request, as over the control channel.
pub type Query<C> = Lookup<C, <C as Call>::Response>;

/// The daemon's state. Each call reads the maps of its part alone.
pub struct DaemonView {
    /// The numbers behind the metrics.
    pub measurements: Read<Measurements>,
    /// The data of the page's overview.
    pub overview: Read<Overview>,
    /// The counters of packets, which the page reads each second.
    pub traffic: Read<TrafficCounts>,
    /// The last log lines about incidents, oldest first.
    pub incidents: Box<dyn Fn() -> Vec<IncidentLine> + Send + Sync>,
    /// Explains an address.
    pub explain: Query<Explain>,
    /// Lists offenders.
    pub offenders: Query<OffenderQuery>,
    /// Why packets of an offender do not pass; `None`: it is not an address.
    pub block: Lookup<OffenderStatus, Option<SourceBlock>>,
    /// Lists keys with open connections.
    pub keys: Query<KeyQuery>,
    /// Lists bans.
    pub bans: Query<BansQuery>,
}

/// The longest time between two check-ins of a working thread.
pub const CHECK_IN_INTERVAL: Duration = Duration::from_secs(1);

/// The handle of the thread that runs an HTTP server.
pub struct ServerThread {
    /// Tells the watchdog that the thread works.
    pub check_in: Box<dyn Fn() + Send + Sync>,
    /// Notified when the thread must end.
    pub end: Arc<Notify>,
}

/// Prepares to serve the daemon's state on a bound port or socket; returns the work of the thread.
pub type Listener =
    Box<dyn FnOnce(Arc<DaemonView>, ServerThread) -> io::Result<Box<dyn FnOnce() + Send>>>;

/// A listener and its address, with the real port where 0 was asked for.
pub type BindResult<A> = io::Result<(A, Listener)>;

/// Binds ports and sockets, before any interface is attached.
#[derive(Clone, Copy)]
pub struct Servers {
    /// Binds the port of the metrics, for clients that ask for it by these names.
    pub metrics: fn(SocketAddr, hosts: &[String]) -> BindResult<SocketAddr>,
    /// Binds the page's port, for browsers that ask for it by these names, or its socket, for the members of a group.
    pub page:
        fn(&ListenAddress, hosts: &[String], group: Option<&str>) -> BindResult<ListenAddress>,
}

/// The numbers behind the metrics.
#[derive(Debug)]
pub struct Measurements {
    /// Without [`Status::lost_pin`]: no metric shows it, and the search opens each pin.
    pub status: Status,
    /// The traffic of interfaces, in the order of their attachment.
    pub interfaces: Vec<InterfaceTraffic>,
    /// The numbers of limits, in the policy's order.
    pub limits: Vec<LimitMeasurements>,
    /// Buckets in debt; the others take no room.
    pub buckets: TableUse,
    /// The drops that the record of offenders holds and lacks.
    pub recording: RecordingCounts,
    /// The offenders, and the names that they asked for, that are remembered.
    pub offenders: u64,
    /// By the name of the origin, the bans in force of both address families.
    pub bans: Vec<(&'static str, [u32; 2])>,
    /// The changes to bans since the daemon started.
    pub ban_totals: Vec<BanTotalsOfOrigin>,
    /// The state of the fleet; `None`: the daemon is alone.
    pub fleet: Option<FleetStatus>,
    /// The table of known sources; `None`: no limit uses standing.
    pub known_sources: Option<KnownSources>,
    /// Names that limits on new names know; `None`: there are no such limits.
    pub cached_names: Option<TableUse>,
}

/// The traffic of one interface.
#[derive(Debug)]
pub struct InterfaceTraffic {
    /// The interface's name.
    pub interface: String,
    /// Its packets and bytes, in the order of [`Reason::ALL`].
    pub reasons: Vec<(Reason, Traffic)>,
}

/// The numbers of one limit.
#[derive(Debug)]
pub struct LimitMeasurements {
    /// The limit's name.
    pub limit: String,
    /// How many overrides it has.
    pub overrides: u64,
    /// The answers sent, by kind.
    pub answers: Vec<(Answer, Traffic)>,
    /// The sources that it banned or would have banned, by outcome; empty: it does not ban.
    pub bans: Vec<(&'static str, u64)>,
}

/// How full a table is.
#[derive(Clone, Copy, Debug)]
pub struct TableUse {
    /// Its entries.
    pub entries: u64,
    /// The most entries that it has room for.
    pub capacity: u64,
}

/// The changes to bans of one origin since the daemon started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BanTotals {
    /// Bans made, including replacements of earlier bans.
    pub made: u64,
    /// Lifted bans.
    pub lifted: u64,
    /// Bans that ended by themselves.
    pub ended: u64,
    /// Bans lifted to make room for a ban by hand.
    pub evicted: u64,
}

/// The changes to the bans of an origin or, if they are automatic, of a limit.
#[derive(Debug)]
pub struct BanTotalsOfOrigin {
    /// The name of the origin.
    pub origin: &'static str,
    /// The limit's name; empty: they are not automatic.
    pub limit: String,
    /// The changes.
    pub totals: BanTotals,
}

/// The table of known sources.
#[derive(Clone, Copy, Debug)]
pub struct KnownSources {
    /// The number of sources, in the order of [`Standing::ALL`].
    pub by_standing: [u64; Standing::COUNT],
    /// The age of these numbers: a large table is counted seldom.
    pub age: Duration,
}

/// The data of the page's overview.
#[derive(Debug)]
pub struct Overview {
    /// The status.
    pub status: Status,
    /// The state of the fleet; `None`: the daemon is alone.
    pub fleet: Option<FleetStatus>,
    /// The limits, in the policy's order.
    pub limits: Vec<LimitOverview>,
}

/// A limit's configuration and levels; the status has its traffic.
#[derive(Debug)]
pub struct LimitOverview {
    /// The limit's name.
    pub limit: String,
    /// A text of its key.
    pub key: String,
    /// A text of the packets that it counts; `None`: all.
    pub matching: Option<String>,
    /// Whether its strategy has bursts.
    pub has_burst: bool,
    /// The levels of buckets shared by all sources; empty: each source has its own.
    pub levels: Vec<LimitExplanation>,
    /// How many sources it has banned, and would have banned; `None`: it does not ban.
    pub bans: Option<[u64; 2]>,
}

/// The counters of packets.
#[derive(Debug)]
pub struct TrafficCounts {
    /// The verdict on malformed packets.
    pub malformed: Action,
    /// Packets by reason over all interfaces, in the order of [`Reason::ALL`].
    pub packets: Vec<u64>,
    /// The traffic of limits, by their names.
    pub limits: Vec<(String, LimitTraffic)>,
}

/// A log line about an incident.
#[derive(Clone, Debug)]
pub struct IncidentLine {
    /// The time of logging.
    pub at: Timestamp,
    /// Whether an incident began; else it ended.
    pub began: bool,
    /// The message.
    pub text: String,
}

/// Why packets of a source do not pass now, and until when.
#[derive(Debug)]
pub struct SourceBlock {
    /// The widest ban that holds; `None`: none does.
    pub ban: Option<BanStatus>,
    /// Nanoseconds until the limit has a token for it again; `None`: it has one.
    pub retry_in_ns: Option<u64>,
}
