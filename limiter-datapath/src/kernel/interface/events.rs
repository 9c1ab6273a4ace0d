//! Follows the interfaces, as the kernel reports their changes.

use std::{collections::BTreeMap, pin::Pin, time::Duration};

use futures_util::{Stream, StreamExt as _};
use rtnetlink::{
    MulticastGroup,
    packet_core::NetlinkPayload,
    packet_route::{AddressFamily, RouteNetlinkMessage, link::LinkMessage},
};
use tokio::task::JoinHandle;
use tracing::warn;

use super::{Interface, InterfaceError, list};

/// The wait before the next attempt after the kernel refused to report events.
const RETRY: Duration = Duration::from_secs(1);

/// A change of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// The interface was created, or came from another network namespace.
    Appeared(Interface),
    /// The MTU, the position above or below other devices, or the XDP program has changed. The kernel does not report
    /// programs that come and go with a BPF link, as the limiter's do.
    Changed(Interface),
    /// The interface has another name.
    Renamed {
        /// The former name.
        before: String,
        /// The interface now.
        interface: Interface,
    },
    /// The interface was deleted, or went to another network namespace.
    Vanished {
        /// The former index.
        index: u32,
        /// The former name.
        name: String,
    },
    /// The kernel could not report all changes: list all interfaces again.
    Overrun,
}

/// The events of the interfaces in the network namespace of the waiting thread.
///
/// A list of the interfaces made after [`Events::open`] misses no change; changes in between may be reported once more.
pub struct Events(Option<Subscription>);

impl Events {
    /// Has the kernel report events from now on.
    pub async fn open() -> Result<Self, InterfaceError> {
        Ok(Self(Some(Subscription::open().await?)))
    }

    /// Waits for the next event; events come in the order in which they happened. Dropping the wait loses no event.
    pub async fn next(&mut self) -> LinkEvent {
        loop {
            let Some(subscription) = &mut self.0 else {
                match Subscription::open().await {
                    Ok(subscription) => {
                        self.0 = Some(subscription);
                        return LinkEvent::Overrun;
                    }
                    Err(error) => warn!("cannot watch the interfaces, trying again: {error}"),
                }
                tokio::time::sleep(RETRY).await;
                continue;
            };
            match subscription.messages.next().await {
                Some(NetlinkPayload::InnerMessage(message)) => {
                    if let Some(event) = subscription.interfaces.update(&message) {
                        return event;
                    }
                }
                // The known interfaces are outdated, so start over.
                Some(NetlinkPayload::Overrun(_)) | None => self.0 = None,
                Some(_) => {}
            }
        }
    }
}

type Payload = NetlinkPayload<RouteNetlinkMessage>;

/// A socket to which the kernel sends events of interfaces.
struct Subscription {
    messages: Pin<Box<dyn Stream<Item = Payload> + Send>>,
    interfaces: InterfaceTable,
    /// The task that reads the socket.
    connection: JoinHandle<()>,
}

