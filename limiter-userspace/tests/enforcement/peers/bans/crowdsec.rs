//! CrowdSec's custom bouncer with `dist/crowdsec/limiter-bouncer`, and decisions as CrowdSec's
//! local API streams them.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Write as _},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testbed::Limiter;

use super::{
    BOTH, ONE, Process, assert_both_ban, assert_operator_lifts_all, dist, is_banned, start,
    wait_for_bans,
};
use crate::{
    pair,
    peers::{binary, program},
};

/// A local API. It answers each poll with the decisions since the last one.
struct Api {
    address: String,
    news: Arc<Mutex<Value>>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn nothing() -> Value {
    json!({"new": [], "deleted": []})
}

impl Api {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let news = Arc::new(Mutex::new(nothing()));
        let ends = Arc::new(AtomicBool::new(false));
        let (reported, end) = (Arc::clone(&news), Arc::clone(&ends));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if end.load(Ordering::Relaxed) {
                    break;
                }
                // After an error, the bouncer asks again.
                let _ = stream
                    .map_err(Into::into)
                    .and_then(|stream| respond(stream, &reported));
            }
        });
        Ok(Self {
            address,
            news,
            ends,
            thread: Some(thread),
        })
    }

    /// Adds a decision about an address to `new` or to `deleted`.
    fn decide(&self, what: &str, address: &str) {
        let mut news = self.news.lock().unwrap_or_else(PoisonError::into_inner);
        let decision = json!({
            "id": 1, "origin": "CAPI", "type": "ban", "scope": "Ip", "value": address,
            "duration": "30m", "scenario": "crowdsecurity/ssh-bf",
        });
        if let Some(list) = news[what].as_array_mut() {
            list.push(decision);
        }
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes the thread.
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn respond(mut stream: TcpStream, news: &Mutex<Value>) -> Result<()> {
    let mut lines = BufReader::new(&stream).lines();
    let request = lines.next().context("no request")??;
    for line in lines {
        if line?.is_empty() {
            break;
        }
    }
    let body = if request.contains("/v1/decisions/stream") {
        let mut news = news.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *news, nothing())
    } else {
        json!({})
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}

/// Starts the bouncer, which polls every second.
fn run(directory: &Path, api: &Api, limiter: &Limiter) -> Result<Process> {
    let configuration = directory.join("bouncer.yaml");
    fs::write(
        &configuration,
        format!(
            "bin_path: {}
feed_via_stdin: true
total_retries: -1
piddir: {}/
update_frequency: 1s
cache_retention_duration: 1s
daemonize: false
log_mode: stdout
log_level: info
api_url: http://{}/
api_key: key
prometheus: {{enabled: false}}
",
            dist("crowdsec/limiter-bouncer").display(),
            directory.display(),
            api.address
        ),
    )?;
    let bin = binary().parent().context("a directory")?.to_owned();
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&path)))?;
    let mut bouncer = program::local("crowdsec-custom-bouncer")?;
    bouncer.arg("-c").arg(configuration);
    bouncer.env("PATH", path);
    bouncer.env("LIMITER_SOCKET", limiter.socket());
    bouncer.stdin(Stdio::null()).stdout(Stdio::null());
    let bouncer = bouncer.stderr(Stdio::null()).spawn();
    Ok(Process(bouncer.context("cannot run the bouncer")?))
}

#[test]
fn crowdsec_lifts_its_own_bans() -> Result<()> {
    let pair = pair()?;
    let limiter = start(&pair)?;
    let directory = tempfile::tempdir()?;
    let api = Api::start()?;
    limiter.show(&["ban", BOTH, "--for", "1h"])?;
    api.decide("new", BOTH);
    api.decide("new", ONE);
    let _bouncer = run(directory.path(), &api, &limiter)?;
    wait_for_bans(&limiter, "crowdsec", &[BOTH, ONE])?;
    assert_both_ban(&limiter, "crowdsec")?;
    ensure!(is_banned(&pair, &limiter, ONE)?);

    api.decide("deleted", BOTH);
    wait_for_bans(&limiter, "crowdsec", &[ONE])?;
    ensure!(is_banned(&pair, &limiter, BOTH)?);
    api.decide("deleted", ONE);
    wait_for_bans(&limiter, "crowdsec", &[])?;
    ensure!(!is_banned(&pair, &limiter, ONE)?);
    assert_operator_lifts_all(&limiter, "operator")?;
    ensure!(!is_banned(&pair, &limiter, BOTH)?);
    ensure!(limiter.stop()?.success());
    Ok(())
}
