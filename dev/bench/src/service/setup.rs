//! The setup in which a server is measured: two namespaces. One CPU has the flood and the clients, another one the
//! server and its network stack.

use std::{collections::HashSet, fs, net::Ipv4Addr, path::PathBuf};

use anyhow::{Context as _, Result, ensure};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, CpuSet, sched_setaffinity, unshare},
    unistd::Pid,
};
use testbed::{CLIENT_INTERFACE, Namespace, Pair, SERVER_INTERFACE};

use super::processes;
use crate::{
    cpu,
    scenario::{SERVER_V4, SERVER_V6},
    tool,
};

/// The CPU of the flood and the clients.
pub(super) const CLIENTS_CPU: usize = 0;

/// The CPU of the server, and of the kernel thread that receives for it.
pub(super) const SERVER_CPU: usize = 1;

/// Makes the server's interface gather packets for 50 µs before it wakes the receiving thread, as network cards do, and
/// then poll for as long as it finds some.
const MODERATION: [(&str, &str); 2] = [
    ("napi_defer_hard_irqs", "1"),
    ("gro_flush_timeout", "50000"),
];

/// The clients' router, as the server sees it.
const ROUTER_V4: [u8; 4] = [198, 18, 0, 2];
const ROUTER_V6: &str = "fd88::2";

/// Fails if the machine is too small.
pub(super) fn check() -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    ensure!(
        cpus > SERVER_CPU,
        "the service takes two CPUs, one of them for the flood, and this machine has {cpus}"
    );
    Ok(())
}

/// Makes the namespaces. The server's packets to clients arrive there; its packets to forged addresses are dropped when
/// they leave, as behind a network card.
pub(super) fn new_pair() -> Result<Pair> {
    let router = [
        format!("{}/32", Ipv4Addr::from(ROUTER_V4)).parse()?,
        format!("{ROUTER_V6}/128").parse()?,
    ];
    let server = [
        format!("{}/32", Ipv4Addr::from(SERVER_V4)).parse()?,
        format!("{SERVER_V6}/128").parse()?,
    ];
    let pair = Pair::new(&router, &server)?;
    // Otherwise a veth end without an XDP program receives packets of sockets outside its ring, on the sender's CPU:
    // the flood would cost the clients nothing. With a program this is off anyway.
    tool::run(
        &pair.client,
        &["ethtool", "-K", CLIENT_INTERFACE, "tso", "off"],
        "",
    )?;
    let router_v4 = Ipv4Addr::from(ROUTER_V4);
    // A veth end drops all packets while the other end is down.
    pair.server.ip_batch(&format!(
        "link add nowhere0 type veth peer name nowhere1\n\
         link set nowhere0 arp off addrgenmode none up\n\
         neighbour replace 198.18.0.3 lladdr 02:00:00:00:00:03 dev nowhere0 nud permanent\n\
         neighbour replace fd88::3 lladdr 02:00:00:00:00:03 dev nowhere0 nud permanent\n\
         route add default via 198.18.0.3 dev nowhere0 onlink\n\
         route add default via fd88::3 dev nowhere0 onlink\n\
         route add 100.64.0.0/10 via {router_v4} dev {SERVER_INTERFACE} onlink\n\
         route add 2001:db8::/32 via {ROUTER_V6} dev {SERVER_INTERFACE} onlink\n"
    ))?;
    // All addresses of the clients' networks are local to the client.
    pair.client
        .ip_batch("route add local 100.64.0.0/10 dev lo\nroute add local 2001:db8::/32 dev lo\n")?;
    set(&pair.client, "net/ipv6/ip_nonlocal_bind", "1")?;
    // A SYN is repeated after 1 s, then after 2 more, as on most systems and on kernels before 6.5.
    set_if_known(&pair.client, "net/ipv4/tcp_syn_linear_timeouts", "0")?;
    // Responses are received on the clients' CPU, though the server's CPU sends them.
    let mask = 1 << CLIENTS_CPU;
    write_sys(
        &pair.client,
        &format!("{CLIENT_INTERFACE}/queues/rx-0/rps_cpus"),
        &mask.to_string(),
    )?;
    Ok(pair)
}

/// Makes the server's interface receive on a kernel thread, on the server's CPU; returns the thread's id. A program or
/// GRO must already be active on the interface.
pub(super) fn receive_on_thread(pair: &Pair) -> Result<i32> {
    thread_of(&pair.server, SERVER_INTERFACE, SERVER_CPU)
}

/// Makes the clients' interface receive on a kernel thread, on the clients' CPU; returns the thread's id. A program
/// must already be active there: otherwise packets sent back by the server's program would be received on the server's
/// CPU.
pub(super) fn receive_answers_on_thread(pair: &Pair) -> Result<i32> {
    thread_of(&pair.client, CLIENT_INTERFACE, CLIENTS_CPU)
}

/// Makes an interface receive on a kernel thread, on this CPU; returns the thread's id.
fn thread_of(namespace: &Namespace, interface: &str, cpu: usize) -> Result<i32> {
    let before = receivers(interface)?;
    for (setting, value) in MODERATION {
        write_sys(namespace, &format!("{interface}/{setting}"), value)?;
    }
    write_sys(namespace, &format!("{interface}/threaded"), "1")?;
    let new: Vec<_> = receivers(interface)?.difference(&before).copied().collect();
    let [thread] = new[..] else {
        anyhow::bail!(
            "expected one receiving thread of {interface}, found {}",
            new.len()
        );
    };
    let mut set = CpuSet::new();
    set.set(cpu)?;
    sched_setaffinity(Pid::from_raw(thread), &set)
        .with_context(|| format!("cannot keep thread {thread} on CPU {cpu}"))?;
    cpu::come_first(thread)?;
    Ok(thread)
}

/// Returns the ids of the kernel threads that receive for interfaces of this name.
fn receivers(interface: &str) -> Result<HashSet<i32>> {
    let start = format!("napi/{interface}");
    let receives = |process: &i32| {
        fs::read_to_string(format!("/proc/{process}/comm"))
            .is_ok_and(|name| name.starts_with(&start))
    };
    Ok(processes::ids()?.filter(receives).collect())
}

/// Writes a setting of the network stack.
pub(super) fn set(namespace: &Namespace, setting: &str, value: &str) -> Result<()> {
    namespace.enter(|| {
        let path = PathBuf::from("/proc/sys").join(setting);
        fs::write(&path, value).with_context(|| format!("cannot set {} to {value}", path.display()))
    })
}

/// Writes a setting that only newer kernels have.
fn set_if_known(namespace: &Namespace, setting: &str, value: &str) -> Result<()> {
    if PathBuf::from("/proc/sys").join(setting).exists() {
        set(namespace, setting, value)?;
    }
    Ok(())
}

/// Writes a file of an interface below /sys. The mounted sysfs shows another namespace's interfaces, so the right one
/// is mounted meanwhile, for this thread alone.
fn write_sys(namespace: &Namespace, file: &str, value: &str) -> Result<()> {
    namespace.enter(|| {
        unshare(CloneFlags::CLONE_NEWNS).context("cannot make a mount namespace")?;
        let none = None::<&str>;
        mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
            .context("cannot keep mounts private")?;
        mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), none)
            .context("cannot mount sysfs")?;
        let path = PathBuf::from("/sys/class/net").join(file);
        fs::write(&path, value).with_context(|| format!("cannot set {} to {value}", path.display()))
    })
}
