//! Interfaces as an operator means them: by their names. A program is on an interface and not on a
//! name, so it is looked again and again which interface has which name.
//!
//! The interface that has the name is limited. One that had it before stays limited, whatever it is
//! called and wherever it is, until another has its name: there is no moment without a policy, and
//! never more programs than names.

use super::{Attachment, Datapath, DatapathError, interface::Interface};

/// What the interface of an attachment is called by now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Present {
    /// By the name by which it is meant.
    #[default]
    Named,
    /// By another one.
    Renamed(String),
    /// It is in another network namespace.
    Elsewhere,
}

/// An attachment whose interface has another name, or whose name another interface has, since it was
/// looked at last.
#[derive(Clone, Debug)]
pub struct Noticed {
    /// The name by which the interface is meant.
    pub interface: String,
    /// What it is called by now.
    pub present: Present,
    /// Another interface has the name.
    pub is_replaced: bool,
}

impl Attachment {
    /// Its interface is meant by that name from now on.
    pub(super) fn mean(&mut self, name: String) {
        if self.interface != name {
            self.interface = name;
            self.present = Present::Named;
            self.is_replaced = false;
        }
    }

    pub(super) fn noticed(&self) -> Noticed {
        Noticed {
            interface: self.interface.clone(),
            present: self.present.clone(),
            is_replaced: self.is_replaced,
        }
    }

    /// Takes note of what there is. `names`: those of interfaces that are to be limited.
    fn observe(&mut self, links: &[Interface], names: &[String]) {
        let own = links.iter().find(|link| self.is_on(link));
        if let Some(own) = own.filter(|own| names.contains(&own.name)) {
            self.mean(own.name.clone());
        }
        let mut others = links.iter().filter(|link| !self.is_on(link));
        self.is_replaced = others.any(|link| link.name == self.interface);
        self.present = match own {
            Some(own) if own.name == self.interface => Present::Named,
            Some(own) => Present::Renamed(own.name.clone()),
            None => Present::Elsewhere,
        };
    }
}

impl Datapath {
    /// Takes note of all interfaces that there are; tells of those that have changed.
    pub fn observe(&mut self, links: &[Interface]) -> Vec<Noticed> {
        let mut noticed = Vec::new();
        for attachment in &mut self.attachments {
            // What is elsewhere by all means is not to be looked for here, and what has vanished is
            // told by its link.
            if !attachment.exists() || !attachment.is_here {
                attachment.present = Present::Named;
                attachment.is_replaced = false;
                continue;
            }
            let before = (attachment.present.clone(), attachment.is_replaced);
            attachment.observe(links, &self.manifest.interfaces);
            if before != (attachment.present.clone(), attachment.is_replaced) {
                noticed.push(attachment.noticed());
            }
        }
        noticed
    }

    /// The names of interfaces that are to be limited and are not.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let is_limited = |name: &str| {
            let mut attachments = self.attachments.iter();
            attachments.any(|found| found.interface == name && found.is_attached())
        };
        let names = self.manifest.interfaces.iter();
        names.filter(|name| !is_limited(name)).cloned().collect()
    }

    /// The interfaces that have the program, under the names by which they are meant.
    #[must_use]
    pub fn limited(&self) -> Vec<Interface> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// Those of them that are meant by `names` and are not among the interfaces that were `found` to
    /// have these names: they have other names, or are in another network namespace.
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

    /// Detaches from interfaces whose names others have that are limited; tells from which.
    pub fn detach_replaced(&mut self) -> Result<Vec<Noticed>, DatapathError> {
        let missing = self.missing();
        let is_superfluous =
            |found: &mut Attachment| found.is_replaced && !missing.contains(&found.interface);
        let superfluous: Vec<_> = self.attachments.extract_if(.., is_superfluous).collect();
        let told = superfluous.iter().map(Attachment::noticed).collect();
        self.let_go(superfluous)?;
        Ok(told)
    }
}
