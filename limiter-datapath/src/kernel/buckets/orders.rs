//! The kernel program that changes buckets for userspace, and its orders.

use aya::EbpfLoader;
use limiter_common::{
    bucket::UpdateOutcome,
    policy::Features,
    strategy::Spend,
    table::{EVICTED, Order, OrderKind},
};
use limiter_policy::config::Store;

use super::{BucketMaps, DatapathError, InMap, location::BucketLocation};
use crate::kernel::{
    map_directory::{MapDirectory, reuse_maps},
    object::{OBJECT, PROGRAM_ORDER},
    program::Program,
    stages,
    verify::verify,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OrderOutcome {
    pub(super) updated: UpdateOutcome,
    /// Whether the order evicted a bucket in debt.
    pub(super) evicted: bool,
}

impl BucketMaps {
    /// Has the kernel change a bucket. The change is atomic, even if this process is killed.
    pub(super) fn order(
        &self,
        kind: OrderKind,
        location: &BucketLocation,
        spend: Spend,
        now_ns: u64,
    ) -> Result<OrderOutcome, DatapathError> {
        self.carry_out(&Order {
            kind: kind as u32,
            spend,
            now_ns,
            ..location.order()
        })
    }

    pub(super) fn carry_out(&self, order: &Order) -> Result<OrderOutcome, DatapathError> {
        let returned = self.program()?.run_on(order);
        let returned = returned.map_err(DatapathError::Order)?;
        Ok(OrderOutcome {
            updated: UpdateOutcome::of_number(returned & !EVICTED),
            evicted: returned & EVICTED != 0,
        })
    }

    /// The program, loaded for the first order: most daemons never give an order.
    fn program(&self) -> Result<&Program, DatapathError> {
        if let Some(program) = self.orders.get() {
            return Ok(program);
        }
        let program = self.load()?;
        Ok(self.orders.get_or_init(|| program))
    }

    /// Loads the program over these maps. The program needs no policy.
    fn load(&self) -> Result<Program, DatapathError> {
        let features = InMap(Features {
            table_lines: match self.settings.buckets.store {
                Store::Table => self.table.count(),
                Store::Hash => 0,
            },
            // Later policies may add units of any kind.
            odd_units: 1,
            ..Features::EMPTY
        });
        let directory = MapDirectory::new()?;
        let mut loader = EbpfLoader::new();
        loader.override_global("FEATURES", &features, true);
        reuse_maps(&mut loader, &directory, self.maps())?;
        let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
        let program = stages::program(&mut ebpf, PROGRAM_ORDER)?;
        verify(|| program.load()).map_err(DatapathError::Verify)?;
        let program = program.fd().and_then(Program::of);
        program.map_err(DatapathError::Verify)
    }
}
