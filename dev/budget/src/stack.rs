//! Finds how much stack the program's functions use together.
//!
//! Computed from the object's instructions: the verifier shows it only in its log, which grows to
//! megabytes, and which aya keeps only for a refused program. For the largest policy, the numbers
//! equal the log's, as compared by hand, function by function.

use std::collections::HashMap;

use anyhow::{Context as _, Result, bail};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, Relocation, RelocationTarget,
    SectionIndex, Symbol, SymbolKind,
};
use serde::Serialize;

use super::frame::{self, INSTRUCTION, Instruction};

/// The unit to which the verifier rounds a frame; newer ones with a JIT use half of it.
const ROUNDED_TO: u32 = 32;

/// A function of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Function {
    /// Its name in the object.
    pub name: String,
    /// The number of its instructions in the object.
    pub instructions: usize,
    /// The bytes of stack that it uses itself.
    pub stack: u32,
    /// The same with the functions that it calls, along the deepest path, with each frame rounded
    /// as the verifier does.
    pub stack_with_callees: u32,
}

/// A function's section, and its offset in it.
type FunctionAddress = (SectionIndex, u64);

/// The code of a function.
struct Code {
    name: String,
    instructions: Vec<Instruction>,
    callees: Vec<FunctionAddress>,
}

/// Returns the entry point and every function reached from it, callers before their callees.
pub(super) fn functions(object: &[u8], entry: &str) -> Result<Vec<Function>> {
    let codes = read(object)?;
    let (entry, _) = codes
        .iter()
        .find(|(_, code)| code.name == entry)
        .with_context(|| format!("the object has no function {entry}"))?;
    let mut functions = Vec::new();
    visit(*entry, &codes, &mut Vec::new(), &mut functions)?;
    functions.reverse();
    Ok(functions)
}

/// Adds a function after its callees; returns the bytes that they use together.
fn visit(
    address: FunctionAddress,
    codes: &HashMap<FunctionAddress, Code>,
    callers: &mut Vec<FunctionAddress>,
    functions: &mut Vec<Function>,
) -> Result<u32> {
    let code = codes
        .get(&address)
        .context("a call's target is not a function")?;
    if callers.contains(&address) {
        bail!("{} calls itself", code.name);
    }
    if let Some(known) = functions.iter().find(|known| known.name == code.name) {
        return Ok(known.stack_with_callees);
    }
    callers.push(address);
    let mut below = 0;
    for callee in &code.callees {
        below = below.max(visit(*callee, codes, callers, functions)?);
    }
    callers.pop();
    let stack = frame::depth(&code.instructions);
    let stack_with_callees = below + stack.max(1).next_multiple_of(ROUNDED_TO);
    functions.push(Function {
        name: code.name.clone(),
        instructions: code.instructions.len(),
        stack,
        stack_with_callees,
    });
    Ok(stack_with_callees)
}

/// Returns every function of the object.
fn read(object: &[u8]) -> Result<HashMap<FunctionAddress, Code>> {
    let file = File::parse(object)?;
    let mut codes = HashMap::new();
    for symbol in file.symbols() {
        if symbol.kind() == SymbolKind::Text && symbol.is_definition() {
            let index = symbol
                .section_index()
                .context("a function without a section")?;
            codes.insert((index, symbol.address()), code(&file, &symbol)?);
        }
    }
    Ok(codes)
}

fn code(file: &File, symbol: &Symbol) -> Result<Code> {
    let name = symbol.name()?.to_owned();
    let index = symbol
        .section_index()
        .context("a function without a section")?;
    let section = file.section_by_index(index)?;
    let bytes = section
        .data_range(symbol.address(), symbol.size())?
        .with_context(|| format!("{name} exceeds its section"))?;
    let (bytes, _) = bytes.as_chunks::<INSTRUCTION>();
    let instructions: Vec<_> = bytes.iter().copied().map(Instruction::new).collect();

    let relocations: HashMap<u64, Relocation> = section.relocations().collect();
    let addresses = (symbol.address()..).step_by(INSTRUCTION);
    let callees = addresses
        .zip(&instructions)
        .filter(|(_, instruction)| instruction.calls_function())
        .map(|(address, call)| callee(file, index, address, *call, relocations.get(&address)))
        .collect::<Result<_>>()?;
    Ok(Code {
        name,
        instructions,
        callees,
    })
}

