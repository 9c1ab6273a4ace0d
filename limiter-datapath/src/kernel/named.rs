//! Sets of maps that instances of the program share, and that are pinned under their names.

use std::path::Path;

use aya::{
    Ebpf, EbpfLoader,
    maps::{Map, MapData},
};

use super::{DatapathError, Settings, shared::SharedDirectory};

/// Maps that are made, pinned, found again and renewed together.
pub(super) trait NamedMaps: Sized {
    /// Their names.
    const NAMES: &'static [&'static str];

    /// A loader that makes them as large as they are to be.
    fn loader<'l>(settings: Settings) -> EbpfLoader<'l> {
        let mut loader = EbpfLoader::new();
        Self::size(&mut loader, settings);
        loader
    }

    /// Has a loader make them as large as they are to be.
    fn size(loader: &mut EbpfLoader<'_>, settings: Settings);

    /// Of the maps that `open` opens by name.
    fn new(
        settings: Settings,
        open: impl FnMut(&'static str) -> Result<Map, DatapathError>,
    ) -> Result<Self, DatapathError>;

    /// The maps under their names.
    fn all(&self) -> Vec<(&'static str, &MapData)>;

    /// How many entries a map of that name has with these settings; `None`: the same with all.
    fn entries(map: &str, settings: Settings) -> Option<u32>;

    /// Whether a map of that name is to be made anew with these settings, whatever its size.
    fn is_outdated(&self, _map: &str, _settings: Settings) -> bool {
        false
    }

    /// Opens the maps where they are pinned.
    fn open(directory: &Path, settings: Settings) -> Result<Self, DatapathError> {
        Self::new(settings, |map| {
            let data = MapData::from_pin(directory.join(map))
                .map_err(|source| DatapathError::Map { map, source })?;
            Map::from_map_data(data).map_err(|source| DatapathError::Map { map, source })
        })
    }

    /// Makes them anew, empty.
    fn create(settings: Settings) -> Result<Self, DatapathError> {
        let mut ebpf = Self::loader(settings)
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::take(&mut ebpf, settings)
    }

    /// Makes those anew that are not as large as these settings say; the others are the same.
    fn renew(&self, settings: Settings) -> Result<Self, DatapathError> {
        let directory = SharedDirectory::new()?;
        self.pin_those(directory.path(), |map, data| {
            fits(self, map, data, settings)
        })?;
        let mut loader = Self::loader(settings);
        for map in Self::NAMES {
            loader.map_pin_path(map, directory.path().join(map));
        }
        // The others are made, and pinned there too.
        loader
            .load(settings.log.object())
            .map_err(DatapathError::Load)?;
        Self::open(directory.path(), settings)
    }

    /// Pins each of them under its name in a directory.
    fn pin(&self, directory: &Path) -> Result<(), DatapathError> {
        self.pin_those(directory, |_, _| true)
    }

    /// Pins some of them.
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

    /// Whether they are as large as those that are made with these settings.
    fn fit(&self, settings: Settings) -> bool {
        self.all()
            .into_iter()
            .all(|(map, data)| fits(self, map, data, settings))
    }

    /// Takes the maps out of an instance that shares them with no other.
    fn take(ebpf: &mut Ebpf, settings: Settings) -> Result<Self, DatapathError> {
        Self::new(settings, |map| {
            ebpf.take_map(map).ok_or(DatapathError::Missing(map))
        })
    }
}

/// Whether one of the maps is as it would be with these settings.
fn fits<M: NamedMaps>(maps: &M, map: &str, data: &MapData, settings: Settings) -> bool {
    if maps.is_outdated(map, settings) {
        return false;
    }
    let Some(entries) = M::entries(map, settings) else {
        return true;
    };
    data.info()
        .is_ok_and(|info| info.max_entries() == entries.max(1))
}
