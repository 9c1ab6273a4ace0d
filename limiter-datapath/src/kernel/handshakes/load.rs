//! Loads the program over kept maps.

use aya::{EbpfLoader, programs::SockOps};
use limiter_common::policy::Shape;

use super::{HandshakesError, OfPolicy};
use crate::kernel::{
    DatapathError, Manifest, Pins, ReputationMaps, Settings,
    object::{OBJECT, PROGRAM_HANDSHAKES},
    pins::NetworkNamespace,
    pod::InMap,
    program::Program,
    shared::SharedDirectory,
};

/// Loads the program if handshakes prove under a policy of that shape. It notes those of this
/// process's network namespace.
pub(in crate::kernel) fn load(
    maps: &ReputationMaps,
    settings: Settings,
    shape: &Shape,
) -> OfPolicy {
    if !shape.uses_standing() || shape.standing.handshakes_prove == 0 {
        return Ok(None);
    }
    let namespace = NetworkNamespace::current()?;
    let cookie = namespace.cookie.ok_or(HandshakesError::NoCookie)?;
    let shape = InMap(settings.shape_of_standing(shape.standing));
    let directory = SharedDirectory::new()?;
    let mut loader = EbpfLoader::new();
    loader
        .override_global("SHAPE", &shape, true)
        .override_global("NETWORK_NAMESPACE", &cookie, true);
    maps.standing().share(&mut loader, directory.path())?;
    let mut ebpf = loader.load(OBJECT).map_err(DatapathError::Load)?;
    let program: &mut SockOps = ebpf
        .program_mut(PROGRAM_HANDSHAKES)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| DatapathError::NoProgram(PROGRAM_HANDSHAKES.to_owned()))?;
    program.load().map_err(HandshakesError::Verify)?;
    let program = program.fd().and_then(Program::of);
    Ok(Some(program.map_err(HandshakesError::Verify)?))
}

/// Does [`load`] for a policy that is pinned, and adds the program to its pins.
pub(in crate::kernel) fn load_pinned(
    maps: &ReputationMaps,
    manifest: &Manifest,
    shape: &Shape,
    pins: &Pins,
) -> OfPolicy {
    let program = load(maps, manifest.settings, shape)?;
    if let Some(program) = &program {
        pins.add_handshakes_of(manifest.generation, program)?;
    }
    Ok(program)
}
