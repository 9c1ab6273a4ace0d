//! Strips objects of sections that no loader reads.

use object::{
    Endianness, U64,
    elf::{FileHeader64, SHT_NOBITS, SHT_NULL},
    pod::bytes_of,
    read::{
        Error,
        elf::{FileHeader as _, SectionHeader as _},
    },
};

/// The beginnings of the names of sections for debuggers, and of their relocations: four fifths of
/// an object. The kernel's verifier shows source lines from other sections, which begin with
/// `.BTF`.
const FOR_DEBUGGERS: [&[u8]; 2] = [b".debug_", b".rel.debug_"];

/// The alignment of the table of sections.
const ALIGNMENT: u64 = 8;

/// Returns an object without the content of its sections for debuggers. They stay as empty sections, so
/// that nothing that names a section by its number has to change. Their names and types stay, too:
/// libbpf skips sections by their names, and takes none of another type without content.
pub(crate) fn strip(object: &[u8]) -> Result<Vec<u8>, Error> {
    let mut header = *FileHeader64::<Endianness>::parse(object)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, object)?;
    let mut stripped = bytes_of(&header).to_vec();
    let mut table = Vec::new();
    for section in sections.iter() {
        let name = sections.section_name(endian, section)?;
        let mut kept = *section;
        if FOR_DEBUGGERS
            .iter()
            .any(|beginning| name.starts_with(beginning))
        {
            kept.sh_offset = U64::new(endian, stripped.len() as u64);
            kept.sh_size = U64::new(endian, 0);
        } else if !matches!(kept.sh_type(endian), SHT_NULL | SHT_NOBITS) {
            align(&mut stripped, kept.sh_addralign(endian));
            kept.sh_offset = U64::new(endian, stripped.len() as u64);
            stripped.extend_from_slice(section.data(endian, object)?);
        }
        table.extend_from_slice(bytes_of(&kept));
    }
    align(&mut stripped, ALIGNMENT);
    header.e_shoff = U64::new(endian, stripped.len() as u64);
    stripped.extend(table);
    let start = bytes_of(&header);
    stripped[..start.len()].copy_from_slice(start);
    Ok(stripped)
}

fn align(bytes: &mut Vec<u8>, alignment: u64) {
    let alignment = usize::try_from(alignment).unwrap_or(1).max(1);
    bytes.resize(bytes.len().next_multiple_of(alignment), 0);
}

#[cfg(test)]
mod tests {
    use object::elf::SectionHeader64;

    use super::*;

    fn empty(endian: Endianness) -> SectionHeader64<Endianness> {
        let (word, long) = (object::U32::new(endian, 0), U64::new(endian, 0));
        SectionHeader64 {
            sh_name: word,
            sh_type: object::U32::new(endian, SHT_NULL),
            sh_flags: long,
            sh_addr: long,
            sh_offset: long,
            sh_size: long,
            sh_link: word,
            sh_info: word,
            sh_addralign: long,
            sh_entsize: long,
        }
    }

    /// An object of a section each with these names and contents, and one for the names.
    fn object(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let endian = Endianness::Little;
        let mut names = vec![0];
        let mut bytes = vec![0; size_of::<FileHeader64<Endianness>>()];
        let mut table = bytes_of(&empty(endian)).to_vec();
        let all = sections.iter().copied().chain([(".strtab", &b""[..])]);
        let mut kept = Vec::new();
        for (name, content) in all {
            let mut section = empty(endian);
            section.sh_name = object::U32::new(endian, u32::try_from(names.len()).unwrap());
            section.sh_type = object::U32::new(endian, object::elf::SHT_PROGBITS);
            names.extend(name.bytes().chain([0]));
            kept.push((section, content.to_vec()));
        }
        if let Some((section, content)) = kept.last_mut() {
            section.sh_type = object::U32::new(endian, object::elf::SHT_STRTAB);
            *content = names;
        }
        for (section, content) in &mut kept {
            section.sh_offset = U64::new(endian, bytes.len() as u64);
            section.sh_size = U64::new(endian, content.len() as u64);
            bytes.extend_from_slice(content);
            table.extend_from_slice(bytes_of(section));
        }
        let count = u16::try_from(kept.len() + 1).unwrap();
        let header = FileHeader64 {
            e_ident: object::elf::Ident {
                magic: object::elf::ELFMAG,
                class: object::elf::ELFCLASS64,
                data: object::elf::ELFDATA2LSB,
                version: object::elf::EV_CURRENT,
                os_abi: 0,
                abi_version: 0,
                padding: [0; 7],
            },
            e_type: object::U16::new(endian, object::elf::ET_REL),
            e_machine: object::U16::new(endian, object::elf::EM_BPF),
            e_version: object::U32::new(endian, 1),
            e_entry: U64::new(endian, 0),
            e_phoff: U64::new(endian, 0),
            e_shoff: U64::new(endian, bytes.len() as u64),
            e_flags: object::U32::new(endian, 0),
            e_ehsize: object::U16::new(endian, 64),
            e_phentsize: object::U16::new(endian, 0),
            e_phnum: object::U16::new(endian, 0),
            e_shentsize: object::U16::new(endian, 64),
            e_shnum: object::U16::new(endian, count),
            e_shstrndx: object::U16::new(endian, count - 1),
        };
        bytes[..64].copy_from_slice(bytes_of(&header));
        bytes.extend(table);
        bytes
    }

    #[test]
    fn other_sections_keep_number_and_content() {
        let debug = vec![7; 1000];
        let whole = object(&[
            ("xdp", b"program"),
            (".debug_info", &debug),
            (".rel.debug_info", &debug),
            (".BTF", b"types"),
        ]);
        let stripped = strip(&whole).unwrap();
        assert!(stripped.len() + 2000 <= whole.len() + 16);
        let header = FileHeader64::<Endianness>::parse(&*stripped).unwrap();
        let endian = header.endian().unwrap();
        let sections = header.sections(endian, &*stripped).unwrap();
        let content = |index: usize| {
            let section = sections.iter().nth(index).unwrap();
            let name = sections.section_name(endian, section).unwrap();
            (name, section.data(endian, &*stripped).unwrap())
        };
        assert_eq!(content(1), (&b"xdp"[..], &b"program"[..]));
        assert_eq!(content(2), (&b".debug_info"[..], &b""[..]));
        assert_eq!(content(3), (&b".rel.debug_info"[..], &b""[..]));
        assert_eq!(content(4), (&b".BTF"[..], &b"types"[..]));
        assert!(strip(b"no object").is_err());
    }
}
