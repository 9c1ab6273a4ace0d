//! Asks all questions by the clock, on one thread.

use std::{
    collections::{HashMap, VecDeque},
    io::ErrorKind,
    net::{IpAddr, SocketAddr, UdpSocket},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bench_common::{Group, KNOWN};
use nix::{
    errno::Errno,
    sys::{
        epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags},
        resource::{Resource, getrlimit, setrlimit},
    },
};
use testbed::{Interrupt, Namespace};

use super::{Attempt, Connections, PlannedQuestion, Questions, address};
use crate::{
    cpu,
    service::{
        dns,
        flood::Flood,
        server::{REQUEST, SERVED, Service},
        setup::CLIENTS_CPU,
    },
};

/// When a question is retried, measured from its first try.
const AGAIN: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];

/// How long to wait for responses after the last question: the last retry gets a second.
const PATIENCE: Duration = Duration::from_secs(4);

/// The descriptors that a run may use, with a margin.
const DESCRIPTORS: u64 = 16_384;

/// Distinguishes the connection of a question from its datagrams.
const BY_TCP: u64 = 1 << 32;

/// Asks the planned questions in order, on the clients' CPU; returns once all are answered or given
/// up.
pub(in crate::service) fn ask(
    planned: &[PlannedQuestion],
    flood: &Flood,
    namespace: &Namespace,
    interrupt: &Interrupt,
) -> Result<Questions> {
    ensure!(
        u16::try_from(planned.len()).is_ok(),
        "too many questions for the ids of DNS"
    );
    namespace.enter(|| {
        // Only the kernel's threads come before the clients on this CPU, so that their questions
        // are on time.
        cpu::pin(CLIENTS_CPU)?;
        cpu::come_first(0)?;
        allow_descriptors()?;
        Engine::new(flood)?.run(planned, interrupt)
    })
}

struct Engine {
    epoll: Epoll,
    questions: Questions,
    service: Service,
    server: SocketAddr,
    is_v6: bool,
    /// The sockets for datagrams: one for each known client, by the client's number; behind them
    /// one for each new client, by the number of its question.
    sockets: HashMap<u64, UdpSocket>,
    connections: Connections,
    /// The questions to retry, by the number of the try.
    again: [VecDeque<(Instant, usize, u64)>; AGAIN.len()],
}

impl Engine {
    fn new(flood: &Flood) -> Result<Self> {
        Ok(Self {
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?,
            questions: Questions::default(),
            service: flood.service,
            server: SocketAddr::new(flood.server()?, flood.service.port()),
            is_v6: flood.is_v6(),
            sockets: HashMap::new(),
            connections: Connections::default(),
            again: [const { VecDeque::new() }; AGAIN.len()],
        })
    }

    fn run(mut self, planned: &[PlannedQuestion], interrupt: &Interrupt) -> Result<Questions> {
        let start = Instant::now();
        let end = planned.last().map_or(Duration::ZERO, |last| last.at) + PATIENCE;
        let mut planned = planned.iter().peekable();
        let mut events = [EpollEvent::empty(); 256];
        while start.elapsed() < end && (planned.peek().is_some() || !self.questions.is_done()) {
            interrupt.check()?;
            while let Some(next) = planned.next_if(|next| next.at <= start.elapsed()) {
                self.ask(next, start.elapsed().saturating_sub(next.at))?;
            }
            self.ask_again()?;
            let ready = match self.epoll.wait(&mut events, 1_u8) {
                Err(Errno::EINTR) => 0,
                ready => ready?,
            };
            for event in &events[..ready] {
                self.receive(event.data())?;
            }
        }
        Ok(self.questions)
    }

    fn ask(&mut self, planned: &PlannedQuestion, late: Duration) -> Result<()> {
        let now = Instant::now();
        let asker = (planned.group, planned.member);
        let number = self.questions.ask(asker, now, late);
        let from = address(planned.group, planned.member, self.is_v6);
        if self.service == Service::Web {
            let attempt = Attempt {
                from,
                to: self.server,
                request: REQUEST.to_vec(),
                is_response: |bytes| bytes.ends_with(SERVED),
            };
            return self
                .connections
                .open(&self.epoll, BY_TCP | number as u64, attempt);
        }
        let token = match planned.group {
            Group::Known => u64::from(planned.member),
            Group::New | Group::Bots => u64::from(KNOWN) + number as u64,
        };
        if !self.sockets.contains_key(&token) {
            let socket = self.socket(from, token)?;
            self.sockets.insert(token, socket);
        }
        for (queue, after) in self.again.iter_mut().zip(AGAIN) {
            queue.push_back((now + after, number, token));
        }
        self.send(number, token)
    }

