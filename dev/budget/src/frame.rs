//! Finds a function's stack use from its instructions.

/// An instruction's length in bytes.
pub(super) const INSTRUCTION: usize = 8;

/// The register that points to the end of the function's stack. The stack grows down from there.
const FRAME_POINTER: usize = 10;

/// The registers that a called function may change.
const CALLER_SAVED: [usize; 6] = [0, 1, 2, 3, 4, 5];

// Classes and operations, from linux/bpf_common.h and linux/bpf.h.
const CLASS: u8 = 0x07;
const LD: u8 = 0x00;
const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const ALU: u8 = 0x04;
const ALU64: u8 = 0x07;
const MOV64_REGISTER: u8 = 0xbf;
const ADD64_IMMEDIATE: u8 = 0x07;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The second half of a 64-bit constant.
const CONTINUED: u8 = 0;

/// The source register of a call to a function of the program, not to a helper.
const PSEUDO_CALL: usize = 1;

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Instruction {
    code: u8,
    destination: usize,
    source: usize,
    offset: i64,
    /// The constant. In a call it is the target, unless the object's relocations name one.
    pub(super) immediate: i64,
}

impl Instruction {
    /// Decodes an instruction in this machine's byte order, which the objects have.
    pub(super) fn new(bytes: [u8; INSTRUCTION]) -> Self {
        let [code, registers, o1, o2, i1, i2, i3, i4] = bytes;
        let (low, high) = ((registers & 15).into(), (registers >> 4).into());
        let (destination, source) = if cfg!(target_endian = "big") {
            (high, low)
        } else {
            (low, high)
        };
        Self {
            code,
            destination,
            source,
            offset: i16::from_ne_bytes([o1, o2]).into(),
            immediate: i32::from_ne_bytes([i1, i2, i3, i4]).into(),
        }
    }

    /// Returns whether it calls a function of the program.
    pub(super) fn calls_function(self) -> bool {
        self.code == CALL && self.source == PSEUDO_CALL
    }
}

/// Returns how far below its frame pointer a function reaches, in bytes.
///
/// Goes through the instructions once, and follows every register that holds an address on the
/// stack. An address counts when it is computed, even if this function does not use it: a callee
/// may use it, upwards from there.
pub(super) fn depth(function: &[Instruction]) -> u32 {
    // The offset from the frame pointer for each register that points to the stack.
    let mut bases: [Option<i64>; 16] = [None; 16];
    let mut lowest = 0;
    for instruction in function {
        bases[FRAME_POINTER] = Some(0);
        let &Instruction {
            code,
            destination,
            source,
            offset,
            immediate,
        } = instruction;
        let accessed = match code & CLASS {
            LDX => bases[source],
            ST | STX => bases[destination],
            _ => None,
        };
        lowest = lowest.min(accessed.map_or(0, |base| base + offset));
        match (code, code & CLASS) {
            (MOV64_REGISTER, _) => bases[destination] = bases[source],
            (ADD64_IMMEDIATE, _) => {
                bases[destination] = bases[destination].map(|base| base + immediate);
            }
            (CALL, _) => {
                for register in CALLER_SAVED {
                    bases[register] = None;
                }
            }
            // The next instruction is reached from elsewhere.
            (JUMP | EXIT, _) => bases = [None; 16],
            (CONTINUED, _) => {}
            (_, LD | LDX | ALU | ALU64) => bases[destination] = None,
            _ => {}
        }
        lowest = lowest.min(bases[destination].unwrap_or(0));
    }
    u32::try_from(-lowest).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn instruction(code: u8, destination: usize, source: usize) -> Instruction {
        Instruction {
            code,
            destination,
            source,
            offset: 0,
            immediate: 0,
        }
    }

    const fn at(offset: i64, instruction: Instruction) -> Instruction {
        Instruction {
            offset,
            ..instruction
        }
    }

    const fn with(immediate: i64, instruction: Instruction) -> Instruction {
        Instruction {
            immediate,
            ..instruction
        }
    }

    /// `*(u64 *)(base + 0) = r1`
    const fn store(base: usize) -> Instruction {
        instruction(0x7b, base, 1)
    }

    /// `r1 = *(u64 *)(base + 0)`
    const fn load(base: usize) -> Instruction {
        instruction(0x79, 1, base)
    }

    const fn copy(destination: usize, source: usize) -> Instruction {
        instruction(MOV64_REGISTER, destination, source)
    }

    const fn add(destination: usize, immediate: i64) -> Instruction {
        with(immediate, instruction(ADD64_IMMEDIATE, destination, 0))
    }

    const HELPER: Instruction = instruction(CALL, 0, 0);
    const LEAVE: Instruction = instruction(EXIT, 0, 0);
    /// `goto`, and `if r1 == 0 goto`.
    const GO: Instruction = instruction(JUMP, 0, 0);
    const GO_IF: Instruction = instruction(0x15, 1, 0);

    #[test]
    fn finds_the_lowest_offset() {
        let check = |expected, function: &[Instruction]| {
            assert_eq!(depth(function), expected, "{function:?}");
        };
        check(0, &[]);
        check(0, &[LEAVE]);
        // Directly, by a store or a load.
        check(8, &[at(-8, store(10)), LEAVE]);
        check(24, &[at(-8, store(10)), at(-24, load(10)), LEAVE]);
        // Memory outside the stack.
        check(0, &[at(-8, store(6)), at(-24, load(6)), LEAVE]);
        // An address that is passed on.
        check(64, &[copy(2, 10), add(2, -64), HELPER, LEAVE]);
        // Through a register that helpers preserve, and upwards from there.
        check(
            72,
            &[copy(6, 10), add(6, -64), HELPER, at(-8, store(6)), LEAVE],
        );
        check(64, &[copy(6, 10), add(6, -64), at(8, store(6)), LEAVE]);
        check(
            48,
            &[copy(6, 10), add(6, -32), copy(3, 6), add(3, -16), LEAVE],
        );
        // Past a conditional jump, but not past an unconditional one.
        check(16, &[copy(2, 10), GO_IF, add(2, -16), LEAVE]);
        check(0, &[copy(2, 10), GO, add(2, -16), LEAVE]);
        // Registers overwritten by a helper, a load, a 64-bit constant.
        check(0, &[copy(2, 10), HELPER, add(2, -16), LEAVE]);
        check(0, &[copy(1, 10), load(6), add(1, -16), LEAVE]);
        check(
            0,
            &[copy(1, 10), instruction(0x18, 1, 0), add(1, -16), LEAVE],
        );
        // The second half of such a constant names no register.
        check(
            16,
            &[copy(0, 10), instruction(CONTINUED, 0, 0), add(0, -16)],
        );
    }

    #[test]
    fn takes_instructions_apart() {
        // r2 = *(u32 *)(r10 - 24), from objdump.
        let mut bytes = [0x61, 0xa2, 0xe8, 0xff, 0, 0, 0, 0];
        if cfg!(target_endian = "big") {
            bytes = [0x61, 0x2a, 0xff, 0xe8, 0, 0, 0, 0];
        }
        let load = Instruction::new(bytes);
        assert_eq!((load.destination, load.source, load.offset), (2, 10, -24));
        assert!(!load.calls_function());
        assert_eq!(depth(&[load]), 24);
    }

    #[test]
    fn tells_functions_from_helpers() {
        assert!(!HELPER.calls_function());
        assert!(instruction(CALL, 0, PSEUDO_CALL).calls_function());
    }
}
