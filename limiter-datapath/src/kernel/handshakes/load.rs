//! Loads the program over the maps that outlive a policy.

use aya::{Ebpf, EbpfLoader, programs::SockOps};
use limiter_policy::policy::CompiledPolicy;

use super::{HandshakesError, PolicyProgram};
use crate::kernel::{
    BucketMaps, DatapathError, Manifest, Pins, ReputationMaps, Settings,
    object::{OBJECT, PROGRAM_HANDSHAKES},
    pins::NetworkNamespace,
    pod::InMap,
    program::Program,
    route_fields,
    shared::{SharedDirectory, share},
    tables,
};

/// Loads the program if the policy needs it: handshakes prove sources, handshakes or connections are limited,
/// connections count by their names, or connections begun by the host are exempt. `buckets`: the buckets shared by all
/// interfaces, which a policy with limits on handshakes has. The program notes handshakes of this process's network
/// namespace.
pub(in crate::kernel) fn load(
    maps: &ReputationMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
) -> PolicyProgram {
    let shape = &policy.shape;
    let do_prove = shape.uses_standing() && shape.standing.handshakes_prove != 0;
    let do_count =
        shape.connections | shape.handshakes | shape.own_connections | shape.by_server_name;
    if !do_prove && do_count == 0 {
        return Ok(None);
    }
    let namespace = NetworkNamespace::current()?;
    let cookie = namespace.cookie.ok_or(HandshakesError::NoCookie)?;
    let mut ebpf = prepare(maps, buckets, settings, policy, cookie)?;
    let program: &mut SockOps = ebpf
        .program_mut(PROGRAM_HANDSHAKES)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| DatapathError::NoProgram(PROGRAM_HANDSHAKES.to_owned()))?;
    program.load().map_err(HandshakesError::Verify)?;
    let program = program.fd().and_then(Program::of);
    Ok(Some(program.map_err(HandshakesError::Verify)?))
}

/// Makes and fills the maps of programs that note handshakes and count connections; verifies no program. `cookie`:
/// identifies the network namespace of the counted connections; 0: none.
pub(in crate::kernel) fn prepare(
    maps: &ReputationMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
    cookie: u64,
) -> Result<Ebpf, DatapathError> {
    let shape = InMap(settings.shape_of_handshakes(&policy.shape));
    let route_fields = InMap(route_fields::of_this_kernel());
    let directory = SharedDirectory::new()?;
    let mut loader = EbpfLoader::new();
    loader
        .override_global("SHAPE", &shape, true)
        .override_global("ROUTE_FIELDS", &route_fields, true)
        .override_global("NETWORK_NAMESPACE", &cookie, true);
    // Handshakes carry no names.
    tables::size(&mut loader, policy, &[]);
    share(&mut loader, &directory, maps.standing().maps())?;
    share(&mut loader, &directory, maps.connections().maps())?;
    share(&mut loader, &directory, [maps.own_connections().map()])?;
    share(&mut loader, &directory, maps.server_names().maps())?;
    if policy.shape.handshakes != 0 {
        let buckets = buckets.ok_or(DatapathError::NoPolicy)?;
        share(&mut loader, &directory, buckets.maps())?;
    }
    let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
    tables::write(&mut ebpf, policy, &[])?;
    Ok(ebpf)
}

/// Does [`load`] for a pinned policy, and adds the program to the policy's pins.
pub(in crate::kernel) fn load_pinned(
    maps: &ReputationMaps,
    buckets: Option<&BucketMaps>,
    manifest: &Manifest,
    policy: &CompiledPolicy,
    pins: &Pins,
) -> PolicyProgram {
    let program = load(maps, buckets, manifest.settings, policy)?;
    if let Some(program) = &program {
        pins.add_handshakes_of(manifest.generation, program)?;
    }
    Ok(program)
}
