//! From the command line's options to an enforcing daemon. Every step that may be refused comes before the first
//! interface is touched, so that a failure leaves nothing behind.

use std::{fs::DirBuilder, io, mem, os::unix::fs::DirBuilderExt as _, path::Path, sync::Arc};

use limiter_datapath::kernel::{Attachment, DatapathError, LogLevel, Settings, preflight};
use limiter_policy::{
    config::{ListenAddress, Page, folder_of},
    file,
    lists::Feeds,
    policy::CompileError,
};
use limiter_protocol::{
    PageStatus,
    control::server::{ReservedSocket, Server},
    web::{Listener, Servers},
};
use tracing::{info, warn};

use super::{
    automatic_rates,
    candidate::{Candidate, CandidateError, Inheritance, LoadedConfig},
    confirm::{self, Confirmation},
    enforce::put_in_force,
    enforcement::Enforcement,
    error::StartupError,
    feeds::FeedUpdater,
    fleet::{self, Fleet, KeyFile},
    options::Options,
    own_addresses::OwnAddressUpdater,
    requests::{RequestQueue, Requests},
    server_names,
    servers::serve,
    shared::{Daemon, ReadAccess},
    shared_datapath::SharedDatapath,
    sieves,
    starting_point::StartingPoint,
    state::{ResumeState, StateSaver},
    view::view,
    watch::files::FileWatch,
    worker::Worker,
};

/// The mode of a new folder beside the configuration.
const FOLDER_MODE: u32 = 0o755;

/// Everything that runs.
pub(super) struct Components {
    /// First, so that the threads end and release the daemon before the control socket goes.
    _threads: Vec<Worker>,
    pub(super) daemon: Arc<Daemon>,
    pub(super) control: Server,
    pub(super) requests: RequestQueue,
    /// The configuration's files.
    pub(super) files: FileWatch,
    /// The files of its lists.
    pub(super) feeds: FeedUpdater,
    pub(super) own_addresses: OwnAddressUpdater,
}

pub(super) async fn start(options: Options, servers: Servers) -> Result<Components, StartupError> {
    preflight::check()?;
    // Before anything else is touched, so that a refused daemon sets no state file aside either.
    let socket = ReservedSocket::take(&options.socket).await?;
    let starting_point = match &options.pin {
        Some(directory) => StartingPoint::take_over(directory)?,
        None => StartingPoint::Nothing,
    };
    // Before the configuration is read, so that no change is missed.
    let config = Some(options.config.clone()).filter(|path| !file::is_descriptor(path));
    let mut files = FileWatch::new(config.into_iter());
    let InitialState {
        read,
        state,
        resumed,
    } = InitialState::read(
        &options,
        starting_point.inherited(),
        &starting_point.feeds(),
    )?;
    files.replace(read.files().iter().cloned());
    let interfaces = read.interface_names(&options)?;
    let mut candidate = read
        .check(interfaces, &starting_point.program_ids())
        .await?;
    if !options.interfaces.is_empty() && starting_point.inherited().is_none() {
        // A daemon that takes over a pinned policy was started before, with correct names.
        candidate.all_there()?;
    }
    let group = candidate.config.control.group.clone();
    let control = socket.listen(group.as_deref())?;
    let listener = match options.metrics.unwrap_or(candidate.config.metrics.listen) {
        None => None,
        Some(address) => {
            let bound = (servers.metrics)(address, &candidate.config.metrics.hosts);
            Some(bound.map_err(|source| StartupError::Metrics { address, source })?)
        }
    };
    let page = bind_page(servers, &candidate.config.page, group.as_deref())?;

    let settings = || {
        let config = &candidate.config;
        let settings = Settings::new(config.buckets, config.offenders, LogLevel::Off)?;
        Ok::<_, DatapathError>(match &resumed {
            Some(resumed) => resumed.settings(settings),
            None => settings,
        })
    };
    let datapath = starting_point.into_datapath(resumed.is_some(), settings)?;
    let (reloads, requests) = Requests::new();
    let (metrics, listener) = listener.unzip();
    let (page, page_listener) = page.unzip();
    let read_access = ReadAccess {
        metrics,
        metrics_hosts: candidate.config.metrics.hosts.clone(),
        page: page.map(|listen| PageStatus {
            listen,
            hosts: candidate.config.page.hosts.clone(),
        }),
        group,
    };
    let fleet = read_fleet(&candidate)?;
    let enforcement = Enforcement::new(options, reloads, datapath);
    let daemon = Arc::new(Daemon::new(enforcement, read_access, state, fleet));
    let enforcement = &daemon.enforcement;
    let (feeds, begun_at) = (mem::take(&mut candidate.feeds), candidate.begun_at);
    let mut threads = start_threads(&daemon).map_err(StartupError::Thread)?;
    let confirmation = Confirmation::of(&enforcement.options);
    put_in_force(enforcement, candidate, resumed, confirmation).await?;
    // Only now, as the earlier bans are restored.
    if let Some(fleet) = &daemon.fleet {
        if fleet.settings.accept_policy.is_some() {
            make_folder(&enforcement.options.config, &mut files);
        }
        let bans = (Arc::clone(&daemon.bans), Arc::clone(&daemon.guard));
        threads.push(fleet::start(enforcement, bans, fleet).map_err(StartupError::Thread)?);
        let leases = fleet::start_leases(
            Arc::clone(&enforcement.datapath),
            Arc::clone(&enforcement.watchdog),
            Arc::clone(fleet),
        );
        threads.push(leases.map_err(StartupError::Thread)?);
    }
    let own_addresses = OwnAddressUpdater::start(&enforcement.datapath, &daemon.no_answers).await;
    let view = Arc::new(view(&daemon));
    let watchdog = &enforcement.watchdog;
    if let Some(listener) = listener {
        let serving = serve(listener, &view, watchdog, "metrics", |all| &all.metrics);
        threads.push(serving.map_err(StartupError::Thread)?);
    }
    if let Some(listener) = page_listener {
        let serving = serve(listener, &view, watchdog, "page", |all| &all.page);
        threads.push(serving.map_err(StartupError::Thread)?);
    }
    log_attached(&daemon);
    Ok(Components {
        feeds: FeedUpdater::new(enforcement, feeds, begun_at),
        control,
        requests,
        files,
        own_addresses,
        _threads: threads,
        daemon,
    })
}