    fn socket(&self, from: IpAddr, token: u64) -> Result<UdpSocket> {
        let socket =
            UdpSocket::bind((from, 0)).with_context(|| format!("a client cannot use {from}"))?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        self.epoll
            .add(&socket, EpollEvent::new(EpollFlags::EPOLLIN, token))?;
        Ok(socket)
    }

    fn ask_again(&mut self) -> Result<()> {
        let now = Instant::now();
        for queue in 0..AGAIN.len() {
            while let Some((_, number, token)) =
                self.again[queue].pop_front_if(|next| next.0 <= now)
            {
                if self.questions.ask_again(number) {
                    self.send(number, token)?;
                }
            }
        }
        Ok(())
    }

    fn send(&self, number: usize, token: u64) -> Result<()> {
        let Some(socket) = self.sockets.get(&token) else {
            return Ok(());
        };
        let id = u16::try_from(number)?;
        match socket.send(&dns::query(id)) {
            // It is lost, like a packet on its way to the server: an earlier one was refused, or a
            // queue is full.
            Err(error) if is_lost(&error) => Ok(()),
            sent => sent.map(drop).context("a client cannot send"),
        }
    }

    /// Reads the responses for a token.
    fn receive(&mut self, token: u64) -> Result<()> {
        if token & BY_TCP != 0 {
            if let Some(tries) = self.connections.advance(token) {
                // A response over TCP to a question that began as a datagram counts for the
                // datagram's try.
                let tries = (self.service == Service::Web).then_some(tries);
                let number = usize::try_from(token & !BY_TCP)?;
                self.questions
                    .record_response(number, tries, Instant::now());
            }
            return Ok(());
        }
        let mut bytes = [0; 2048];
        loop {
            let Some(socket) = self.sockets.get(&token) else {
                return Ok(());
            };
            match socket.recv(&mut bytes) {
                Ok(length) => {
                    if let Some(response) = dns::parse_response(&bytes[..length]) {
                        let from = socket.local_addr()?.ip();
                        self.take(response, from)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if is_lost(&error) => {}
                Err(error) => return Err(error).context("a client cannot receive"),
            }
        }
    }

    /// Takes a response. If it is truncated, asks again over TCP, as any resolver does.
    fn take(&mut self, response: dns::Response, from: IpAddr) -> Result<()> {
        let number = usize::from(response.id);
        if !response.is_truncated {
            self.questions.record_response(number, None, Instant::now());
            return Ok(());
        }
        let attempt = Attempt {
            from,
            to: self.server,
            request: dns::query_for_tcp(response.id),
            is_response: dns::has_tcp_response,
        };
        self.connections
            .open(&self.epoll, BY_TCP | number as u64, attempt)
    }
}

/// Whether an error only means that a packet is lost.
fn is_lost(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionRefused
            | ErrorKind::HostUnreachable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::WouldBlock
    ) || error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Completes a handshake from each address, some at a time; returns how many succeeded.
pub(in crate::service) fn shake_hands(
    group: Group,
    members: u32,
    flood: &Flood,
    namespace: &Namespace,
    interrupt: &Interrupt,
) -> Result<usize> {
    /// How many handshakes may be in progress: a server's queue takes more.
    const AT_ONCE: usize = 64;
    /// For all handshakes.
    const LONGEST: Duration = Duration::from_secs(5);
    let server = SocketAddr::new(flood.server()?, flood.service.port());
    namespace.enter(|| {
        cpu::pin(CLIENTS_CPU)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let mut connections = Connections::default();
        let mut events = [EpollEvent::empty(); 256];
        let (mut next, mut completed) = (0, 0);
        let start = Instant::now();
        while start.elapsed() < LONGEST && (next < members || connections.len() > 0) {
            interrupt.check()?;
            while next < members && connections.len() < AT_ONCE {
                let attempt = Attempt {
                    from: address(group, next, flood.is_v6()),
                    to: server,
                    request: Vec::new(),
                    is_response: |_| true,
                };
                connections.open(&epoll, u64::from(next), attempt)?;
                next += 1;
            }
            let ready = match epoll.wait(&mut events, 10_u8) {
                Err(Errno::EINTR) => 0,
                ready => ready?,
            };
            for event in &events[..ready] {
                completed += usize::from(connections.advance(event.data()).is_some());
            }
            thread::yield_now();
        }
        Ok(completed)
    })
}

/// Allows a descriptor for each client.
fn allow_descriptors() -> Result<()> {
    let (now, most) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if now < DESCRIPTORS {
        setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS.min(most), most)
            .context("the clients need more descriptors")?;
    }
    Ok(())
}
