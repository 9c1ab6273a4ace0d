//! Operations on maps.

use std::os::fd::AsFd as _;

use aya::{
    maps::{Map, MapData, MapError, PerCpuArray},
    util::nr_cpus,
};

use super::{error::DatapathError, pod::InMap};

/// Clears an entry on all CPUs.
pub(super) fn clear<T>(
    array: &mut PerCpuArray<MapData, InMap<T>>,
    index: u32,
) -> Result<(), MapError>
where
    T: Copy + Default + 'static,
    InMap<T>: aya::Pod,
{
    set_sum(array, index, T::default())
}

/// Writes the sum over all CPUs to the first CPU, and the default to the others.
pub(super) fn set_sum<T>(
    array: &mut PerCpuArray<MapData, InMap<T>>,
    index: u32,
    sum: T,
) -> Result<(), MapError>
where
    T: Copy + Default + 'static,
    InMap<T>: aya::Pod,
{
    let cpus = nr_cpus().map_err(|(_, source)| MapError::IoError(source))?;
    let mut of_cpus = vec![InMap(T::default()); cpus];
    if let Some(first) = of_cpus.first_mut() {
        *first = InMap(sum);
    }
    array.set(index, of_cpus.try_into()?, 0)
}

/// Opens the same map by another descriptor.
pub(super) fn again(data: &MapData) -> Result<Map, MapError> {
    let descriptor = data.fd().as_fd().try_clone_to_owned()?;
    Map::from_map_data(MapData::from_fd(descriptor)?)
}

pub(super) fn error(map: &'static str) -> impl Fn(MapError) -> DatapathError {
    move |source| DatapathError::Map { map, source }
}

pub(super) fn sum<T>(array: &PerCpuArray<MapData, InMap<T>>, index: u32) -> Result<T, MapError>
where
    T: Copy + Default + std::ops::AddAssign + 'static,
    InMap<T>: aya::Pod,
{
    let mut total = T::default();
    for InMap(of_cpu) in array.get(&index, 0)?.iter() {
        total += *of_cpu;
    }
    Ok(total)
}
