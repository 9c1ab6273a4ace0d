//! The ways in which connections end.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read as _, Write as _},
    net::{Shutdown, TcpStream},
    os::fd::OwnedFd,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use socket2::Socket;
use testbed::Pair;

use super::kind::Kind;
use crate::syn_cookies::set;

pub(super) struct Open {
    pub(super) number: usize,
    pub(super) kind: Kind,
    pub(super) client: TcpStream,
    pub(super) serving: TcpStream,
}

/// The number of ways to end.
pub(super) const WAYS: usize = 8;

/// Two of the ways: the client vanishes, and the server's process is killed.
pub(super) const VANISHES: usize = 6;
const KILLED: usize = 7;

/// How many connections of vanished clients may wait for their time-out.
const MOST_WAITING: usize = 100;

/// The client's firewall drops packets with this mark.
const MARK: u32 = 77;

/// After this time, the subflows of a closed multipath connection have ended. Its socket does not show them.
const SUBFLOWS_END: Duration = Duration::from_secs(4);

/// Ends connections, and counts them by way.
#[derive(Default)]
pub(super) struct Ends {
    pub(super) ended: [usize; WAYS],
    timing_out: VecDeque<(Instant, Kind, TcpStream)>,
    to_be_killed: Vec<(TcpStream, TcpStream)>,
}

/// Silences the clients that vanish, at these `addresses`, and makes the server give up soon.
pub(super) fn prepare(pair: &Pair, addresses: [&str; 2]) -> Result<()> {
    let [v4, v6] = addresses;
    let rules = format!(
        "table inet away {{ chain output {{ type filter hook output priority 0; meta mark {MARK} \
         drop; ip saddr {v4} tcp flags & rst == rst drop; ip6 saddr {v6} tcp flags & rst == rst \
         drop; }}; }}"
    );
    let output = pair.client.command("nft").arg(rules).output()?;
    ensure!(output.status.success(), "{output:?}");
    for (name, value) in [
        ("tcp_retries2", "2"),
        ("tcp_orphan_retries", "1"),
        ("tcp_keepalive_time", "1"),
        ("tcp_keepalive_intvl", "1"),
        ("tcp_keepalive_probes", "1"),
    ] {
        set(&pair.server, name, value)?;
    }
    Ok(())
}

impl Ends {
    pub(super) fn end(&mut self, open: Open) -> Result<()> {
        let Open {
            number,
            kind,
            client,
            serving,
        } = open;
        let way = number % WAYS;
        self.ended[way] += 1;
        match way {
            0 => drop((client, serving)),
            1 => drop((serving, client)),
            2 => reset(client, serving)?,
            3 => reset(serving, client)?,
            4 => {
                client.shutdown(Shutdown::Write)?;
                drop((serving, client));
            }
            5 => {
                serving.shutdown(Shutdown::Both)?;
                // The other end may have closed first.
                let _ = client.shutdown(Shutdown::Both);
            }
            VANISHES => self.vanish(number / WAYS, kind, client, serving)?,
            KILLED => {
                self.to_be_killed.push((client, serving));
                if self.to_be_killed.len() == 3 {
                    self.kill()?;
                }
            }
            _ => bail!("there is no way {way}"),
        }
        Ok(())
    }

    /// Makes the client vanish. The server then sends data, or probes the client, or closes the connection.
    fn vanish(
        &mut self,
        number: usize,
        kind: Kind,
        client: TcpStream,
        mut serving: TcpStream,
    ) -> Result<()> {
        let client = Socket::from(client);
        client.set_mark(MARK)?;
        client.set_linger(Some(Duration::ZERO))?;
        drop(client);
        // In a long run, more clients vanish than may wait.
        match number / Kind::ALL.len() % 3 {
            0 if self.has_room()? => serving.write_all(b"?")?,
            1 if self.has_room()? => {
                let socket = Socket::from(serving);
                socket.set_keepalive(true)?;
                serving = socket.into();
            }
            _ => return Ok(()),
        }
        serving.set_nonblocking(true)?;
        self.timing_out.push_back((Instant::now(), kind, serving));
        Ok(())
    }

    /// Drops connections that have timed out; returns whether another one may wait.
    fn has_room(&mut self) -> Result<bool> {
        while let Some((since, kind, serving)) = self.timing_out.front_mut() {
            if !has_timed_out(*since, *kind, serving)? {
                break;
            }
            self.timing_out.pop_front();
        }
        Ok(self.timing_out.len() < MOST_WAITING)
    }

    /// Kills a process that holds the only descriptors of the server's ends.
    fn kill(&mut self) -> Result<()> {
        let mut command = Command::new("sleep");
        command.arg("60");
        let mut clients = Vec::new();
        for (index, (client, serving)) in self.to_be_killed.drain(..).enumerate() {
            let serving = Stdio::from(OwnedFd::from(serving));
            match index {
                0 => command.stdin(serving),
                1 => command.stdout(serving),
                _ => command.stderr(serving),
            };
            clients.push(client);
        }
        let mut server = command.spawn()?;
        // The process has its own copies of the descriptors.
        drop(command);
        server.kill()?;
        server.wait()?;
        Ok(())
    }

    /// Finishes connections that have only begun to end. Finally the clients answer again, without their connections:
    /// otherwise the kernel keeps closed multipath connections for a minute.
    pub(super) fn finish(&mut self, pair: &Pair) -> Result<()> {
        self.kill()?;
        crate::wait(|| Ok(!self.has_room()? || self.timing_out.is_empty()))?;
        let rules = ["delete", "table", "inet", "away"];
        let output = pair.client.command("nft").args(rules).output()?;
        ensure!(output.status.success(), "{output:?}");
        Ok(())
    }
}

fn reset(resets: TcpStream, other: TcpStream) -> Result<()> {
    Socket::from(resets).set_linger(Some(Duration::ZERO))?;
    drop(other);
    Ok(())
}

/// Returns whether a vanished client's connection has timed out; fails if it ended in another way.
fn has_timed_out(since: Instant, kind: Kind, serving: &mut TcpStream) -> Result<bool> {
    if kind == Kind::Multipath {
        return Ok(since.elapsed() > SUBFLOWS_END);
    }
    let mut sent = [0; 2];
    loop {
        match serving.read(&mut sent) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::TimedOut => return Ok(true),
            // The byte in the SYN.
            Ok(1) => {}
            Ok(length) => bail!("a client that vanished has sent {length} bytes"),
            Err(error) => return Err(error).context("of a client that vanished"),
        }
    }
}
