//! The kernel program that changes the record of a source for userspace, and its orders.

use std::sync::{Mutex, PoisonError};

use aya::EbpfLoader;
use limiter_common::{
    policy::Features,
    standing::{Event, EventOrder, Settings, SourceId, Standing},
};

use super::StandingMaps;
use crate::kernel::{
    DatapathError,
    map_directory::{MapDirectory, reuse_maps},
    object::{OBJECT, PROGRAM_CHANGE_SOURCE},
    pod::InMap,
    program::Program,
    stages,
    verify::verify,
};

/// The program, loaded for the first order under the settings of a policy: most daemons never give
/// an order.
#[derive(Debug, Default)]
pub(super) struct Orders(Mutex<Option<(Settings, Program)>>);

impl StandingMaps {
    /// Has the kernel record an event of a source at the time `now_ns` of its clock. The change is
    /// atomic, even if this process is killed. Returns the source's standing afterwards, even if
    /// there is no room for the source. `features`: the features of the policy in force.
    ///
    /// # Errors
    ///
    /// The kernel's errors, and [`DatapathError::NoStanding`] if the policy uses no standing.
    pub fn record_event(
        &self,
        features: &Features,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Result<Standing, DatapathError> {
        if !features.uses_standing() {
            return Err(DatapathError::NoStanding);
        }
        let mut loaded = self.orders.0.lock().unwrap_or_else(PoisonError::into_inner);
        let program = match loaded.take() {
            Some((settings, program)) if settings == features.standing => program,
            _ => self.load(features)?,
        };
        let (_, program) = loaded.insert((features.standing, program));
        let order = EventOrder::new(source, event, now_ns);
        let returned = program.run_on(&order).map_err(DatapathError::Order)?;
        Ok(Standing::of_number(returned))
    }

    fn load(&self, features: &Features) -> Result<Program, DatapathError> {
        let features = InMap(*features);
        let directory = MapDirectory::new()?;
        let mut loader = EbpfLoader::new();
        loader.override_global("FEATURES", &features, true);
        reuse_maps(&mut loader, &directory, self.maps())?;
        let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
        let program = stages::program(&mut ebpf, PROGRAM_CHANGE_SOURCE)?;
        verify(|| program.load()).map_err(DatapathError::Verify)?;
        let program = program.fd().and_then(Program::of);
        program.map_err(DatapathError::Verify)
    }
}
