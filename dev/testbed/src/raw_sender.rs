//! Sends frames unchanged.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use socket2::Socket;

use crate::{
    load::{Load, Progress, SendReport},
    namespace::Namespace,
    packet_socket::{self, Traffic},
};

/// The time limit for any number of frames.
const TIME_LIMIT: Duration = Duration::from_mins(1);

/// Sends frames of any bytes through a packet socket.
#[derive(Debug)]
pub struct RawSender {
    socket: Socket,
    progress: Progress,
}

impl RawSender {
    /// Makes a sender through an interface of a namespace.
    pub fn new(namespace: &Namespace, interface: &str) -> Result<Self> {
        Ok(Self {
            socket: packet_socket::open(namespace, interface, Traffic::Nothing)?,
            progress: Progress::default(),
        })
    }

    /// Returns a handle to follow and end the sending on another thread.
    #[must_use]
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Sends each frame once, as fast as the wire takes them.
    pub fn send_frames(&self, frames: &[Vec<u8>]) -> Result<SendReport> {
        let all = frames.len() as u64;
        let sent = self.send(Load::saturating(TIME_LIMIT).at_most(all), frames)?;
        ensure!(
            sent.packets == all,
            "only {} of {all} frames went out",
            sent.packets
        );
        Ok(sent)
    }

    /// Sends frames at the load's rate, from the first again after the last.
    pub fn send(&self, load: Load, frames: &[Vec<u8>]) -> Result<SendReport> {
        ensure!(!frames.is_empty(), "no frame to send");
        let mut cycle = frames.iter().cycle().peekable();
        load.drive(&self.progress, |_| {
            if let Some(frame) = cycle.peek() {
                self.socket.send(frame)?;
                cycle.next();
            }
            Ok(())
        })
        .context("cannot send a frame")
    }
}
