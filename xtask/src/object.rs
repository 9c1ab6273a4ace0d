//! Describes an object by its contents.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use aya_obj::{Map, Object, ProgramSection, generated::bpf_map_type};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// An object, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Description {
    path: String,
    bytes: usize,
    programs: Vec<ProgramDescription>,
    maps: Vec<MapDescription>,
}

#[derive(Debug, Serialize)]
struct ProgramDescription {
    name: String,
    kind: String,
    instructions: usize,
}

#[derive(Debug, Serialize)]
struct MapDescription {
    name: String,
    kind: String,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
}

/// Reads an object's programs and maps.
pub(crate) fn describe(path: &Path) -> Result<Description> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let object = Object::parse(&bytes)
        .with_context(|| format!("{} is not an eBPF object", path.display()))?;

    let mut programs: Vec<_> = object
        .programs
        .iter()
        .map(|(name, program)| ProgramDescription {
            name: name.clone(),
            kind: program_kind(&program.section),
            instructions: object
                .functions
                .get(&program.function_key())
                .map_or(0, |function| function.instructions.len()),
        })
        .collect();
    programs.sort_by(|a, b| a.name.cmp(&b.name));

    let mut maps: Vec<_> = object
        .maps
        .iter()
        .map(|(name, map)| MapDescription {
            name: name.clone(),
            kind: map_kind(map),
            key_size: map.key_size(),
            value_size: map.value_size(),
            max_entries: map.max_entries(),
        })
        .collect();
    maps.sort_by(|a, b| a.name.cmp(&b.name));

    Ok(Description {
        path: path.display().to_string(),
        bytes: bytes.len(),
        programs,
        maps,
    })
}

/// Turns `Xdp { .. }` into "xdp".
fn program_kind(section: &ProgramSection) -> String {
    let variant = format!("{section:?}");
    let name = variant.split([' ', '{', '(']).next().unwrap_or_default();
    name.to_lowercase()
}

/// Turns `BPF_MAP_TYPE_LRU_HASH` into "lru_hash"; a type newer than aya into its number.
fn map_kind(map: &Map) -> String {
    bpf_map_type::try_from(map.map_type()).map_or_else(
        |_| map.map_type().to_string(),
        |kind| {
            let name = format!("{kind:?}");
            name.trim_start_matches("BPF_MAP_TYPE_").to_lowercase()
        },
    )
}

impl Description {
    /// Returns text for people: a heading, and a table of programs and of maps.
    pub(crate) fn to_text(&self) -> String {
        let mut programs = table(["program", "type", "instructions"], 2);
        for program in &self.programs {
            programs.add_row([
                program.name.clone(),
                program.kind.clone(),
                program.instructions.to_string(),
            ]);
        }
        let mut maps = table(["map", "type", "key", "value", "max entries"], 2);
        for map in &self.maps {
            maps.add_row([
                map.name.clone(),
                map.kind.clone(),
                map.key_size.to_string(),
                map.value_size.to_string(),
                map.max_entries.to_string(),
            ]);
        }
        let Self { path, bytes, .. } = self;
        format!(
            "{path}  ({bytes} bytes)\n\n{}\n\n{}\n",
            programs.trim_fmt(),
            maps.trim_fmt()
        )
    }
}

/// Returns a table without lines. Columns from `first_number` on are aligned right.
fn table<const N: usize>(header: [&str; N], first_number: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(first_number) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_kinds_as_bpftool_does() {
        let xdp: ProgramSection = "xdp".parse().unwrap();
        assert_eq!(program_kind(&xdp), "xdp");

        let lru = Map::new_from_params(bpf_map_type::BPF_MAP_TYPE_LRU_HASH as u32, 8, 8, 1, 0);
        assert_eq!(map_kind(&lru), "lru_hash");
        let unknown = Map::new_from_params(u32::MAX, 8, 8, 1, 0);
        assert_eq!(map_kind(&unknown), "4294967295");
    }
}
