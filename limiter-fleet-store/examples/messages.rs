//! Measures the throughput of messages through servers of the store, and the CPU cost of sending and
//! reading.
//!
//! Each of many nodes sends messages to random others, and reads its own. Servers report their own CPU time,
//! so other load on the machine matters only through shared caches.
//!
//! ```text
//! redis-server --port 7001 --save '' &
//! cargo run --release -p limiter-fleet-store --example messages -- 127.0.0.1:7001
//! ```
//!
//! Several addresses may name servers of one Cluster. `ca=FILE` before them selects TLS.

#![expect(
    clippy::cast_precision_loss,
    clippy::print_stdout,
    reason = "it prints ratios of what it counts"
)]

use std::{
    collections::{HashMap, hash_map::RandomState},
    env,
    error::Error,
    fs,
    hash::BuildHasher as _,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use limiter_fleet_store::{Access, Inbox, Outbox, Place, Tls};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

type Failure = Box<dyn Error + Send + Sync>;

const FLEET: &str = "measured";

const NODES: u64 = 200;

/// The bytes of messages with a renewal alone, with 20 entries and with 512.
const SIZES: [usize; 3] = [80, 600, 12_900];

/// How many messages a node sends to one server at once.
const BATCHES: [usize; 2] = [1, 16];

/// How long it measures, after warming up for as long.
const TIME: Duration = Duration::from_secs(4);

/// The messages sent and read.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    read: AtomicU64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let (access, places) = servers()?;
    let routes = Arc::new(routes(&access, &places).await?);
    println!(
        "messages of bytes, a batch: sent a second, read a second; us of a server and of all nodes for one"
    );
    for bytes in SIZES {
        for batch in BATCHES {
            measure(&access, &places, &routes, bytes, batch).await?;
        }
    }
    Ok(())
}

fn servers() -> Result<(Access, Vec<Place>), Failure> {
    let (mut tls, mut places) = (None, Vec::new());
    for argument in env::args().skip(1) {
        if let Some(file) = argument.strip_prefix("ca=") {
            let certificates = Some(fs::read(file)?);
            tls = Some(Tls { certificates });
        } else {
            let (host, port) = argument.rsplit_once(':').ok_or("expected HOST:PORT")?;
            let (host, port) = (host.to_owned(), port.parse()?);
            places.push(Place { host, port });
        }
    }
    let access = Access {
        places: places.clone(),
        sentinel: None,
        database: 0,
        user: None,
        password: None,
        tls,
    };
    Ok((access, places))
}

/// Assigns each node to the server with its stream.
async fn routes(access: &Access, places: &[Place]) -> Result<Vec<Vec<String>>, Failure> {
    let mut routes = vec![Vec::new(); places.len()];
    for node in 0..NODES {
        let name = node.to_string();
        let inbox = Inbox::connect(access, FLEET, &name).await?;
        let found = places.iter().position(|place| place == inbox.place());
        routes[found.ok_or("a server that was not named")?].push(name);
    }
    Ok(routes)
}

async fn measure(
    access: &Access,
    places: &[Place],
    routes: &Arc<Vec<Vec<String>>>,
    bytes: usize,
    batch: usize,
) -> Result<(), Failure> {
    let counts = Arc::new(Counts::default());
    let mut nodes = JoinSet::new();
    for node in 0..NODES {
        let inbox = Inbox::connect(access, FLEET, &node.to_string()).await?;
        nodes.spawn(read(inbox, Arc::clone(&counts)));
        let mut outboxes = Vec::new();
        for place in places {
            outboxes.push(Outbox::connect(access, place, FLEET).await?);
        }
        let (routes, counts) = (Arc::clone(routes), Arc::clone(&counts));
        nodes.spawn(send(outboxes, routes, vec![0; bytes], batch, counts));
    }
    sleep(TIME).await;
    let before = Sample::now(access, places, &counts).await?;
    sleep(TIME).await;
    let after = Sample::now(access, places, &counts).await?;
    if let Some(ended) = nodes.try_join_next() {
        return ended?.map_err(|error| format!("a node has ended: {error}").into());
    }
    after.print_since(&before, bytes, batch);
    Ok(())
}

