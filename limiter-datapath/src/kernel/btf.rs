//! The kernel's description of its own types (BTF): finds the offset of a field in a structure.
//!
//! aya reads BTF too, but does not expose fields. Its relocations work only for objects from clang, because rustc
//! records no field accesses.

use std::fs;

const DESCRIPTION: &str = "/sys/kernel/btf/vmlinux";

const MAGIC: u16 = 0xeb9f;

/// The kinds of types that the reader handles (linux/btf.h).
const INT: u32 = 1;
const PTR: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNC_PROTO: u32 = 13;
const VAR: u32 = 14;
const DATASEC: u32 = 15;
const DECL_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// The length in bytes of a type's fixed part, and of a structure's member.
const TYPE: usize = 12;
const MEMBER: usize = 12;

/// More steps than any chain of nested or referring types has. Ends the search in a broken description.
const MOST_STEPS: u32 = 32;

/// A field of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    /// The offset from the structure's start, in bits.
    pub(super) bit: u32,
    /// The number of bits of a bit field; 0: not a bit field.
    pub(super) bits: u32,
    /// The size of the field's type in bytes; for an array, the size of an element.
    pub(super) size: u32,
}

/// All types of a kernel. The first has the number 1.
pub(super) struct Types<'a> {
    types: Vec<Type<'a>>,
    strings: &'a [u8],
}

#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// Whether members may be bit fields. If so, the top byte of a member's offset is the field's width in bits.
    has_bit_fields: bool,
    /// The type's size in bytes, or the number of the type that it refers to.
    size_or_target: u32,
    /// The bytes after the fixed part: a structure's members, or an array's element.
    rest: &'a [u8],
}

impl<'a> Types<'a> {
    /// Reads a description in this machine's byte order; `None`: the description is broken, or newer.
    pub(super) fn read(description: &'a [u8]) -> Option<Self> {
        if u16::from_ne_bytes(*description.first_chunk()?) != MAGIC {
            return None;
        }
        let header = |number: usize| word(description, number).map(|word| word as usize);
        let section = |offset: usize, length: usize| {
            let start = header(1)?.checked_add(header(offset)?)?;
            description.get(start..start.checked_add(header(length)?)?)
        };
        let mut bytes = section(2, 3)?;
        let mut types = Vec::new();
        while !bytes.is_empty() {
            let (name, info, size_or_target) = (word(bytes, 0)?, word(bytes, 1)?, word(bytes, 2)?);
            let count = (info & 0xffff) as usize;
            let kind = info >> 24 & 0x1f;
            let rest = match kind {
                INT | VAR | DECL_TAG => 4,
                ARRAY => 12,
                STRUCT | UNION | DATASEC | ENUM64 => count * MEMBER,
                ENUM | FUNC_PROTO => count * 8,
                _ if kind <= ENUM64 => 0,
                _ => return None,
            };
            let (rest, after) = bytes.get(TYPE..)?.split_at_checked(rest)?;
            bytes = after;
            types.push(Type {
                name,
                kind,
                has_bit_fields: info >> 31 != 0,
                size_or_target,
                rest,
            });
        }
        let strings = section(4, 5)?;
        Some(Self { types, strings })
    }

    /// The size of a structure in bytes; `None`: no structure has that name.
    pub(super) fn size_of(&self, structure: &str) -> Option<u32> {
        self.structure(structure).map(|found| found.size_or_target)
    }

    /// The offset in bytes of a field of `size` bytes; `None`: the field is missing, has another size, or is a bit
    /// field.
    pub(super) fn offset_of(&self, structure: &str, path: &str, size: u32) -> Option<u32> {
        let field = self.field(structure, path)?;
        let is_as_expected = field.bits == 0 && field.size == size && field.bit.is_multiple_of(8);
        is_as_expected.then_some(field.bit / 8)
    }

    fn structure(&self, name: &str) -> Option<Type<'a>> {
        let mut types = self.types.iter();
        let is_meant = |found: &&Type<'_>| found.kind == STRUCT && self.has_name(found.name, name);
        types.find(is_meant).copied()
    }

    /// Finds a field of a structure. Dots in `path` lead into inner structures. `None`: no such field.
    pub(super) fn field(&self, structure: &str, path: &str) -> Option<Field> {
        let mut inside = self.structure(structure)?;
        let mut bit = 0u32;
        let mut names = path.split('.').peekable();
        while let Some(name) = names.next() {
            let (field, found) = self.member(&inside, name, MOST_STEPS)?;
            bit = bit.checked_add(field.bit)?;
            if names.peek().is_none() {
                return Some(Field { bit, ..field });
            }
            inside = found;
        }
        None
    }

    /// Finds a member of a structure or a union, or of an unnamed structure within it; returns the member with its
    /// type.
    fn member(&self, of: &Type<'a>, name: &str, steps: u32) -> Option<(Field, Type<'a>)> {
        if !matches!(of.kind, STRUCT | UNION) {
            return None;
        }
        let members = of.rest.chunks_exact(MEMBER);
        members.into_iter().find_map(|member| {
            let (member_name, number) = (word(member, 0)?, word(member, 1)?);
            let offset = word(member, 2)?;
            let (bit, bits) = if of.has_bit_fields {
                (offset & 0xff_ffff, offset >> 24)
            } else {
                (offset, 0)
            };
            let found = self.resolved(number)?;
            if member_name != 0 && self.has_name(member_name, name) {
                let size = self.size(&found)?;
                return Some((Field { bit, bits, size }, found));
            }
            if member_name != 0 {
                return None;
            }
            let (field, found) = self.member(&found, name, steps.checked_sub(1)?)?;
            let bit = bit.checked_add(field.bit)?;
            Some((Field { bit, ..field }, found))
        })
    }

    /// The type with that number, behind all typedefs and qualifiers.
    fn resolved(&self, mut number: u32) -> Option<Type<'a>> {
        for _ in 0..MOST_STEPS {
            let found = self.types.get((number as usize).checked_sub(1)?)?;
            match found.kind {
                TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG => number = found.size_or_target,
                _ => return Some(*found),
            }
        }
        None
    }

    fn size(&self, of: &Type<'a>) -> Option<u32> {
        match of.kind {
            PTR => u32::try_from(size_of::<usize>()).ok(),
            ARRAY => match self.resolved(word(of.rest, 0)?)? {
                element if element.kind == ARRAY => None,
                element => self.size(&element),
            },
            _ => Some(of.size_or_target),
        }
    }

    fn has_name(&self, offset: u32, name: &str) -> bool {
        let strings = self.strings.get(offset as usize..).unwrap_or(&[]);
        strings.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    }
}

