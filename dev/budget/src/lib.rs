//! The XDP program's cost to the kernel's verifier, and its bounds.
//!
//! `cargo xtask build-ebpf --budget` and the tests use the same policies and bounds.

mod frame;
mod largest;
mod stack;

use std::time::Duration;

use anyhow::{Context as _, Result};
use limiter_common::strategy::Strategy;
use limiter_datapath::kernel::{
    Instance, LogLevel, OBJECT, OBJECT_WITH_LOG, Settings, VerifierCost, possible_cpus,
};
use limiter_policy::{
    config::{Buckets, Offenders, Store},
    policy::CompiledPolicy,
};
use serde::Serialize;

use self::frame::INSTRUCTION;
pub use self::{
    largest::{answering, largest_policy},
    stack::Function,
};

/// The most instructions of one program that the verifier may walk: less than a sixth of the
/// million at which it gives up, because kernels prune differently.
pub const MOST_VERIFIED: u32 = 150_000;

/// The most bytes of stack used by one program and its callees: four fifths of the verifier's
/// 512, which leaves room for another compiler's spills and for changes.
pub const MOST_STACK: u32 = 416;

/// The largest policies, by their limits' strategies: the verifier skips the code of unused
/// strategies.
const POLICIES: [(&str, &[Strategy]); 2] = [
    (Strategy::Gcra.name(), &[Strategy::Gcra]),
    ("all strategies", &Strategy::ALL),
];

/// The name of the policy with all strategies and with limits that answer.
const ANSWERING: &str = "all strategies, answers";

/// A build of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// Without log statements.
    Plain,
    /// With log statements.
    WithLog,
}

impl Object {
    /// Both builds.
    pub const ALL: [Self; 2] = [Self::Plain, Self::WithLog];

    /// Returns the build's file name, contents, and log level.
    fn parts(self) -> (&'static str, &'static [u8], LogLevel) {
        match self {
            Self::Plain => ("limiter.o", OBJECT, LogLevel::Off),
            Self::WithLog => ("limiter-log.o", OBJECT_WITH_LOG, LogLevel::Verdicts),
        }
    }
}

/// A program's cost.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// The object's file name.
    pub object: &'static str,
    /// The program's name in it.
    pub program: String,
    /// The cost under each of the largest policies, in each store.
    pub verifications: Vec<Verification>,
    /// The most bytes of stack used under any policy.
    pub stack: u32,
    /// The entry point, followed by every function that it calls.
    pub functions: Vec<Function>,
}

/// A program's cost under one policy.
#[derive(Clone, Debug, Serialize)]
pub struct Verification {
    /// The strategies of the policy's limits.
    pub policy: &'static str,
    /// The store of the buckets: the verifier skips the other store's code.
    pub store: Store,
    /// Instructions that the verifier walked, counted each time.
    pub verified_instructions: u32,
    /// Instructions of the program in the kernel, without the ones that this policy never reaches.
    pub translated_instructions: u32,
    /// The kernel's time to verify and compile it, in nanoseconds.
    pub verification_ns: u64,
}

impl Cost {
    /// Describes each exceeded bound.
    #[must_use]
    pub fn excesses(&self) -> Vec<String> {
        let program = format!("{} in {}", self.program, self.object);
        let verified = self.verifications.iter().filter_map(|verification| {
            let Verification {
                policy,
                store,
                verified_instructions: now,
                ..
            } = verification;
            let store = store.name();
            (*now > MOST_VERIFIED).then(|| {
                format!(
                    "{program}: {now} verified instructions with {policy} in the {store} store, at \
                     most {MOST_VERIFIED}"
                )
            })
        });
        let now = self.stack;
        let stack = (now > MOST_STACK)
            .then(|| format!("{program}: {now} bytes of stack, at most {MOST_STACK}"));
        verified.chain(stack).collect()
    }
}

/// Measures each program of an object with each of the largest policies, in each store: loads it
/// without attaching it, and unloads it. One set of maps serves all programs, because maps take
/// longer than the verifier.
pub fn measure(object: Object) -> Result<Vec<Cost>> {
    let mut policies = Vec::new();
    for (name, strategies) in POLICIES {
        policies.push((
            name,
            CompiledPolicy::new(&largest_policy(strategies), possible_cpus())?,
        ));
    }
    let policy = answering(largest_policy(&Strategy::ALL));
    policies.push((ANSWERING, CompiledPolicy::new(&policy, possible_cpus())?));
    let (file, bytes, log) = object.parts();
    let programs = Instance::programs();
    let mut costs = Vec::new();
    for program in &programs {
        let functions = stack::functions(bytes, program)?;
        costs.push(Cost {
            object: file,
            program: program.clone(),
            verifications: Vec::new(),
            stack: functions
                .first()
                .map_or(0, |entry| entry.stack_with_callees),
            functions,
        });
    }
    for (name, policy) in &policies {
        for store in [Store::Table, Store::Hash] {
            let verified = verify(log, &programs, name, policy, store)?;
            for (cost, verification) in costs.iter_mut().zip(verified) {
                cost.verifications.push(verification);
            }
        }
    }
    Ok(costs)
}

/// Measures these programs of an object with one policy, in their order.
fn verify(
    log: LogLevel,
    programs: &[String],
    name: &'static str,
    policy: &CompiledPolicy,
    store: Store,
) -> Result<Vec<Verification>> {
    let buckets = Buckets {
        store,
        ..Buckets::default()
    };
    let settings = Settings::new(buckets, Offenders::default(), log)?.sized_for(policy);
    let costs = Instance::verifier_costs(programs, policy, settings)?;
    let verification = |cost: VerifierCost| {
        let verified = cost.verified_instructions.context(
            "this kernel does not show the number of verified instructions: use Linux 5.16 or newer",
        )?;
        let bytes = cost.translated_bytes.context(
            "the kernel hides the program's size from this process: run with CAP_BPF and CAP_PERFMON",
        )?;
        Ok(Verification {
            policy: name,
            store,
            verified_instructions: verified,
            translated_instructions: bytes / u32::try_from(INSTRUCTION)?,
            verification_ns: nanoseconds(cost.time),
        })
    };
    costs.into_iter().map(verification).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_bound_that_is_exceeded() {
        let excesses = |verified: [u32; 2], stack| {
            let verification = |(store, verified_instructions)| Verification {
                policy: "gcra",
                store,
                verified_instructions,
                translated_instructions: 1,
                verification_ns: 1,
            };
            let verified = [Store::Table, Store::Hash].into_iter().zip(verified);
            let cost = Cost {
                object: "limiter.o",
                program: "limiter".to_owned(),
                verifications: verified.map(verification).collect(),
                stack,
                functions: Vec::new(),
            };
            cost.excesses()
        };
        assert!(excesses([MOST_VERIFIED; 2], MOST_STACK).is_empty());
        assert_eq!(
            excesses([MOST_VERIFIED, MOST_VERIFIED + 1], MOST_STACK + 1),
            [
                "limiter in limiter.o: 150001 verified instructions with gcra in the hash store, \
                 at most 150000",
                "limiter in limiter.o: 417 bytes of stack, at most 416",
            ]
        );
    }
}
