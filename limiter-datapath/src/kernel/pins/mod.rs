//! The pins, which outlive the daemon: links, programs and maps in a directory of a BPF filesystem.
//!
//! ```text
//! DIRECTORY/
//!   interfaces/INDEX/link        holds the program on the interface; this path never changes,
//!   interfaces/INDEX/facts       so that every version of the limiter can take it over
//!   handshakes                   holds the program on the root cgroup; this path never changes
//!   vABI/kept/GENERATION/host/MAP
//!                                buckets, counters and offenders, by their first generation
//!   vABI/policies/GENERATION/manifest
//!   vABI/policies/GENERATION/INDEX
//!                                the policy's program for an interface
//!   vABI/policies/GENERATION/stages/INDEX
//!                                the array of the program's stages
//!   vABI/policies/GENERATION/handshakes
//!                                the policy's program for the root cgroup
//! ```
//!
//! [`ABI`] is the version of everything below `vABI`. While a change of the policy is not settled,
//! there are two generations; each link's program tells which is in force. A BPF filesystem allows
//! no dots in names, so interfaces go by index.

mod directory;
mod document;
mod error;
mod facts;
mod find;
mod lost;
mod manifest;
mod namespace;

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
};

use self::{
    directory::{check_owner, make, names, numbers, remove, remove_file},
    error::{document_error, path_error},
};
pub use self::{document::DocumentError, error::PinsError, manifest::Manifest};
pub(super) use self::{facts::Facts, namespace::NetworkNamespace};
use super::{grace::wait_for_running_programs, link::Link, program::Program};

/// The version of everything below `v…`: the maps' types, sizes and values, and the manifest. Raise
/// it when an older or newer limiter would misread them after a change. A test detects changes of
/// the maps.
pub const ABI: u32 = 23;

/// The default directory of `--pin`.
pub const DEFAULT_DIRECTORY: &str = "/sys/fs/bpf/limiter";

const INTERFACES: &str = "interfaces";
const POLICIES: &str = "policies";
const SHARED_MAPS: &str = "kept";
const LINK: &str = "link";
const FACTS: &str = "facts";
const MANIFEST: &str = "manifest";
const STAGES: &str = "stages";
const HANDSHAKES: &str = "handshakes";

#[derive(Debug)]
pub(super) struct PinnedInterface {
    pub(super) index: u32,
    pub(super) facts: Facts,
    pub(super) link: Link,
}

/// A pinned policy, with its programs by interface index.
#[derive(Debug)]
pub(super) struct PinnedPolicy {
    pub(super) manifest: Manifest,
    pub(super) programs: BTreeMap<u32, Program>,
    /// The program that records handshakes, if the policy has it.
    pub(super) handshakes: Option<Program>,
}

/// A directory of pins.
#[derive(Debug)]
pub struct Pins {
    directory: PathBuf,
    /// Excludes other processes that change pins; `None`: opened only for reading.
    lock: Option<File>,
}

impl Pins {
    /// Takes a directory exclusively for this process; makes it if it is missing.
    pub fn take(directory: &Path) -> Result<Self, PinsError> {
        Ok(Self {
            directory: directory.to_owned(),
            lock: Some(lock(directory)?),
        })
    }

    /// Takes the directory again if it has vanished, or another has replaced it.
    pub(super) fn take_again(&mut self) -> Result<(), PinsError> {
        if self.lost_directory().is_some() {
            self.lock = Some(lock(&self.directory)?);
        }
        Ok(())
    }