/// Finds fields in the running kernel's description; `None`: the description or a field is missing.
pub(super) fn find_in_this_kernel<F>(find: impl Fn(&Types<'_>) -> Option<F>) -> Option<F> {
    let description = fs::read(DESCRIPTION).ok()?;
    find(&Types::read(&description)?)
}

fn word(bytes: &[u8], index: usize) -> Option<u32> {
    let bytes = bytes.get(index * 4..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// ```c
    /// struct outer { int a; union { char b; const struct { char x; int y : 3, z : 2; } c; }; int *d[2]; };
    /// ```
    fn description() -> Vec<u8> {
        let kind = |kind: u32, count: u32| kind << 24 | count;
        let types = [
            // 1: int, 2: char.
            [1, kind(INT, 0), 4].as_slice(),
            &[32],
            &[5, kind(INT, 0), 1],
            &[8],
            // 3: the inner structure, with bit fields; 4: as a constant.
            &[0, kind(STRUCT, 3) | 1 << 31, 4],
            &[10, 2, 0],
            &[12, 1, (3 << 24) + 8],
            &[14, 1, (2 << 24) + 11],
            &[0, kind(CONST, 0), 3],
            // 5: the union.
            &[0, kind(UNION, 2), 4],
            &[16, 2, 0],
            &[18, 4, 0],
            // 6: a pointer, 7: an array of them.
            &[0, kind(PTR, 0), 1],
            &[0, kind(ARRAY, 0), 0],
            &[6, 1, 2],
            // 8: the outer structure.
            &[20, kind(STRUCT, 3), 24],
            &[26, 1, 0],
            &[0, 5, 32],
            &[28, 7, 64],
        ]
        .concat();
        let strings = b"\0int\0char\0x\0y\0z\0b\0c\0outer\0a\0d\0";
        let length = |bytes: usize| u32::try_from(bytes).unwrap();
        let header = [
            24,
            0,
            length(types.len() * 4),
            length(types.len() * 4),
            length(strings.len()),
        ];
        let mut bytes = MAGIC.to_ne_bytes().to_vec();
        bytes.extend([1, 0]);
        bytes.extend(
            header
                .iter()
                .chain(&types)
                .flat_map(|word| word.to_ne_bytes()),
        );
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn fields_are_found_within_others() {
        let description = description();
        let types = Types::read(&description).unwrap();
        let field = |path| types.field("outer", path);
        let found = |bit, bits, size| Some(Field { bit, bits, size });
        assert_eq!(field("a"), found(0, 0, 4));
        assert_eq!(field("b"), found(32, 0, 1));
        assert_eq!(field("c.x"), found(32, 0, 1));
        assert_eq!(field("c.y"), found(40, 3, 4));
        assert_eq!(field("c.z"), found(43, 2, 4));
        assert_eq!(field("d"), found(64, 0, 8));
        for none in ["x", "a.b", "c.x.y", "", "c."] {
            assert_eq!(field(none), None, "{none}");
        }
        assert_eq!(types.field("inner", "a"), None);
        assert_eq!(types.offset_of("outer", "b", 1), Some(4));
        assert_eq!(types.offset_of("outer", "b", 4), None);
        assert_eq!(types.offset_of("outer", "c.y", 4), None);
        assert_eq!(types.size_of("outer"), Some(24));
        assert_eq!(types.size_of("int"), None);
    }

    proptest! {
        /// A broken description never causes a panic or an endless loop.
        #[test]
        fn of_a_broken_one(at in 0usize..400, value: u8, cut in 0usize..400) {
            let mut description = description();
            if let Some(byte) = description.get_mut(at) {
                *byte = value;
            }
            description.truncate(cut.max(200));
            if let Some(types) = Types::read(&description) {
                for path in ["a", "c.z", "d"] {
                    types.field("outer", path);
                }
            }
        }
    }
}
