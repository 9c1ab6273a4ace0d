//! Sets of maps that instances of the program share, pinned under their names.

use std::path::Path;

use aya::{
    Ebpf, EbpfLoader,
    maps::{Map, MapData},
};

use super::{DatapathError, Settings, map_directory::MapDirectory};

/// Maps that are made, pinned, reopened and renewed together.
pub(super) trait PinnedMaps: Sized {
    /// The maps' names.
    const NAMES: &'static [&'static str];

    /// A loader that makes the maps in these settings' sizes.
    fn loader<'l>(settings: Settings) -> EbpfLoader<'l> {
        let mut loader = EbpfLoader::new();
        Self::size(&mut loader, settings);
        loader
    }

    /// Configures a loader to make the maps in these settings' sizes.
    fn size(loader: &mut EbpfLoader<'_>, settings: Settings) {
        for map in Self::NAMES {
            if let Some(entries) = Self::entries(map, settings) {
                loader.map_max_entries(map, entries.max(1));
            }
        }
    }

    /// Takes the maps that `open` opens by name.
    fn new(
        settings: Settings,
        open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError>;

    /// The maps with their names.
    fn all(&self) -> Vec<(&'static str, &MapData)>;

    /// The number of entries of the named map with these settings; `None`: its size is fixed.
    fn entries(map: &str, settings: Settings) -> Option<u32>;

    /// Whether these settings need a new map of that name, even if the size fits.
    fn is_outdated(&self, _map: &str, _settings: Settings) -> bool {
        false
    }

    fn open(directory: &Path, settings: Settings) -> Result<Self, DatapathError> {
        Self::new(settings, |map| {
            let data = MapData::from_pin(directory.join(map))
                .map_err(|source| DatapathError::Map { map, source })?;
            Map::from_map_data(data).map_err(|source| DatapathError::Map { map, source })
        })
    }

    fn create(settings: Settings) -> Result<Self, DatapathError> {
        let mut ebpf = Self::loader(settings)
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::take(&mut ebpf, settings)
    }

    /// Does [`PinnedMaps::create`] for two sets in one reading of the object, which takes longer than
    /// making the maps.
    fn create_with<O: PinnedMaps>(settings: Settings) -> Result<(Self, O), DatapathError> {
        let mut loader = Self::loader(settings);
        O::size(&mut loader, settings);
        let ebpf = loader.load(settings.log.object());
        let mut ebpf = ebpf.map_err(DatapathError::Load)?;
        Ok((
            Self::take(&mut ebpf, settings)?,
            O::take(&mut ebpf, settings)?,
        ))
    }

    /// Makes new maps where the present maps do not fit these settings; keeps the others.
    fn renew(&self, settings: Settings) -> Result<Self, DatapathError> {
        let directory = MapDirectory::new()?;
        self.pin_those(directory.path(), |map, data| {
            fits(self, map, data, settings)
        })?;
        let mut loader = Self::loader(settings);
        for map in Self::NAMES {
            loader.map_pin_path(map, directory.path().join(map));
        }
        // The loader makes the missing maps and pins them in the same directory.
        loader
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::open(directory.path(), settings)
    }

    fn pin(&self, directory: &Path) -> Result<(), DatapathError> {
        self.pin_those(directory, |_, _| true)
    }

    fn pin_those(
        &self,
        directory: &Path,
        wanted: impl Fn(&str, &MapData) -> bool,
    ) -> Result<(), DatapathError> {
        for (map, data) in self.all() {
            if wanted(map, data) {
                let pinned = data.pin(directory.join(map));
                pinned.map_err(|source| DatapathError::Pin { map, source })?;
            }
        }
        Ok(())
    }

    /// Whether all maps have the sizes that these settings ask for.
    fn fit(&self, settings: Settings) -> bool {
        self.all()
            .into_iter()
            .all(|(map, data)| fits(self, map, data, settings))
    }

    /// Takes the maps out of an instance that shares them with no other.
    fn take(ebpf: &mut Ebpf, settings: Settings) -> Result<Self, DatapathError> {
        Self::new(settings, |map| {
            ebpf.take_map(map).ok_or(DatapathError::NoMap(map))
        })
    }
}

/// Whether a map fits these settings.
fn fits<M: PinnedMaps>(maps: &M, map: &str, data: &MapData, settings: Settings) -> bool {
    if maps.is_outdated(map, settings) {
        return false;
    }
    let Some(entries) = M::entries(map, settings) else {
        return true;
    };
    data.info()
        .is_ok_and(|info| info.max_entries() == entries.max(1))
}
