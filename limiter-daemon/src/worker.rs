//! A thread beside the rest of the daemon, which ends when its handle is dropped.

use std::{
    io,
    thread::{self, JoinHandle},
};

use limiter_datapath::kernel::possible_cpus;

/// A running thread. Dropping it ends the thread and waits for it.
pub(crate) struct Worker {
    tell_to_end: Box<dyn Fn() + Send>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread of that name. `tell_to_end` must make `work` return soon.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce() + Send + 'static,
        tell_to_end: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            // Reading the number of CPUs needs a descriptor, and later none may be left, so each thread reads it now.
            let _ = possible_cpus();
            work();
        })?;
        Ok(Self {
            tell_to_end: Box::new(tell_to_end),
            thread: Some(thread),
        })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        (self.tell_to_end)();
        if let Some(thread) = self.thread.take() {
            // A panic's message is on stderr.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Barrier};

    use super::*;

    #[test]
    fn it_is_waited_for() {
        let (reported, ended) = (Arc::new(Barrier::new(2)), Arc::new(()));
        let worker = {
            let (reported, ended) = (Arc::clone(&reported), Arc::clone(&ended));
            let work = {
                let reported = Arc::clone(&reported);
                move || {
                    reported.wait();
                    drop(ended);
                }
            };
            let tell_to_end = move || {
                reported.wait();
            };
            Worker::start("test", work, tell_to_end).unwrap()
        };
        drop(worker);
        assert_eq!(Arc::strong_count(&ended), 1);
    }
}