/// Sends batches to one server after another, as fast as they accept them.
async fn send(
    mut outboxes: Vec<Outbox>,
    routes: Arc<Vec<Vec<String>>>,
    message: Vec<u8>,
    batch: usize,
    counts: Arc<Counts>,
) -> Result<(), Failure> {
    let random = RandomState::new();
    for turn in 0_u64.. {
        for (outbox, nodes) in outboxes.iter_mut().zip(routes.iter()) {
            let messages = (0..batch).map(|number| {
                let picked = random.hash_one((turn, number)) % nodes.len().max(1) as u64;
                let node = &nodes[usize::try_from(picked).unwrap_or_default()];
                (node.clone(), message.clone())
            });
            let messages: Vec<_> = messages.collect();
            let sent = outbox.send(&messages).await?;
            if !sent.moved.is_empty() || sent.lost.is_some() {
                return Err(format!("{sent:?}").into());
            }
            counts.sent.fetch_add(batch as u64, Relaxed);
        }
    }
    Ok(())
}

/// Reads a node's messages as they arrive.
async fn read(mut inbox: Inbox, counts: Arc<Counts>) -> Result<(), Failure> {
    let mut after = inbox.mark().await?;
    loop {
        let news = inbox.messages(after).await?;
        counts.read.fetch_add(news.messages.len() as u64, Relaxed);
        after = news.next.unwrap_or(after);
    }
}

/// The work done up to a moment.
struct Sample {
    at: Instant,
    sent: u64,
    read: u64,
    /// CPU seconds of all servers together, and of this process.
    servers: f64,
    own: f64,
}

impl Sample {
    async fn now(access: &Access, places: &[Place], counts: &Counts) -> Result<Self, Failure> {
        let mut servers = 0.0;
        for place in places {
            servers += time_of(access, place).await?;
        }
        Ok(Self {
            at: Instant::now(),
            sent: counts.sent.load(Relaxed),
            read: counts.read.load(Relaxed),
            servers,
            own: own_time()?,
        })
    }

    fn print_since(&self, before: &Self, bytes: usize, batch: usize) {
        let seconds = (self.at - before.at).as_secs_f64();
        let (sent, read) = (self.sent - before.sent, self.read - before.read);
        let one = |time: f64| time * 1e6 / sent as f64;
        let servers = self.servers - before.servers;
        println!(
            "{bytes:>6}, {batch:>2}: {:>8.0} {:>8.0}; {:>6.2} {:>6.2}: a server carries {:>7.0} a second; it was busy for {:.0} %",
            sent as f64 / seconds,
            read as f64 / seconds,
            one(servers),
            one(self.own - before.own),
            sent as f64 / servers,
            servers * 100.0 / seconds,
        );
    }
}

/// Returns a server's CPU time, in seconds.
async fn time_of(access: &Access, place: &Place) -> Result<f64, Failure> {
    let mut connection = access.enter(place).await?;
    let reported: String = redis::cmd("INFO")
        .arg("CPU")
        .query_async(&mut connection)
        .await?;
    let fields = reported.lines().filter_map(|line| line.split_once(':'));
    let fields: HashMap<_, _> = fields.collect();
    let field =
        |name| -> Result<f64, Failure> { Ok(fields.get(name).ok_or("no such field")?.parse()?) };
    Ok(field("used_cpu_user")? + field("used_cpu_sys")?)
}

/// Returns this process's CPU time, in seconds.
fn own_time() -> Result<f64, Failure> {
    let reported = fs::read_to_string("/proc/self/schedstat")?;
    let ns: u64 = reported.split(' ').next().ok_or("no number")?.parse()?;
    Ok(Duration::from_nanos(ns).as_secs_f64())
}