impl Subscription {
    async fn open() -> Result<Self, InterfaceError> {
        let (connection, _, messages) =
            rtnetlink::new_multicast_connection(&[MulticastGroup::Link])
                .map_err(InterfaceError::Netlink)?;
        let mut subscription = Self {
            messages: Box::pin(messages.map(|(message, _)| message.payload)),
            interfaces: InterfaceTable::default(),
            connection: tokio::spawn(connection),
        };
        // List after opening the socket, so that no change in between is missed.
        subscription.interfaces = list().await?.into_iter().collect();
        Ok(subscription)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// The interfaces by index, as the messages so far have left them.
#[derive(Default)]
struct InterfaceTable(BTreeMap<u32, Interface>);

impl FromIterator<Interface> for InterfaceTable {
    fn from_iter<I: IntoIterator<Item = Interface>>(interfaces: I) -> Self {
        let by_index = interfaces.into_iter().map(|mut found| {
            // Messages carry only the interface's own address.
            found.answered.truncate(1);
            (found.index, found)
        });
        Self(by_index.collect())
    }
}

impl InterfaceTable {
    /// Applies a message; returns the change in it.
    fn update(&mut self, message: &RouteNetlinkMessage) -> Option<LinkEvent> {
        match message {
            RouteNetlinkMessage::NewLink(link) if is_of_interface(link) => {
                self.insert(Interface::described_by(link)?)
            }
            RouteNetlinkMessage::DelLink(link) if is_of_interface(link) => {
                let Interface { index, name, .. } = self.0.remove(&link.header.index)?;
                Some(LinkEvent::Vanished { index, name })
            }
            _ => None,
        }
    }

    fn insert(&mut self, interface: Interface) -> Option<LinkEvent> {
        match self.0.insert(interface.index, interface.clone()) {
            None => Some(LinkEvent::Appeared(interface)),
            Some(before) if before.name != interface.name => Some(LinkEvent::Renamed {
                before: before.name,
                interface,
            }),
            Some(before) if before != interface => Some(LinkEvent::Changed(interface)),
            Some(_) => None,
        }
    }
}

/// Whether a message is about an interface itself. A message of an address family is about the interface's part in it:
/// for a port that leaves a bridge the bridge family reports a deletion, although the interface still exists.
fn is_of_interface(link: &LinkMessage) -> bool {
    link.header.interface_family == AddressFamily::Unspec
}

#[cfg(test)]
mod tests {
    use anyhow::{Context as _, Result};
    use testbed::Namespace;
    use tokio::time::timeout;

    use super::*;

    /// Longer than any event takes.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Runs a test in its own namespace, which contains only `lo`.
    fn in_namespace(test: impl AsyncFnOnce(&Namespace) -> Result<()> + Send) -> Result<()> {
        let namespace = Namespace::new()?;
        namespace.enter(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(test(&namespace))
        })
    }

    /// Describes the next event.
    async fn next(events: &mut Events) -> Result<String> {
        let event = timeout(PATIENCE, events.next()).await;
        Ok(match event.context("no event")? {
            LinkEvent::Appeared(interface) => format!("{} appeared", interface.name),
            LinkEvent::Changed(Interface { name, mtu, .. }) => format!("{name} has MTU {mtu}"),
            LinkEvent::Renamed { before, interface } => {
                format!("{before} became {}", interface.name)
            }
            LinkEvent::Vanished { name, .. } => format!("{name} vanished"),
            LinkEvent::Overrun => "overrun".to_owned(),
        })
    }

    #[test]
    fn events_come_in_order() -> Result<()> {
        in_namespace(async |namespace| {
            let mut events = Events::open().await?;
            // All of it happens before the first event is read.
            namespace.ip_batch(
                "link add a0 type veth peer name b0\n\
                 link set a0 up\n\
                 link set a0 mtu 1400\n\
                 link set b0 name c0\n\
                 link delete a0\n",
            )?;
            for expected in [
                // The kernel makes the peer first.
                "b0 appeared",
                "a0 appeared",
                "a0 has MTU 1400",
                "b0 became c0",
            ] {
                assert_eq!(next(&mut events).await?, expected);
            }
            let mut vanished = [next(&mut events).await?, next(&mut events).await?];
            vanished.sort_unstable();
            assert_eq!(vanished, ["a0 vanished", "c0 vanished"]);
            Ok(())
        })
    }
    #[test]
    fn a_port_that_leaves_its_bridge_is_still_there() -> Result<()> {
        in_namespace(async |namespace| {
            namespace.ip_batch(
                "link add bridge0 type bridge\nlink add port0 type veth peer name far0\n",
            )?;
            let mut events = Events::open().await?;
            namespace.ip_batch(
                "link set port0 master bridge0\n\
                 link set port0 nomaster\n\
                 link set port0 mtu 1300\n",
            )?;
            for (change, mtu) in [("joins", 1500), ("leaves", 1500), ("is a device", 1300)] {
                let expected = format!("port0 has MTU {mtu}");
                // The bridge takes its port's address, and gives it back.
                let mut event = next(&mut events).await?;
                while event.starts_with("bridge0 has") {
                    event = next(&mut events).await?;
                }
                assert_eq!(event, expected, "{change}");
            }
            Ok(())
        })
    }

    #[test]
    fn after_an_overrun_everything_is_known_again() -> Result<()> {
        in_namespace(async |namespace| {
            let mut events = Events::open().await?;
            // Far more messages than fit the socket's buffer, which is not read meanwhile.
            let flaps = (0..1000).map(|flap| format!("link set lo mtu {}\n", 2000 + flap));
            namespace.ip_batch(&flaps.collect::<String>())?;
            namespace.ip(&["link", "add", "late0", "type", "bridge"])?;
            assert_eq!(next(&mut events).await?, "overrun");
            namespace.ip(&["link", "delete", "late0"])?;
            assert_eq!(next(&mut events).await?, "late0 vanished");
            Ok(())
        })
    }

    #[test]
    fn those_that_are_there_now() -> Result<()> {
        in_namespace(async |namespace| {
            namespace.ip(&["link", "add", "one0", "mtu", "1234", "type", "bridge"])?;
            let all = list().await?;
            let names: Vec<_> = all.iter().map(|found| found.name.as_str()).collect();
            assert_eq!(names, ["lo", "one0"]);
            assert_eq!(all[1].mtu, 1234);
            Ok(())
        })
    }
}
