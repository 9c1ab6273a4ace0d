//! Carries letters between nodes over the store: at once, or not at all, as a late one is worth nothing.

use std::{sync::Arc, time::Duration};

use limiter_fleet_store::Post;
use tokio::{
    sync::mpsc::{self, Receiver, Sender},
    task::JoinHandle,
    time::{sleep, timeout},
};
use tracing::{info, warn};

use super::super::{access, handle::Fleet, jitter::jittered};

/// How long the store may take for anything: longer than a read waits for letters.
const PATIENCE: Duration = Duration::from_millis(2_500);

/// How long to wait at most before the next attempt to connect.
const PAUSE: Duration = Duration::from_secs(1);

/// How many letters, or batches of them, may wait.
const WAITING: usize = 64;

/// Letters, each with the name of the node that it is to.
pub(super) type Letters = Vec<(String, Vec<u8>)>;

/// The tasks that carry letters. They end with it.
pub(super) struct Carrier {
    /// Letters to this node.
    pub(super) arrived: Receiver<Vec<u8>>,
    leaving: Sender<Letters>,
    task: JoinHandle<()>,
}

impl Carrier {
    /// Starts them.
    pub(super) fn start(fleet: Arc<Fleet>) -> Self {
        let (arriving, arrived) = mpsc::channel(WAITING);
        let (leaving, left) = mpsc::channel(WAITING);
        let task = tokio::spawn(carry(fleet, arriving, left));
        Self {
            arrived,
            leaving,
            task,
        }
    }

    /// Sends letters; while too many wait, they are lost.
    pub(super) fn send(&self, letters: Letters) {
        if !letters.is_empty() {
            let _ = self.leaving.try_send(letters);
        }
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Carries letters for as long as somebody wants them.
async fn carry(fleet: Arc<Fleet>, arriving: Sender<Vec<u8>>, mut leaving: Receiver<Letters>) {
    while !arriving.is_closed() {
        let Err(why) = connected(&fleet, &arriving, &mut leaving).await else {
            return;
        };
        tell(&fleet, Some(why));
        sleep(jittered(PAUSE)).await;
        // All that waited meanwhile is late.
        while leaving.try_recv().is_ok() {}
    }
}

/// Connects, and carries letters until that fails: then says why.
async fn connected(
    fleet: &Arc<Fleet>,
    arriving: &Sender<Vec<u8>>,
    leaving: &mut Receiver<Letters>,
) -> Result<(), String> {
    let settings = &fleet.settings;
    let access = access::of(settings).map_err(|error| error.to_string())?;
    let connect = || Post::connect(&access, settings.name.as_str(), settings.node.as_str());
    let mut sending = in_time(connect()).await?;
    let mut reading = in_time(connect()).await?;
    let mut after = in_time(reading.mark()).await?;
    tell(fleet, None);
    let read = async {
        loop {
            let news = in_time(reading.letters(after)).await?;
            after = news.next.unwrap_or(after);
            for letter in news.messages {
                if arriving.send(letter).await.is_err() {
                    return Ok(());
                }
            }
        }
    };
    let send = async {
        while let Some(letters) = leaving.recv().await {
            in_time(sending.send(&letters)).await?;
        }
        Ok(())
    };
    tokio::select! {
        ended = read => ended,
        ended = send => ended,
    }
}

async fn in_time<T, E: ToString>(work: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}

/// Notes whether letters are carried, and logs it when that changes.
fn tell(fleet: &Fleet, error: Option<String>) {
    let store = &fleet.settings.store;
    let mut told = fleet.told();
    match &error {
        None => info!("the fleet's budgets are shared over its store {store}"),
        Some(why) if told.letters_error.is_none() => warn!(
            why,
            "the fleet's budgets are not shared over its store {store}: {why}; what is lent ends within \
             seconds, and each node has what is its own"
        ),
        Some(_) => {}
    }
    told.letters_error = error;
}
