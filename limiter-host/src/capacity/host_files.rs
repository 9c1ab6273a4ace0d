//! The kernel's files about the host's losses and its CPUs.

use std::{
    fs::File,
    io::{self, ErrorKind, Read as _, Seek as _},
};

use super::{CpuTimes, OverloadCounters};

/// The files, kept open: later no descriptor may be left.
#[derive(Debug)]
pub struct HostFiles {
    snmp: ProcFile,
    snmp6: Option<ProcFile>,
    netstat: ProcFile,
    /// Counters of all CPUs, for the whole machine.
    softnet: ProcFile,
    /// The times of all CPUs.
    stat: ProcFile,
}

/// The host's losses cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct ReadOverloadError {
    path: &'static str,
    #[source]
    cause: io::Error,
}

impl HostFiles {
    /// Opens the files about the network namespace of this thread.
    ///
    /// # Errors
    ///
    /// A file cannot be opened.
    pub fn open() -> Result<Self, ReadOverloadError> {
        Ok(Self {
            snmp: ProcFile::open("/proc/thread-self/net/snmp")?,
            snmp6: ProcFile::open_if_there("/proc/thread-self/net/snmp6")?,
            netstat: ProcFile::open("/proc/thread-self/net/netstat")?,
            softnet: ProcFile::open("/proc/net/softnet_stat")?,
            stat: ProcFile::open("/proc/stat")?,
        })
    }

    /// Reads the CPUs' times.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn cpus(&self) -> Result<CpuTimes, ReadOverloadError> {
        Ok(CpuTimes::parse(&self.stat.text()?))
    }

    /// Reads the host's losses.
    ///
    /// # Errors
    ///
    /// A file cannot be read.
    pub fn overload(&self) -> Result<OverloadCounters, ReadOverloadError> {
        Ok(OverloadCounters::parse(
            &self.snmp.text()?,
            &ProcFile::text_if_there(self.snmp6.as_ref())?,
            &self.netstat.text()?,
            &self.softnet.text()?,
        ))
    }
}

/// A file that the kernel writes anew whenever it is read from its start.
#[derive(Debug)]
struct ProcFile {
    path: &'static str,
    file: File,
}

impl ProcFile {
    fn open(path: &'static str) -> Result<Self, ReadOverloadError> {
        match File::open(path) {
            Ok(file) => Ok(Self { path, file }),
            Err(cause) => Err(ReadOverloadError { path, cause }),
        }
    }

    /// Opens a file that a kernel without IPv6 does not have.
    fn open_if_there(path: &'static str) -> Result<Option<Self>, ReadOverloadError> {
        match Self::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.cause.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn text(&self) -> Result<String, ReadOverloadError> {
        let read = || {
            let mut file = &self.file;
            let mut text = String::new();
            file.rewind()?;
            file.read_to_string(&mut text)?;
            Ok(text)
        };
        let path = self.path;
        read().map_err(|cause| ReadOverloadError { path, cause })
    }

    fn text_if_there(file: Option<&Self>) -> Result<String, ReadOverloadError> {
        file.map_or_else(|| Ok(String::new()), Self::text)
    }
}
