//! Loads the program over the maps that outlive a policy.

use aya::{Ebpf, EbpfLoader, programs::SockOps};
use limiter_policy::policy::CompiledPolicy;

use super::{HandshakesError, PolicyProgram};
use crate::kernel::{
    BucketMaps, DatapathError, Manifest, Pins, Settings, SourceMaps,
    map_directory::{MapDirectory, reuse_maps},
    object::{OBJECT, PROGRAM_HANDSHAKES},
    pins::NetworkNamespace,
    pod::InMap,
    program::Program,
    route_fields, tables,
    verify::verify,
};

/// Loads the program if the policy needs it: handshakes prove sources, handshakes or connections are limited,
/// connections count by their names, or connections begun by the host are exempt. `buckets`: the buckets shared by all
/// interfaces, which a policy with limits on handshakes has. The program records handshakes of this process's network
/// namespace.
pub(in crate::kernel) fn load(
    maps: &SourceMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
) -> PolicyProgram {
    let features = &policy.features;
    let do_prove = features.uses_standing() && features.standing.handshakes_prove != 0;
    let do_count = features.connections
        | features.handshakes
        | features.own_connections
        | features.by_server_name;
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
    verify(|| program.load()).map_err(HandshakesError::Verify)?;
    let program = program.fd().and_then(Program::of);
    Ok(Some(program.map_err(HandshakesError::Verify)?))
}

/// Makes and fills the maps of programs that record handshakes and count connections; verifies no program. `cookie`:
/// identifies the network namespace of the counted connections; 0: none.
pub(in crate::kernel) fn prepare(
    maps: &SourceMaps,
    buckets: Option<&BucketMaps>,
    settings: Settings,
    policy: &CompiledPolicy,
    cookie: u64,
) -> Result<Ebpf, DatapathError> {
    let features = InMap(settings.features_of_handshakes(&policy.features));
    let route_fields = InMap(route_fields::of_this_kernel());
    let directory = MapDirectory::new()?;
    let mut loader = EbpfLoader::new();
    loader
        .override_global("FEATURES", &features, true)
        .override_global("ROUTE_FIELDS", &route_fields, true)
        .override_global("NETWORK_NAMESPACE", &cookie, true);
    // Handshakes carry no names.
    tables::size(&mut loader, policy, &[]);
    reuse_maps(&mut loader, &directory, maps.standing().maps())?;
    reuse_maps(&mut loader, &directory, maps.connections().maps())?;
    reuse_maps(&mut loader, &directory, [maps.own_connections().map()])?;
    reuse_maps(&mut loader, &directory, maps.server_names().maps())?;
    if policy.features.handshakes != 0 {
        let buckets = buckets.ok_or(DatapathError::NoPolicy)?;
        reuse_maps(&mut loader, &directory, buckets.maps())?;
    }
    let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
    tables::write(&mut ebpf, policy, &[])?;
    Ok(ebpf)
}

/// Does [`load`] for a pinned policy, and adds the program to the policy's pins.
pub(in crate::kernel) fn load_pinned(
    maps: &SourceMaps,
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
