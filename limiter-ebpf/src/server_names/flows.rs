//! The map of connections that limits may count by name.

use aya_ebpf::{bindings::BPF_F_NO_PREALLOC, btf_maps::HashMap, macros::btf_map};
use limiter_common::{connection::Ends, server_name::FlowRecord};

/// The connections that limits may count by their names. The loader sets the capacity.
#[btf_map]
pub(super) static SERVER_FLOWS: HashMap<Ends, FlowRecord, 1, { BPF_F_NO_PREALLOC as usize }> =
    HashMap::new();
