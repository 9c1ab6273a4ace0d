//! The kernel program that changes what is known of a source for userspace, and its orders.

use aya::EbpfLoader;
use limiter_common::{
    policy::Shape,
    standing::{Event, KnowOrder, Record, Settings, SourceId, Standing, known_index},
    table::{self, HashKey, WAYS},
};

use super::{KNOWN, StandingMaps, StandingSizes};
use crate::{
    kernel::{
        DatapathError,
        object::{OBJECT, PROGRAM_KNOW},
        pod::InMap,
        program::Program,
        shared::SharedDirectory,
        stages,
    },
    native::AtomicLine,
};

impl StandingMaps {
    /// Returns the record of a source; `None`: nothing is known of it. `shape` is that of the
    /// policy that the maps were made for.
    #[must_use]
    pub fn record(&self, shape: &Shape, source: SourceId) -> Option<Record> {
        let line: &AtomicLine = self.known.get(known_index(shape, source))?;
        (0..WAYS)
            .filter_map(|way| table::entry(&line, way))
            .find(|(found, _)| *found == source.0)
            .map(|(_, record)| Record(record))
            .filter(|record| *record != Record::NONE)
    }

    /// Has the kernel note an event of a source at the time `now_ns` of its clock: wholly or not at
    /// all, even if this process is killed. Returns the source's standing after it.
    ///
    /// # Errors
    ///
    /// The kernel's errors, and [`DatapathError::NotKnown`] if the policy uses no standing.
    pub fn note(
        &self,
        shape: &Shape,
        source: SourceId,
        event: Event,
        now_ns: u64,
    ) -> Result<Standing, DatapathError> {
        if !shape.uses_standing() {
            return Err(DatapathError::NoStanding);
        }
        let order = KnowOrder::new(source, event, now_ns);
        let returned = self.program(shape)?.run_on(&order);
        Ok(Standing::of_number(returned.map_err(DatapathError::Order)?))
    }

    /// Returns the program, loaded for the first order: most daemons never give one.
    fn program(&self, shape: &Shape) -> Result<&Program, DatapathError> {
        if let Some(program) = self.orders.get() {
            return Ok(program);
        }
        let program = self.load(shape)?;
        Ok(self.orders.get_or_init(|| program))
    }

    /// Loads the program over these maps.
    fn load(&self, shape: &Shape) -> Result<Program, DatapathError> {
        let shape = InMap(Shape {
            hash_key: shape.hash_key,
            standing: shape.standing,
            ..Shape::EMPTY
        });
        let directory = SharedDirectory::new()?;
        let mut loader = EbpfLoader::new();
        loader.override_global("SHAPE", &shape, true);
        self.share(&mut loader, directory.path())?;
        let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
        let program = stages::program(&mut ebpf, PROGRAM_KNOW)?;
        program.load().map_err(DatapathError::Verify)?;
        let program = program.fd().and_then(Program::of);
        program.map_err(DatapathError::Verify)
    }
}
