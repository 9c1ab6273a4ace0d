//! What is done with any map.

use aya::{
    maps::{MapData, MapError, PerCpuArray},
    util::nr_cpus,
};

use super::{error::DatapathError, pod::InMap};

/// Writes nothing for all CPUs.
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

/// Writes what all CPUs have together: the first one has it all.
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

/// Errors of the map of that name.
pub(super) fn error(map: &'static str) -> impl Fn(MapError) -> DatapathError {
    move |source| DatapathError::Map { map, source }
}

/// The sum over the CPUs.
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