    /// Whether this process has taken the pins and may change them.
    pub(super) const fn are_taken(&self) -> bool {
        self.lock.is_some()
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The path of the pinned maps of one set of buckets, counters and offenders. `generation`: the
    /// generation that made the set.
    pub(super) fn shared_maps(&self, generation: u64, owner: &str) -> PathBuf {
        self.all_shared_maps()
            .join(generation.to_string())
            .join(owner)
    }

    /// The owners of the pinned sets of a generation.
    pub(super) fn shared_map_owners(&self, generation: u64) -> Result<Vec<String>, PinsError> {
        names(&self.all_shared_maps().join(generation.to_string()))
    }

    /// Makes the directory that [`Self::shared_maps`] returns, empty.
    pub(super) fn make_shared_maps(
        &self,
        generation: u64,
        owner: &str,
    ) -> Result<PathBuf, PinsError> {
        let path = self.shared_maps(generation, owner);
        remove(&path)?;
        make(&path)?;
        Ok(path)
    }

    pub(super) fn remove_shared_maps(&self, generation: u64, owner: &str) -> Result<(), PinsError> {
        remove(&self.shared_maps(generation, owner))
    }

    /// Removes the maps of all other generations; `None`: of all generations.
    pub(super) fn remove_other_shared_maps(
        &self,
        generation: Option<u64>,
    ) -> Result<(), PinsError> {
        for other in numbers::<u64>(&self.all_shared_maps())? {
            if Some(other) != generation {
                remove(&self.all_shared_maps().join(other.to_string()))?;
            }
        }
        Ok(())
    }

    /// The names of other versions' directories, such as `v0`.
    pub fn other_versions(&self) -> Result<Vec<String>, PinsError> {
        let mut names = names(&self.directory)?;
        names.retain(|name| name.starts_with('v') && *name != version());
        Ok(names)
    }

    /// Removes the pins of other versions, except links, which have the same path in all versions.
    pub(super) fn remove_other_versions(&self) -> Result<(), PinsError> {
        let names = self.other_versions()?;
        if !names.is_empty() {
            // As in `remove_all`.
            let _ = wait_for_running_programs();
        }
        for name in names {
            remove(&self.directory.join(name))?;
        }
        Ok(())
    }

    /// Removes the pins of this version, except links.
    pub(super) fn remove_this_version(&self) -> Result<(), PinsError> {
        remove(&self.versioned())
    }

    /// The interfaces with a pinned link.
    pub(super) fn interfaces(&self) -> Result<Vec<PinnedInterface>, PinsError> {
        let directory = self.directory.join(INTERFACES);
        let mut interfaces = Vec::new();
        for index in numbers::<u32>(&directory)? {
            let of_interface = directory.join(index.to_string());
            let facts = of_interface.join(FACTS);
            let link = of_interface.join(LINK);
            if !link.try_exists().map_err(path_error(&link))? {
                // Pinning was interrupted, so there is no program either.
                continue;
            }
            let facts: Facts = document::read(&facts).map_err(document_error(&facts))?;
            let of_facts = NetworkNamespace::of(&facts);
            let link = Link::open(&link).map_err(path_error(&link))?;
            // A link without its interface, which may have vanished with its namespace, enforces nothing,
            // so any limiter may take it over.
            let enforces = link.info().is_ok_and(|info| info.interface != 0);
            if self.lock.is_some() && enforces && !of_facts.is(&NetworkNamespace::current()?) {
                return Err(PinsError::OtherNamespace(self.directory.clone()));
            }
            interfaces.push(PinnedInterface { index, facts, link });
        }
        Ok(interfaces)
    }

    /// Pins an interface's link, so that the program stays from then on.
    pub(super) fn add_interface(
        &self,
        index: u32,
        facts: &Facts,
        link: &Link,
    ) -> Result<(), PinsError> {
        let directory = self.interface(index);
        remove(&directory)?;
        make(&directory)?;
        let path = directory.join(FACTS);
        document::pin(&path, facts).map_err(document_error(&path))?;
        let path = directory.join(LINK);
        link.pin(&path).map_err(path_error(&path))
    }

    /// Removes an interface's link. The program goes with it unless a process has the link open.
    pub(super) fn remove_interface(&self, index: u32) -> Result<(), PinsError> {
        remove(&self.interface(index))
    }

    /// The pinned link to the root cgroup, if there is one.
    pub(super) fn handshakes(&self) -> Result<Option<Link>, PinsError> {
        let path = self.directory.join(HANDSHAKES);
        if !path.try_exists().map_err(path_error(&path))? {
            return Ok(None);
        }
        Link::open(&path).map(Some).map_err(path_error(&path))
    }

    pub(super) fn add_handshakes(&self, link: &Link) -> Result<(), PinsError> {
        let path = self.directory.join(HANDSHAKES);
        link.pin(&path).map_err(path_error(&path))
    }

    pub(super) fn add_handshakes_of(
        &self,
        generation: u64,
        program: &Program,
    ) -> Result<(), PinsError> {
        let path = self.policy(generation).join(HANDSHAKES);
        program.pin(&path).map_err(path_error(&path))
    }

    /// Removes the link to the root cgroup. The program goes with it unless a process has the link
    /// open.
    pub(super) fn remove_handshakes(&self) -> Result<(), PinsError> {
        remove_file(&self.directory.join(HANDSHAKES))
    }

    /// The policies, the oldest first.
    pub(super) fn policies(&self) -> Result<Vec<PinnedPolicy>, PinsError> {
        let directory = self.versioned().join(POLICIES);
        let mut policies = Vec::new();
        for generation in numbers::<u64>(&directory)? {
            let of_policy = directory.join(generation.to_string());
            let path = of_policy.join(MANIFEST);
            if !path.try_exists().map_err(path_error(&path))? {
                // Pinning was interrupted before any program of the policy was used.
                continue;
            }
            let manifest = document::read(&path).map_err(document_error(&path))?;
            let mut programs = BTreeMap::new();
            for index in numbers::<u32>(&of_policy)? {
                let name = index.to_string();
                let (path, stages) = (of_policy.join(&name), of_policy.join(STAGES).join(&name));
                let program = Program::open(&path, &stages).map_err(path_error(&path))?;
                programs.insert(index, program);
            }
            let path = of_policy.join(HANDSHAKES);
            let handshakes = if path.try_exists().map_err(path_error(&path))? {
                let program = Program::open_alone(&path).map_err(path_error(&path))?;
                Some(program)
            } else {
                None
            };
            policies.push(PinnedPolicy {
                manifest,
                programs,
                handshakes,
            });
        }
        Ok(policies)
    }

    pub(super) fn add_policy<'p>(
        &self,
        manifest: &Manifest,
        programs: impl IntoIterator<Item = (u32, &'p Program)>,
        handshakes: Option<&Program>,
    ) -> Result<(), PinsError> {
        let directory = self.policy(manifest.generation);
        remove(&directory)?;
        make(&directory)?;
        for (index, program) in programs {
            self.add_program(manifest.generation, index, program)?;
        }
        if let Some(program) = handshakes {
            self.add_handshakes_of(manifest.generation, program)?;
        }
        // The manifest comes last: a policy with a manifest is complete.
        let path = directory.join(MANIFEST);
        document::pin(&path, manifest).map_err(document_error(&path))
    }

    /// Pins one more program of a policy. Replaces the program of another interface that had the
    /// index before.
    pub(super) fn add_program(
        &self,
        generation: u64,
        index: u32,
        program: &Program,
    ) -> Result<(), PinsError> {
        self.remove_program(generation, index)?;
        let (directory, name) = (self.policy(generation), index.to_string());
        if let Some(stages) = program.stages() {
            // The stages come first, so that a pinned program always has them.
            let directory = directory.join(STAGES);
            make(&directory)?;
            let path = directory.join(&name);
            stages.pin(&path).map_err(path_error(&path))?;
        }
        let path = directory.join(&name);
        program.pin(&path).map_err(path_error(&path))
    }

    /// Removes a program of a policy, if it is pinned.
    pub(super) fn remove_program(&self, generation: u64, index: u32) -> Result<(), PinsError> {
        let (directory, name) = (self.policy(generation), index.to_string());
        [directory.join(&name), directory.join(STAGES).join(&name)]
            .iter()
            .try_for_each(|path| remove_file(path))
    }

    pub(super) fn remove_policy(&self, generation: u64) -> Result<(), PinsError> {
        remove(&self.policy(generation))
    }

    /// Removes all pins; detaches all their programs.
    pub fn remove_all(self) -> Result<(), PinsError> {
        // The links come first, so that their programs are complete to the end.
        let interfaces = self.directory.join(INTERFACES);
        for of_interface in fs::read_dir(&interfaces).into_iter().flatten().flatten() {
            // A link that cannot be opened ends with its pin.
            if let Ok(link) = Link::open(&of_interface.path().join(LINK)) {
                let _ = link.detach();
            }
        }
        if let Ok(Some(link)) = self.handshakes() {
            let _ = link.detach();
        }
        // Wait, so that a packet between two stages is still decided. If memory for the map is
        // short, there is no wait; the packet is then dropped and counted.
        let _ = wait_for_running_programs();
        remove(&interfaces)?;
        remove(&self.directory)
    }

    fn versioned(&self) -> PathBuf {
        self.directory.join(version())
    }

    fn all_shared_maps(&self) -> PathBuf {
        self.versioned().join(SHARED_MAPS)
    }

    fn interface(&self, index: u32) -> PathBuf {
        self.directory.join(INTERFACES).join(index.to_string())
    }

    fn policy(&self, generation: u64) -> PathBuf {
        let policies = self.versioned().join(POLICIES);
        policies.join(generation.to_string())
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // This succeeds only if the directory is empty: a refused start leaves no trace.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// Makes a directory if it is missing, and locks it for this process.
fn lock(directory: &Path) -> Result<File, PinsError> {
    make(directory)?;
    check_owner(directory)?;
    let lock = File::open(directory).map_err(path_error(directory))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(fs::TryLockError::WouldBlock) => Err(PinsError::InUse(directory.into())),
        Err(fs::TryLockError::Error(source)) => Err(path_error(directory)(source)),
    }
}

fn version() -> String {
    format!("v{ABI}")
}
