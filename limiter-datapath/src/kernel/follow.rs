//! Follows interfaces as an operator means them: by name. A program is on an interface and not on a
//! name, so the daemon keeps checking which interface has which name.
//!
//! The interface that has the name is limited. One that had it before stays limited, whatever its
//! name and wherever it is, until another has its name. So there is no moment without a policy, and
//! there are never more programs than names.

use super::{Attachment, Datapath, DatapathError, attach::Present, interface::Interface};

/// An attachment whose interface has changed its name, or whose name has gone to another interface,
/// since the last observation.
#[derive(Clone, Debug)]
pub struct NameChange {
    /// The name by which the interface is meant.
    pub interface: String,
    /// Where and under what name it is now.
    pub present: Present,
    /// Another interface has the name.
    pub is_replaced: bool,
}

impl Attachment {
    /// Sets the name by which its interface is meant.
    pub(super) fn set_interface(&mut self, name: String) {
        if self.interface != name {
            self.interface = name;
            self.present = Present::Named;
            self.is_replaced = false;
        }
    }

    pub(super) fn name_change(&self) -> NameChange {
        NameChange {
            interface: self.interface.clone(),
            present: self.present.clone(),
            is_replaced: self.is_replaced,
        }
    }

    /// Compares it with the interfaces that exist. `names`: the interfaces that are to be limited.
    fn observe(&mut self, links: &[Interface], names: &[String]) {
        let own = links.iter().find(|link| self.is_on(link));
        let meant = own.and_then(|own| names.iter().find(|name| own.is_called(name)));
        if let Some(name) = meant {
            self.set_interface(name.clone());
        }
        let mut others = links.iter().filter(|link| !self.is_on(link));
        self.is_replaced = others.any(|link| link.is_called(&self.interface));
        self.present = match own {
            Some(own) if own.is_called(&self.interface) => Present::Named,
            Some(own) => Present::Renamed(own.name.clone()),
            None => Present::Elsewhere,
        };
    }
}

impl Datapath {
    /// Compares the attachments with all interfaces that exist; returns those that have changed.
    pub fn observe(&mut self, links: &[Interface]) -> Vec<NameChange> {
        let mut name_changes = Vec::new();
        for attachment in &mut self.attachments {
            // An attachment of another namespace is not among these links; the link itself tells
            // whether its interface has vanished.
            if !attachment.exists() || !attachment.is_here {
                attachment.present = Present::Named;
                attachment.is_replaced = false;
                continue;
            }
            let before = (attachment.present.clone(), attachment.is_replaced);
            attachment.observe(links, &self.manifest.interfaces);
            if before != (attachment.present.clone(), attachment.is_replaced) {
                name_changes.push(attachment.name_change());
            }
        }
        name_changes
    }

    /// Returns the names of interfaces that should be limited and are not.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let is_limited = |name: &str| {
            let mut attachments = self.attachments.iter();
            attachments.any(|found| found.interface == name && found.is_attached())
        };
        let names = self.manifest.interfaces.iter();
        names.filter(|name| !is_limited(name)).cloned().collect()
    }

    /// Returns the interfaces that have the program, under the names by which they are meant.
    #[must_use]
    pub fn limited(&self) -> Vec<Interface> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// Returns the limited interfaces that `names` mean and `found` lacks under these names: they
    /// have other names, or are in another network namespace.
    #[must_use]
    pub fn limited_elsewhere(&self, names: &[String], found: &[Interface]) -> Vec<Interface> {
        let is_elsewhere = |attachment: &&Attachment| {
            let mut found = found.iter();
            names.contains(&attachment.interface)
                && found.all(|found| found.name != attachment.interface && !attachment.is_on(found))
        };
        let attachments = self.attachments.iter().filter(is_elsewhere);
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// Detaches from interfaces whose names have gone to other, limited interfaces; returns those
    /// detached.
    pub fn detach_replaced(&mut self) -> Result<Vec<NameChange>, DatapathError> {
        let missing = self.missing();
        let is_superfluous =
            |found: &mut Attachment| found.is_replaced && !missing.contains(&found.interface);
        let superfluous: Vec<_> = self.attachments.extract_if(.., is_superfluous).collect();
        let told = superfluous.iter().map(Attachment::name_change).collect();
        self.let_go(superfluous)?;
        Ok(told)
    }
}
