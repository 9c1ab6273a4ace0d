//! Encodes what the daemon measured.

use std::fmt;

use limiter_protocol::{History, web::Measurements};
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder};

use super::{
    automatic_bans, automatic_rates, bans, connections, fleet, interfaces, labelled::counters,
    limits, lists, plain, process, queues, server_names, sieves, standing, traffic,
};

/// Encodes the metrics of one scrape.
#[derive(Debug)]
pub(super) struct MeasurementsCollector(pub(super) Measurements);

impl Collector for MeasurementsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        let (measurements, encoder) = (&self.0, &mut encoder);
        let status = &measurements.status;
        plain::status(status, encoder)?;
        plain::tables(measurements, encoder)?;
        traffic::encode(measurements, encoder)?;
        interfaces::encode(status, encoder)?;
        limits::encode(measurements, encoder)?;
        automatic_rates::encode(&status.limits, encoder)?;
        connections::encode(status, encoder)?;
        queues::encode(&status.limits, encoder)?;
        standing::encode(measurements, encoder)?;
        lists::encode(&status.lists, encoder)?;
        bans::encode(measurements, encoder)?;
        automatic_bans::encode(&measurements.limits, encoder)?;
        sieves::encode(&status.sieves, encoder)?;
        if let Some(status) = &status.server_names {
            server_names::encode(status, encoder)?;
        }
        if let Some(status) = &measurements.fleet {
            fleet::encode(status, encoder)?;
        }
        if let Some(daemon) = &status.daemon {
            reloads(&daemon.reloads, encoder)?;
        }
        process::encode(encoder)
    }
}

fn reloads(history: &History, encoder: &mut DescriptorEncoder) -> fmt::Result {
    let by_result = [
        ([("result", "success".to_owned())], history.succeeded),
        ([("result", "failure".to_owned())], history.failed),
    ];
    counters(
        encoder,
        "limiter_reloads",
        "Reloads of the configuration since the daemon started; a failed one changed nothing",
        &by_result,
    )
}