/// Binds the page's port or socket; `None`: there is no page.
fn bind_page(
    servers: Servers,
    page: &Page,
    group: Option<&str>,
) -> Result<Option<(ListenAddress, Listener)>, StartupError> {
    let Some(address) = &page.listen else {
        return Ok(None);
    };
    let bound = (servers.page)(address, &page.hosts, group);
    bound.map(Some).map_err(|source| StartupError::Page {
        address: address.clone(),
        source,
    })
}

/// Returns the daemon's part in a fleet; `None`: it is alone.
fn read_fleet(candidate: &Candidate) -> Result<Option<Arc<Fleet>>, StartupError> {
    let Some(settings) = candidate.config.fleet.clone() else {
        return Ok(None);
    };
    // They may have changed since the configuration was checked.
    let keys = KeyFile::read(&settings.key_file).map_err(|source| StartupError::FleetKeys {
        file: settings.key_file.clone(),
        source,
    })?;
    Ok(Some(Arc::new(Fleet::new(settings, keys))))
}

/// Makes the folder beside the configuration, where policies of the fleet are written, if it is missing.
fn make_folder(config: &Path, files: &mut FileWatch) {
    if file::is_descriptor(config) {
        return;
    }
    let folder = folder_of(config);
    match DirBuilder::new().mode(FOLDER_MODE).create(&folder) {
        // It is empty, so there is nothing to reload.
        Ok(()) => files.mark_seen_at(&folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => warn!(
            "no policies are taken from the fleet: the folder '{}' cannot be made: {error}",
            folder.display()
        ),
    }
}

/// Starts the threads beside the main one, except the HTTP servers.
fn start_threads(daemon: &Arc<Daemon>) -> io::Result<Vec<Worker>> {
    let SharedDatapath {
        pressures, naming, ..
    } = &*daemon.enforcement.datapath;
    let watchdog = &daemon.enforcement.watchdog;
    let pressure = sieves::start(pressures, watchdog)?;
    // For the policy that was found pinned, until the configuration is in force.
    pressures.follow(&daemon.datapath());
    let names = server_names::start(naming, watchdog)?;
    naming.follow(&daemon.datapath());
    let confirmation = confirm::start(&daemon.enforcement)?;
    let capacity = automatic_rates::start(
        Arc::clone(&daemon.enforcement.datapath),
        Arc::clone(&daemon.capacity),
        Arc::clone(watchdog),
    )?;
    Ok(vec![pressure, names, confirmation, capacity])
}

/// The first configuration and the state to continue from.
struct InitialState {
    read: LoadedConfig,
    state: Option<StateSaver>,
    resumed: Option<ResumeState>,
}

impl InitialState {
    /// Reads the configuration, to continue from the `pinned` policy, or else from the state file that it names. A
    /// refused feed keeps its pinned content.
    fn read(
        options: &Options,
        pinned: Option<Inheritance>,
        feeds: &Feeds,
    ) -> Result<Self, CandidateError> {
        let mut state = None;
        let mut resumed = None;
        let read = LoadedConfig::load(&options.config, feeds, None, |config| {
            state = config.state.clone().map(StateSaver::new);
            if let Some(pinned) = pinned {
                state
                    .as_ref()
                    .inspect(|state| ResumeState::pass_over(state));
                return pinned;
            }
            resumed = state.as_ref().and_then(ResumeState::load);
            resumed
                .as_ref()
                .map(ResumeState::inherited)
                .unwrap_or_default()
        });
        let read = match (read, &state) {
            (Err(CandidateError::Compile(CompileError::TooManyUnits(error))), Some(state))
                if resumed.is_some() =>
            {
                resumed = None;
                ResumeState::refuse(state, error.into());
                LoadedConfig::load(&options.config, feeds, None, |_| Inheritance::default())?
            }
            (read, _) => read?,
        };
        Ok(Self {
            read,
            state,
            resumed,
        })
    }
}

fn log_attached(daemon: &Daemon) {
    let datapath = daemon.datapath();
    let policy = &datapath.manifest().policy;
    // The log has named the missing interfaces.
    let begun = if datapath.attachments().iter().any(Attachment::is_attached) {
        "enforcing the policy"
    } else {
        "the policy is ready, but attached to no interface yet"
    };
    info!(
        "{begun} (limits: {}, overrides: {}); control socket {}{}{}{}",
        policy.limits.len(),
        policy.override_count(),
        daemon.enforcement.options.socket.display(),
        (daemon.read_access.metrics).map_or_else(String::new, |address| {
            format!("; metrics on http://{address}/metrics")
        }),
        (daemon.read_access.page.as_ref()).map_or_else(String::new, |page| {
            match &page.listen {
                ListenAddress::Address(address) => format!("; page on http://{address}/"),
                ListenAddress::Socket(path) => format!("; page at the socket {}", path.display()),
            }
        }),
        datapath.pins().map_or_else(String::new, |pins| {
            format!("; pinned in {}", pins.directory().display())
        }),
    );
}