/// Returns the target of a call: the symbol that its relocation names, or the one in the call
/// itself.
fn callee(
    file: &File,
    section: SectionIndex,
    address: u64,
    call: Instruction,
    relocation: Option<&Relocation>,
) -> Result<FunctionAddress> {
    let (section, from) = match relocation.map(Relocation::target) {
        None => (section, address),
        Some(RelocationTarget::Symbol(index)) => {
            let symbol = file.symbol_by_index(index)?;
            let section = symbol.section_index();
            (
                section.context("a call's target is outside the object")?,
                symbol.address(),
            )
        }
        Some(target) => bail!("unexpected target of a call: {target:?}"),
    };
    let distance = (call.immediate + 1) * i64::try_from(INSTRUCTION)?;
    let address = from.checked_add_signed(distance);
    Ok((
        section,
        address.context("a call's target is outside its section")?,
    ))
}

#[cfg(test)]
mod tests {
    use limiter_datapath::kernel::{OBJECT, OBJECT_WITH_LOG};

    use super::*;

    const fn address(number: u64) -> FunctionAddress {
        (SectionIndex(1), number)
    }

    /// Returns a function that stores at `r10 - depth` and calls others.
    fn function(name: &str, depth: i16, callees: &[u64]) -> Code {
        let [o1, o2] = (-depth).to_ne_bytes();
        let registers = if cfg!(target_endian = "big") {
            0xa1
        } else {
            0x1a
        };
        Code {
            name: name.to_owned(),
            instructions: vec![Instruction::new([0x7b, registers, o1, o2, 0, 0, 0, 0])],
            callees: callees.iter().copied().map(address).collect(),
        }
    }

    fn walk(functions: impl IntoIterator<Item = Code>) -> Result<Vec<(String, u32)>> {
        let codes = (0..).map(address).zip(functions).collect();
        let mut found = Vec::new();
        visit(address(0), &codes, &mut Vec::new(), &mut found)?;
        let sums = found.into_iter().rev();
        Ok(sums.map(|f| (f.name, f.stack_with_callees)).collect())
    }

    #[test]
    fn adds_up_the_deepest_calls() {
        let sums = walk([
            function("entry", 100, &[1, 2, 1]),
            function("left", 8, &[3]),
            function("right", 40, &[3]),
            function("both", 33, &[]),
            function("unused", 500, &[]),
        ]);
        let sum = |name: &str, bytes| (name.to_owned(), bytes);
        let expected = [
            sum("entry", 128 + 64 + 64),
            sum("right", 64 + 64),
            sum("left", 32 + 64),
            sum("both", 64),
        ];
        assert_eq!(sums.unwrap(), expected);
    }

    #[test]
    fn refuses_what_has_no_depth() {
        let error = |functions: Vec<Code>| walk(functions).unwrap_err().to_string();
        assert_eq!(
            error(vec![function("a", 8, &[1]), function("b", 8, &[0])]),
            "a calls itself"
        );
        assert_eq!(
            error(vec![function("a", 8, &[7])]),
            "a call's target is not a function"
        );
    }

    #[test]
    fn reads_the_objects() {
        for object in [OBJECT, OBJECT_WITH_LOG] {
            let functions = functions(object, "limiter").unwrap();
            let entry = &functions[0];
            assert_eq!(entry.name, "limiter");
            // The bans, the searches, and the frames in pieces.
            let named = functions.iter().filter(|f| f.name.starts_with("limiter_"));
            assert!(named.count() >= 4, "{functions:?}");
            assert!(entry.stack_with_callees > entry.stack, "{functions:?}");
        }
        let error = functions(OBJECT, "nothing").unwrap_err();
        assert_eq!(error.to_string(), "the object has no function nothing");
    }
}
