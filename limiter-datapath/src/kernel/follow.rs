//! Follows interfaces as an operator means them: by name. A program is on an interface and not on a
//! name, so the daemon keeps checking which interface has which name.
//!
//! The interface that has the name is limited. One that had it before stays limited, whatever its
//! name and wherever it is, until another has its name. So there is no moment without a policy, and
//! there are never more programs than names.
//!
//! One that only a pattern selects is limited under its own name, as long as it is here and selected.

use limiter_policy::interface::{InterfaceName, is_named, names};

use super::{
    Attachment, Datapath, DatapathError,
    attach::{Present, known_of},
    interface::Interface,
};

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
    fn observe(&mut self, links: &[Interface], names: &[InterfaceName]) {
        let own = links.iter().find(|link| self.is_on(link));
        if let (Some(own), Some(program)) = (own, &mut self.program) {
            // Its MTU or its address may have changed. Without memory for the order the program goes on with
            // the former ones.
            let _ = program.tell(known_of(own, self.mode));
        }
        if let Some(name) = own.and_then(|own| own.meant_name(names)) {
            self.set_interface(name);
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

    /// Returns the names of interfaces that should be limited and are not, whether or not they exist.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let is_limited = |name: &str| {
            let mut attachments = self.attachments.iter();
            attachments.any(|found| found.interface == name && found.is_attached())
        };
        let names = names(&self.manifest.interfaces);
        names.filter(|name| !is_limited(name)).collect()
    }

    /// Returns the interfaces among `links` that should be limited and are not, under the names by which they
    /// are meant; those that only patterns select come last, the oldest first.
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

    /// Detaches from interfaces that patterns selected and none selects any more, since they have vanished, or
    /// have gone elsewhere, or have other names; returns those detached. `links`: the interfaces that exist.
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
        let told = unselected.iter().map(Attachment::name_change).collect();
        self.let_go(unselected)?;
        Ok(told)
    }

    /// Gives up the numbers of interfaces that patterns select, but that could not be attached to.
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

    /// Returns the interfaces that have the program, under the names by which they are meant.
    #[must_use]
    pub fn limited(&self) -> Vec<Interface> {
        let attachments = self.attachments.iter();
        attachments.filter_map(Attachment::as_interface).collect()
    }

    /// Returns the limited interfaces that `names` mean and `found` lacks under these names: they
    /// have other names, or are in another network namespace.
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

    /// Detaches from interfaces whose names have gone to other, limited interfaces; returns those
    /// detached.
    pub fn detach_replaced(&mut self) -> Result<Vec<NameChange>, DatapathError> {
        let missing = self.missing().into_iter().map(str::to_owned);
        let missing: Vec<_> = missing.collect();
        let is_superfluous =
            |found: &mut Attachment| found.is_replaced && !missing.contains(&found.interface);
        let superfluous: Vec<_> = self.attachments.extract_if(.., is_superfluous).collect();
        let told = superfluous.iter().map(Attachment::name_change).collect();
        self.let_go(superfluous)?;
        Ok(told)
    }
}
