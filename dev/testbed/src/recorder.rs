//! Records the frames of an interface.

use std::{
    io::{ErrorKind, Read as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anyhow::{Result, anyhow};
use socket2::Socket;

use crate::{
    capture::Packet,
    clock::monotonic_ns,
    namespace::Namespace,
    packet_socket::{self, Traffic},
    socket,
};

/// Records every frame that an interface receives (if XDP passes it) or sends.
#[derive(Debug)]
pub struct Recorder {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Packet>>>,
}

impl Recorder {
    /// Starts to record on an interface of a namespace.
    pub fn new(namespace: &Namespace, interface: &str) -> Result<Self> {
        let socket = packet_socket::open(namespace, interface, Traffic::Everything)?;
        socket::prepare(&socket)?;
        let over = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let over = Arc::clone(&over);
            move || record(socket, &over)
        });
        Ok(Self { over, thread })
    }

    /// Returns the frames, with the times at which they were read.
    pub fn finish(self) -> Result<Vec<Packet>> {
        self.over.store(true, Ordering::Relaxed);
        let recorded = self.thread.join();
        recorded.map_err(|_| anyhow!("the recorder panicked"))?
    }
}

fn record(mut socket: Socket, over: &AtomicBool) -> Result<Vec<Packet>> {
    let mut frame = vec![0; 1 << 18];
    let mut packets = Vec::new();
    loop {
        match socket.read(&mut frame) {
            Ok(length) => packets.push(Packet::whole(monotonic_ns(), frame[..length].to_vec())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(packets);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
