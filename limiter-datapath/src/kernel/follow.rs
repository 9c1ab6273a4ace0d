//! Follows interfaces by the names that the operator gave. A program is on an interface and not on a name, so
//! the daemon keeps checking which interface has which name.
//!
//! The interface with the name is limited. If the name goes away, the former interface stays limited, under
//! any name and in any namespace, until another interface takes the name. So there is no moment without a
//! policy, and there are never more programs than names.
//!
//! An interface that only a pattern selects is limited under its own name, as long as it is here and selected.

use limiter_policy::interface::{InterfaceName, is_named, names};

use super::{
    Attachment, Datapath, DatapathError,
    attach::{InterfacePresence, facts_of},
    interface::Interface,
};

/// An attachment with a changed interface or name since the last observation: the interface has another
/// name, or the name belongs to another interface.
#[derive(Clone, Debug)]
pub struct NameChange {
    /// The interface's name, as the operator wrote it.
    pub interface: String,
    /// The location and the name of the interface now.
    pub present: InterfacePresence,
    /// Whether another interface has the name.
    pub is_replaced: bool,
}

impl Attachment {
    /// Sets the name that the operator means the interface by.
    pub(super) fn set_interface(&mut self, name: String) {
        if self.interface != name {
            self.interface = name;
            self.present = InterfacePresence::Named;
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

    /// Compares the attachment with the existing interfaces. `names`: the interfaces to be limited.
    fn observe(&mut self, links: &[Interface], names: &[InterfaceName]) {
        let own = links.iter().find(|link| self.is_on(link));
        if let (Some(program), Ok(info)) = (&mut self.program, self.link.info()) {
            // The interface may have moved, or its MTU or address changed. If memory for the order is short, the
            // program keeps the old facts.
            let _ = program.follow(info.interface);
            if let Some(own) = own {
                let _ = program.write_facts(facts_of(own, self.interface_number, self.mode));
            }
        }
        if let Some(name) = own.and_then(|own| own.meant_name(names)) {
            self.set_interface(name);
        }
        let mut others = links.iter().filter(|link| !self.is_on(link));
        self.is_replaced = others.any(|link| link.is_called(&self.interface));
        self.present = match own {
            Some(own) if own.is_called(&self.interface) => InterfacePresence::Named,
            Some(own) => InterfacePresence::Renamed(own.name.clone()),
            None => InterfacePresence::Elsewhere,
        };
    }
}

impl Datapath {
    /// Compares the attachments with all existing interfaces; returns the changed ones.
    pub fn observe(&mut self, links: &[Interface]) -> Vec<NameChange> {
        let mut name_changes = Vec::new();
        for attachment in &mut self.attachments {
            // `links` lacks interfaces of other namespaces; the link itself tells whether its interface has
            // vanished.
            if !attachment.exists() || !attachment.is_here {
                attachment.present = InterfacePresence::Named;
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

    /// The names of interfaces that should be limited and are not, including interfaces that do not exist.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let is_limited = |name: &str| {
            let mut attachments = self.attachments.iter();
            attachments.any(|found| found.interface == name && found.is_attached())
        };
        let names = names(&self.manifest.interfaces);
        names.filter(|name| !is_limited(name)).collect()
    }

    /// The interfaces among `links` that should be limited and are not, under the operator's names. Interfaces
    /// selected only by patterns come last, the oldest first.
    #[must_use]
    pub fn unlimited(&self, links: &[Interface]) -> Vec<Interface> {
        let under = |name: String, link: &Interface| Interface {
            name,
            ..link.clone()
        };
        let missing = self.missing().into_iter().filter_map(|name| {
            let link = links.iter().find(|link| link.is_called(name))?;
            Some(under(name.to_owned(), link))
        });
        let names = &self.manifest.interfaces;
        let is_limited = |link: &Interface| self.attachments.iter().any(|found| found.is_on(link));
        let selected = links.iter().filter_map(|link| {
            let name = link
                .meant_name(names)
                .filter(|name| !is_named(names, name))?;
            (!is_limited(link)).then(|| under(name, link))
        });
        let mut selected: Vec<_> = selected.collect();
        selected.sort_by_key(|link| link.index);
        missing.chain(selected).collect()
    }

    /// Detaches from interfaces that no pattern selects any more: they have vanished, moved to another
    /// namespace, or have other names. Returns the detached ones. `links`: the existing interfaces.
    pub fn detach_unselected(
        &mut self,
        links: &[Interface],
    ) -> Result<Vec<NameChange>, DatapathError> {
        let Self {
            manifest,
            attachments,
            ..
        } = self;
        let is_unselected = |found: &mut Attachment| {
            let mut links = links.iter();
            let own = links.find(|link| found.is_on(link));
            !manifest.names(&found.interface)
                && !own.is_some_and(|own| own.is_meant_by(&manifest.interfaces))
        };
        let unselected: Vec<_> = attachments.extract_if(.., is_unselected).collect();
        let numbers = unselected.iter().map(|found| found.interface_number);
        let numbers: Vec<_> = numbers.collect();
        let names = &mut manifest.interface_numbers;
        names.retain(|_, number| !numbers.contains(number));
        let reported = unselected.iter().map(Attachment::name_change).collect();
        self.let_go(unselected)?;
        Ok(reported)
    }

    /// Frees the numbers of interfaces that patterns select but that could not be attached to.
    pub fn forget_unattached(&mut self) -> Result<(), DatapathError> {
        let Self {
            manifest,
            attachments,
            ..
        } = self;
        let interfaces = &manifest.interfaces;
        let is_of_none = |name: &String, _: &mut u32| {
            let mut attachments = attachments.iter();
            !is_named(interfaces, name) && attachments.all(|found| found.interface != *name)
        };
        let numbers = manifest.interface_numbers.extract_if(.., is_of_none);
        let numbers: Vec<_> = numbers.map(|(_, number)| number).collect();
        self.forget_interfaces(numbers)
    }

    /// The interfaces with the program, under the operator's names.
    #[must_use]
    pub fn limited(&self) -> Vec<Interface> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// The limited interfaces that `names` mean and that `found` lacks under these names: they have other
    /// names, or are in another network namespace.
    #[must_use]
    pub fn limited_elsewhere(
        &self,
        names: &[InterfaceName],
        found: &[Interface],
    ) -> Vec<Interface> {
        let is_elsewhere = |attachment: &&Attachment| {
            let mut found = found.iter();
            is_named(names, &attachment.interface)
                && found.all(|found| found.name != attachment.interface && !attachment.is_on(found))
        };
        let attachments = self.attachments.iter().filter(is_elsewhere);
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// Detaches from interfaces if their names now belong to other, limited interfaces; returns the
    /// detached ones.
    pub fn detach_replaced(&mut self) -> Result<Vec<NameChange>, DatapathError> {
        let missing = self.missing().into_iter().map(str::to_owned);
        let missing: Vec<_> = missing.collect();
        let is_superfluous =
            |found: &mut Attachment| found.is_replaced && !missing.contains(&found.interface);
        let superfluous: Vec<_> = self.attachments.extract_if(.., is_superfluous).collect();
        let reported = superfluous.iter().map(Attachment::name_change).collect();
        self.let_go(superfluous)?;
        Ok(reported)
    }
}
